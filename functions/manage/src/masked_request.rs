//! Requests and responses as users see them: with masks in place of secrets.

use std::collections::BTreeMap;
use std::iter;

use axum::http::HeaderMap;
use posthaste_core::api::{MASKED, SubscriptionSettings, TestRequest, TestResponse};
use posthaste_core::attempt::echo::{TextExtent, mask_secrets};
use posthaste_core::attempt::readable_text;
use posthaste_core::model::{EndpointUrl, RESPONSE_BODY_BYTES_MAX};
use posthaste_ports::{WebhookRequest, WebhookResponse};

/// The parameter of an endpoint's URL that is a secret by its name.
/// <https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/http-webhook.md#32-uri-query-parameter>
const ACCESS_TOKEN: &str = "access_token";

/// The request, its secret headers and its access token masked.
pub(crate) fn masked_request(request: &WebhookRequest) -> TestRequest {
    TestRequest {
        method: request.method.to_string(),
        url: masked_url(&request.url),
        headers: masked_headers(&request.headers),
        body: String::from_utf8_lossy(&request.body.concat()).into_owned(),
    }
}

/// The URL with a mask in place of the access token in its query.
fn masked_url(url: &EndpointUrl) -> String {
    let whole = url.as_str();
    let Some((before, query)) = whole.split_once('?') else {
        return whole.to_owned();
    };
    let parameters: Vec<String> = query.split('&').map(masked_parameter).collect();
    format!("{before}?{}", parameters.join("&"))
}

fn masked_parameter(parameter: &str) -> String {
    let decoded = url::form_urlencoded::parse(parameter.as_bytes()).next();
    if decoded.is_some_and(|(name, _)| name == ACCESS_TOKEN) {
        format!("{ACCESS_TOKEN}={MASKED}")
    } else {
        parameter.to_owned()
    }
}

/// The access tokens in the query of a URL, decoded.
fn access_tokens(url: &EndpointUrl) -> impl Iterator<Item = String> {
    let query = url.as_str().split_once('?').map_or("", |(_, query)| query);
    url::form_urlencoded::parse(query.as_bytes())
        .filter(|(name, value)| name == ACCESS_TOKEN && !value.is_empty())
        .map(|(_, token)| token.into_owned())
}

/// Headers as text; the value of a secret one is masked.
fn masked_headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut shown = BTreeMap::<String, String>::new();
    for (name, value) in headers {
        let text = if value.is_sensitive() {
            MASKED.to_owned()
        } else {
            String::from_utf8_lossy(value.as_bytes()).into_owned()
        };
        let known = shown.entry(name.to_string()).or_default();
        if !known.is_empty() {
            known.push_str(", ");
        }
        known.push_str(&text);
    }
    shown
}

/// A subscription's secrets. An endpoint may echo its request, so its answer is shown with masks in
/// place of them.
pub(crate) struct MaskedSecrets(Vec<String>);

impl MaskedSecrets {
    /// The secrets in the request's headers and URL, and those that sign it.
    pub(crate) fn from_request(
        sent: &HeaderMap,
        url: &EndpointUrl,
        settings: Option<&SubscriptionSettings>,
    ) -> Self {
        let sensitive = sent.values().filter(|value| value.is_sensitive());
        let headers = sensitive
            .filter_map(|value| value.to_str().ok())
            .flat_map(header_forms);
        let signing = settings
            .into_iter()
            .flat_map(|settings| settings.signing.timed_secrets());
        let mut all: Vec<String> = headers.map(str::to_owned).collect();
        all.extend(signing.map(|(secret, _)| secret.expose().to_owned()));
        all.extend(access_tokens(url));
        Self(all)
    }

    /// The response, with a mask in place of every secret.
    pub(crate) fn masked_response(&self, response: &WebhookResponse) -> TestResponse {
        let headers = masked_headers(&response.headers).into_iter();
        let extent = if response.body_is_whole {
            TextExtent::Whole
        } else {
            TextExtent::Cut
        };
        TestResponse {
            status: response.status.as_u16(),
            headers: headers
                .map(|(name, value)| (name, self.mask_secrets(&value, TextExtent::Whole)))
                .collect(),
            body: self.mask_secrets(
                &readable_text(&response.headers, &response.body, RESPONSE_BODY_BYTES_MAX),
                extent,
            ),
            body_is_whole: response.body_is_whole,
        }
    }

    /// The text with a mask in place of every secret.
    fn mask_secrets(&self, text: &str, extent: TextExtent) -> String {
        let secrets: Vec<&str> = self.0.iter().map(String::as_str).collect();
        mask_secrets(text, &secrets, extent, MASKED)
    }
}

/// A value, and the part after its scheme if it has one, as `Authorization` does.
fn header_forms(value: &str) -> impl Iterator<Item = &str> {
    let credentials = value.split_once(' ').map(|(_, rest)| rest.trim_start());
    iter::once(value).chain(credentials.filter(|rest| !rest.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use axum::http::header::AUTHORIZATION;

    fn check(secret: &str, answer: &str, expected: &str) {
        let mut value = HeaderValue::from_str(secret).unwrap();
        value.set_sensitive(true);
        let mut sent = HeaderMap::from_iter([(AUTHORIZATION, value)]);
        sent.insert("x-tenant", HeaderValue::from_static("acme"));
        let url = EndpointUrl::parse("https://a.example/x?access_token=t0k%2Fen").unwrap();
        let secrets = MaskedSecrets::from_request(&sent, &url, None);
        assert_eq!(secrets.mask_secrets(answer, TextExtent::Whole), expected);
    }

    #[test]
    fn a_secret_is_masked_however_it_is_echoed() {
        check(
            "Bearer s3cret",
            r#"{"a":"Bearer s3cret"}"#,
            r#"{"a":"(masked)"}"#,
        );
        check(
            "Bearer s3cret",
            "token=s3cret, s3cret; acme",
            "token=(masked), (masked); acme",
        );
        check(
            r#"a"b\c/d"#,
            r#"a\"b\\c/d a\"b\\c\/d a"b\c/d"#,
            "(masked) (masked) (masked)",
        );
        check(
            "Bearer a+b/c=",
            r"a\u002Bb\/c\u003d a%2bb%2fc%3D a&#43;b&#x2F;c=",
            "(masked) (masked) (masked)",
        );
        check("s3cret", "nothing of it", "nothing of it");
        check(
            "s3cret",
            "/x?access_token=t0k%2Fen, t0k/en",
            "/x?access_token=(masked), (masked)",
        );
    }

    #[test]
    fn an_access_token_in_a_url_is_masked_however_it_is_written() {
        let check = |url: &str, expected: &str| {
            assert_eq!(masked_url(&EndpointUrl::parse(url).unwrap()), expected);
        };
        check("https://a.example/x", "https://a.example/x");
        check(
            "https://a.example/x?p=q&access_token=s3cret&r",
            "https://a.example/x?p=q&access_token=(masked)&r",
        );
        check(
            "https://a.example/x?access%5Ftoken=s3cret",
            "https://a.example/x?access_token=(masked)",
        );
        check(
            "https://a.example/access_token=x?q=access_token",
            "https://a.example/access_token=x?q=access_token",
        );
    }
}
