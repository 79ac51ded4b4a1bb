//! Endpoints: their bounds, their fallback, and whether they have consented.

use std::collections::BTreeSet;

use super::problem::{SettingsError, SettingsProblem, number_in, settings_error};
use crate::api::{ConsentView, EndpointSettings, EndpointValidation, StatusView};
use crate::model::{
    CONCURRENT_REQUESTS_MAX, EndpointUrl, Link, REQUESTS_PER_SECOND_MAX, REQUESTS_PER_SECOND_MIN,
    RequestRate, SlotLimit, SubscriptionStatus, Timestamp,
};

const FALLBACK_MEMBER: &str = "endpoint.fallbackUrl";

/// The second endpoint. It needs another link than the first: on the same link it would fail with
/// the first, and never be used. Where the first must consent, the second needs its host name.
pub(super) fn compile_fallback(
    settings: &EndpointSettings,
    first: &EndpointUrl,
) -> Result<Option<EndpointUrl>, SettingsError> {
    let Some(written) = &settings.fallback_url else {
        return Ok(None);
    };
    let fallback = EndpointUrl::parse(written)
        .map_err(|error| settings_error(FALLBACK_MEMBER, SettingsProblem::Url(error)))?;
    let one = first.link();
    let other = fallback.link();
    match settings.validation {
        _ if one == other => Err(settings_error(FALLBACK_MEMBER, SettingsProblem::SameLink)),
        EndpointValidation::CloudEvents | EndpointValidation::EventGrid
            if one.host != other.host =>
        {
            Err(settings_error(FALLBACK_MEMBER, SettingsProblem::NoConsent))
        }
        _ => Ok(Some(fallback)),
    }
}

/// The rate that the subscription's own settings name.
pub(crate) fn own_rate(settings: &EndpointSettings) -> Result<Option<RequestRate>, SettingsError> {
    let Some(written) = settings.max_requests_per_second else {
        return Ok(None);
    };
    let is_in_range = (REQUESTS_PER_SECOND_MIN..=REQUESTS_PER_SECOND_MAX).contains(&written);
    let rate = RequestRate::per_second(written).filter(|_| is_in_range);
    rate.map(Some).ok_or_else(|| {
        settings_error(
            "endpoint.maxRequestsPerSecond",
            SettingsProblem::RequestsPerSecond,
        )
    })
}

/// The bound on open requests.
pub(super) fn compile_concurrency(
    settings: &EndpointSettings,
) -> Result<Option<SlotLimit>, SettingsError> {
    let Some(written) = settings.max_concurrent_requests else {
        return Ok(None);
    };
    let member = "endpoint.maxConcurrentRequests";
    number_in(member, written, 1, CONCURRENT_REQUESTS_MAX)?;
    Ok(SlotLimit::new(written))
}

/// The rate that deliveries keep: the lesser of the subscription's own and the endpoint's.
pub(super) fn compile_rate(
    settings: &EndpointSettings,
    status: Option<&StatusView>,
) -> Result<Option<RequestRate>, SettingsError> {
    let consent = status.and_then(|status| status.consent.as_ref());
    let consent =
        consent.filter(|consent| consent.is_for(settings) && !settings.validation.is_none());
    let allowed = consent
        .and_then(|consent| consent.allowed_requests_per_minute)
        .and_then(RequestRate::per_minute);
    Ok(own_rate(settings)?.into_iter().chain(allowed).min())
}

/// The status of the subscription: whether events are delivered, and until when the endpoint may
/// still consent.
pub(super) fn compile_status(view: Option<&StatusView>) -> (SubscriptionStatus, Option<Timestamp>) {
    let handshake = view.and_then(|view| view.handshake.as_ref());
    (
        view.map(|view| view.state).unwrap_or_default(),
        handshake.map(|handshake| handshake.expires_at.0),
    )
}

impl EndpointSettings {
    /// The links of the URLs. A URL that cannot be read has none.
    pub fn links(&self) -> BTreeSet<Link> {
        let urls = std::iter::once(&self.url).chain(&self.fallback_url);
        urls.filter_map(|url| EndpointUrl::parse(url).ok())
            .map(|url| url.link())
            .collect()
    }
}

