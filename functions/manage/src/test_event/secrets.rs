//! Secrets in the answer of an endpoint. An endpoint may echo its request, so the answer is shown with masks
//! in place of the secrets. A secret that the endpoint transformed (hashed, compressed) is not recognised.

use axum::http::HeaderMap;
use posthaste_core::api::{MASKED, SubscriptionSettings};

/// The forms of a subscription's secrets in an answer, the longest first.
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    /// The secrets in the request's headers, and those that sign it.
    pub(super) fn of(sent: &HeaderMap, settings: Option<&SubscriptionSettings>) -> Self {
        let sensitive = sent.values().filter(|value| value.is_sensitive());
        let headers = sensitive.filter_map(|value| value.to_str().ok()).flat_map(header_forms);
        let signing = settings.into_iter().flat_map(|settings| settings.signing.timed());
        let mut texts: Vec<String> = headers.map(str::to_owned).collect();
        texts.extend(signing.map(|(secret, _)| secret.expose().to_owned()));
        let mut all: Vec<String> = texts.iter().flat_map(|text| written_forms(text)).collect();
        all.sort_by_key(|text| std::cmp::Reverse(text.len()));
        all.dedup();
        Self(all)
    }

    /// The text with a mask in place of every secret.
    pub(super) fn masked_in(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret, MASKED))
    }
}

/// A value, and the part after its scheme if it has one, as `Authorization` does.
fn header_forms(value: &str) -> impl Iterator<Item = &str> {
    let credentials = value.split_once(' ').map(|(_, rest)| rest.trim_start());
    std::iter::once(value).chain(credentials.filter(|rest| !rest.is_empty()))
}

/// A text as it is, as JSON writes it, and as JSON with escaped slashes.
fn written_forms(text: &str) -> [String; 3] {
    let json = text.replace('\\', r"\\").replace('"', "\\\"");
    let slashes = json.replace('/', r"\/");
    [text.to_owned(), json, slashes]
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
        assert_eq!(Secrets::of(&sent, None).masked_in(answer), expected);
    }

    #[test]
    fn a_secret_is_masked_however_it_is_echoed() {
        check("Bearer s3cret", r#"{"a":"Bearer s3cret"}"#, r#"{"a":"(masked)"}"#);
        check("Bearer s3cret", "token=s3cret, s3cret; acme", "token=(masked), (masked); acme");
        check(r#"a"b\c/d"#, r#"a\"b\\c/d a\"b\\c\/d a"b\c/d"#, "(masked) (masked) (masked)");
        check("s3cret", "nothing of it", "nothing of it");
    }
}