impl ConsentView {
    /// Whether this consent covers the present settings.
    pub fn is_for(&self, settings: &EndpointSettings) -> bool {
        EndpointUrl::is_same(&self.url, &settings.url) && self.validation == settings.validation
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn endpoint(more: &Value) -> EndpointSettings {
        let mut endpoint = json!({ "url": "https://a.example/" });
        endpoint
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        serde_json::from_value(endpoint).unwrap()
    }

    fn consent(url: &str, per_minute: Option<u32>) -> StatusView {
        let consent = json!({
            "url": url, "validation": "CloudEvents", "at": "2026-11-21T10:00:00Z",
            "allowedRequestsPerMinute": per_minute,
        });
        let status =
            json!({ "state": "Active", "since": "2026-11-21T10:00:00Z", "consent": consent });
        serde_json::from_value(status).unwrap()
    }

    #[test]
    fn the_lesser_of_both_rates_is_obeyed() {
        let check =
            |own: Option<f64>, validation: &str, status: &StatusView, expected: Option<u32>| {
                let settings =
                    endpoint(&json!({ "maxRequestsPerSecond": own, "validation": validation }));
                let rate = compile_rate(&settings, Some(status))
                    .unwrap()
                    .map(RequestRate::requests_per_minute);
                assert_eq!(rate, expected, "{own:?} {validation} {status:?}");
            };
        let allowed = consent("https://a.example/", Some(120));
        check(None, "CloudEvents", &allowed, Some(120));
        check(Some(1.0), "CloudEvents", &allowed, Some(60));
        check(Some(5.0), "CloudEvents", &allowed, Some(120));
        check(
            Some(5.0),
            "CloudEvents",
            &consent("https://a.example/", None),
            Some(300),
        );
        check(
            None,
            "CloudEvents",
            &consent("https://a.example/", None),
            None,
        );
        // A consent for another endpoint, or one that is not asked for any more, has no effect.
        check(
            None,
            "CloudEvents",
            &consent("https://b.example/", Some(120)),
            None,
        );
        check(None, "none", &allowed, None);
    }

    /// A second endpoint is on another link, and on the host that consented where consent is
    /// needed.
    #[test]
    fn fallback_needs_another_link_on_the_consenting_host() {
        let first = EndpointUrl::parse("https://a.example/").unwrap();
        let check = |validation: &str,
                     written: Option<&str>,
                     expected: Result<Option<&str>, &str>| {
            let settings = endpoint(&json!({ "fallbackUrl": written, "validation": validation }));
            let compiled = compile_fallback(&settings, &first).map_err(|error| error.to_string());
            let compiled = compiled
                .as_ref()
                .map(|it| it.as_ref().map(EndpointUrl::as_str));
            assert_eq!(
                compiled.map_err(String::as_str),
                expected,
                "{validation} {written:?}"
            );
        };
        let same = "endpoint.fallbackUrl: is on the scheme, host and port of endpoint.url, and would be left \
            alone with it";
        let elsewhere = "endpoint.fallbackUrl: is on another host than endpoint.url, \
            and that one has not consented; only another port of the same host can be used \
            where endpoint.validation is not none";
        check("none", None, Ok(None));
        check("none", Some("https://a.example/standby"), Err(same));
        check("none", Some("https://A.example:443"), Err(same));
        check(
            "none",
            Some("https://a.example:8443"),
            Ok(Some("https://a.example:8443/")),
        );
        check(
            "none",
            Some("https://B.example"),
            Ok(Some("https://b.example/")),
        );
        for validation in ["CloudEvents", "EventGrid"] {
            check(validation, None, Ok(None));
            check(validation, Some("https://a.example/standby"), Err(same));
            check(
                validation,
                Some("https://a.example:8443/"),
                Ok(Some("https://a.example:8443/")),
            );
            check(validation, Some("https://b.example/"), Err(elsewhere));
        }
    }

    #[test]
    fn a_rate_outside_its_range_names_its_member() {
        for bad in [0.0, 0.019, -1.0, 100_000.5] {
            let error = own_rate(&endpoint(&json!({ "maxRequestsPerSecond": bad }))).unwrap_err();
            let expected =
                "endpoint.maxRequestsPerSecond: expected 0.02 to 100000 requests a second";
            assert_eq!(error.to_string(), expected);
        }
        let least = own_rate(&endpoint(&json!({ "maxRequestsPerSecond": 0.02 }))).unwrap();
        assert_eq!(least.map(RequestRate::requests_per_minute), Some(1));
    }

    #[test]
    fn bound_on_open_requests_is_one_to_a_thousand() {
        let of = |most: Option<u32>| {
            let settings = endpoint(&json!({ "maxConcurrentRequests": most }));
            let concurrency = compile_concurrency(&settings).map_err(|error| error.to_string());
            concurrency.map(|it| it.map(SlotLimit::requests))
        };
        assert_eq!(of(None), Ok(None));
        for most in [1, 5, 1000] {
            assert_eq!(of(Some(most)), Ok(Some(most)));
        }
        for bad in [0, 1001] {
            let expected =
                format!("endpoint.maxConcurrentRequests: expected 1 to 1000, found {bad}");
            assert_eq!(of(Some(bad)), Err(expected));
        }
    }
}
