//! The effect of a write, from what the API shows: for a client that says what it would change. The
//! server may still refuse the write for a reason that the API does not show, such as the addresses
//! that endpoints may have.

use std::collections::BTreeMap;

use super::change::failed_notices;
use super::checks::{
    bad_setting, check_compiled_topic, check_expiration, normal_endpoint, require_distinct,
    require_same_name, within_subscription,
};
use crate::api::handshake::status_after_write;
use crate::api::problem::ApiProblem;
use crate::api::{NewHandshake, SecretText, SubscriptionSettings, TopicSettings, resolve_masks};
use crate::model::{SubscriptionName, Timestamp, TopicName};

/// Secret in the place of each masked one. Its only use is that it compiles.
const PLACEHOLDER: &str = "whsec_cG9zdGhhc3RlLXBsYWNlaG9sZGVyLXNlY3JldA==";

/// The topic as it would be shown if `wanted` were put at `now`, where it is shown as `shown`
/// today. Secrets stay masked, and a secret that would be made is left out.
pub fn preview_topic(
    topic: &TopicName,
    shown: &TopicSettings,
    wanted: &TopicSettings,
    now: Timestamp,
) -> Result<TopicSettings, ApiProblem> {
    require_same_name(wanted.name.as_ref().map(TopicName::as_str), topic.as_str())?;
    require_distinct(wanted)?;
    // A masked header keeps a placeholder. One without a secret to keep stays masked, and does not
    // compile.
    let mut subscriptions = shown.subscriptions.clone();
    subscriptions.values_mut().for_each(unmask_headers);
    let mut written = Vec::new();
    for (name, settings) in &wanted.subscriptions {
        let stored = shown.stored_name(name).unwrap_or(name);
        let put = preview_subscription(stored, subscriptions.get(stored), settings, now);
        subscriptions.insert(
            stored.clone(),
            put.map_err(|problem| within_subscription(name, problem))?,
        );
        written.push(stored);
    }
    let mut next = TopicSettings {
        subscriptions,
        ..without_subscriptions(shown, wanted)
    };
    check_compiled_topic(
        shown.name.as_ref().unwrap_or(topic),
        &with_signing(next.clone()),
        written,
    )?;
    next.subscriptions.values_mut().for_each(mask_headers);
    Ok(next)
}

/// The settings with a placeholder for every masked secret, so that they compile if the server has
/// the secrets.
pub(super) fn with_placeholder_secrets(settings: &TopicSettings) -> TopicSettings {
    let mut settings = with_signing(settings.clone());
    settings.subscriptions.values_mut().for_each(unmask_headers);
    settings
}

/// The settings with a placeholder for every masked signing secret.
fn with_signing(mut settings: TopicSettings) -> TopicSettings {
    let subscriptions = settings.subscriptions.values_mut();
    subscriptions
        .flat_map(|subscription| subscription.signing.secrets.iter_mut().flatten())
        .for_each(put_placeholder);
    settings
}

fn unmask_headers(subscription: &mut SubscriptionSettings) {
    let secret = subscription
        .delivery_headers
        .iter_mut()
        .filter(|header| header.is_secret);
    secret
        .filter_map(|header| header.value.as_mut())
        .for_each(put_placeholder);
}

fn mask_headers(subscription: &mut SubscriptionSettings) {
    subscription
        .delivery_headers
        .iter_mut()
        .for_each(|header| *header = header.masked());
}

fn put_placeholder(secret: &mut SecretText) {
    if secret.is_masked() {
        *secret = SecretText::new(PLACEHOLDER);
    }
}

/// The topic's own settings, without subscriptions.
fn without_subscriptions(shown: &TopicSettings, wanted: &TopicSettings) -> TopicSettings {
    TopicSettings {
        name: shown.name.clone(),
        endpoint: shown.endpoint.clone(),
        keys: None,
        subscriptions: BTreeMap::new(),
        delivery_failed_notices: failed_notices(shown, wanted),
        ..wanted.clone()
    }
}

fn preview_subscription(
    name: &SubscriptionName,
    shown: Option<&SubscriptionSettings>,
    wanted: &SubscriptionSettings,
    now: Timestamp,
) -> Result<SubscriptionSettings, ApiProblem> {
    require_same_name(
        wanted.name.as_ref().map(SubscriptionName::as_str),
        name.as_str(),
    )?;
    let endpoint = normal_endpoint(&wanted.endpoint)?;
    check_expiration(wanted.expiration_time_utc, now)?;
    let (present, present_headers) = shown
        .map(|shown| (shown.signing.clone(), shown.delivery_headers.as_slice()))
        .unwrap_or_default();
    let signing = resolve_masks(&wanted.signing, &present, now);
    let signing = signing.map_err(|error| bad_setting(error.member(), error.to_string()))?;
    let headers = wanted
        .delivery_headers
        .iter()
        .map(|header| header.resolve_mask(present_headers));
    // The code of a handshake is never shown.
    let code = SecretText::new("");
    let mut status = status_after_write(shown, &endpoint, NewHandshake { now, code: &code });
    status
        .handshake
        .iter_mut()
        .for_each(|handshake| handshake.code = None);
    Ok(SubscriptionSettings {
        name: Some(name.clone()),
        endpoint,
        delivery_headers: headers.collect(),
        signing: signing.masked(),
        status: Some(status),
        waiting: None,
        last_outcome: None,
        health: None,
        circuit: None,
        ..wanted.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::Desk;
    use super::*;
    use crate::api::problem::ProblemKind;
    use crate::model::URL_BYTES_MAX;
    use serde_json::{Value, json};

    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const OTHER: &str = "whsec_T3RoZXJPdGhlck90aGVyT3RoZXJPdGhl";

    fn previewed(desk: &Desk, wanted: &Value) -> Result<TopicSettings, ApiProblem> {
        let shown = desk.settings.to_view(&desk.topic, NOW);
        preview_topic(
            &desk.topic,
            &shown,
            &serde_json::from_value(wanted.clone()).unwrap(),
            NOW,
        )
    }

    fn billing(member: &str, value: &Value) -> Value {
        let mut billing = json!({ "endpoint": { "url": "https://billing.example/hooks" } });
        billing[member] = value.clone();
        json!({ "subscriptions": { "BILLING": billing } })
    }

    /// The preview is what is shown after the write.
    fn check(wanted: &Value) {
        let mut desk = Desk::with_billing();
        let signing = json!({ "secrets": [SECRET, OTHER] });
        let headers = json!([{ "name": "x-key", "value": "s3cret", "isSecret": true }]);
        let settings = json!({ "endpoint": { "url": "https://billing.example/hooks" }, "signing": signing,
            "deliveryHeaders": headers });
        desk.put("billing", settings).unwrap();
        let before = previewed(&desk, wanted).unwrap();
        desk.put_topic(wanted.clone()).unwrap();
        assert_eq!(before, desk.settings.to_view(&desk.topic, NOW), "{wanted}");
        assert_eq!(previewed(&desk, wanted).unwrap(), before, "{wanted}");
    }

    #[test]
    fn a_preview_is_what_the_write_shows() {
        let mask = SecretText::new(SECRET).masked_as_one_of_several();
        check(&json!({}));
        check(&json!({ "inputSchema": "EventGrid", "defaultTimeToLive": "PT60S" }));
        check(&billing(
            "retryPolicy",
            &json!({ "maxDeliveryAttempts": 5 }),
        ));
        check(&billing(
            "signing",
            &json!({ "secrets": [mask.expose(), OTHER] }),
        ));
        check(&billing("signing", &json!({ "secrets": [mask.expose()] })));
        check(&billing(
            "signing",
            &json!({ "secrets": ["(masked)", "(masked)"] }),
        ));
        let header = |value| json!([{ "name": "X-KEY", "value": value, "isSecret": true }]);
        check(&billing("deliveryHeaders", &header("(masked)")));
        check(&billing("deliveryHeaders", &header("other")));
        check(&billing(
            "endpoint",
            &json!({ "url": "https://other.example/" }),
        ));
    }

    #[test]
    fn an_endpoint_that_must_consent_is_pending() {
        let wanted = billing(
            "endpoint",
            &json!({ "url": "https://billing.example/", "validation": "CloudEvents" }),
        );
        let next = previewed(&Desk::with_billing(), &wanted).unwrap();
        let status = next
            .subscriptions
            .values()
            .next()
            .and_then(|billing| billing.status.clone())
            .unwrap();
        assert_eq!(
            (
                format!("{:?}", status.state).as_str(),
                status.handshake.unwrap().code
            ),
            ("Pending", None)
        );
    }

    fn refused(wanted: &Value, kind: ProblemKind, member: &str) {
        let problem = previewed(&Desk::with_billing(), wanted).unwrap_err();
        assert_eq!(
            (problem.kind, problem.member.as_deref()),
            (kind, Some(member)),
            "{wanted}"
        );
    }

    #[test]
    fn a_write_that_the_server_refuses_has_no_preview() {
        let bad = ProblemKind::BadSettings;
        let mask = json!({ "secrets": ["(masked:0a1b2c3d)"] });
        refused(
            &billing("signing", &mask),
            bad,
            "subscriptions.BILLING.signing.secrets[0]",
        );
        let past = json!("2020-01-01T00:00:00Z");
        refused(
            &billing("expirationTimeUtc", &past),
            bad,
            "subscriptions.BILLING.expirationTimeUtc",
        );
        refused(
            &billing("name", &json!("crm")),
            bad,
            "subscriptions.BILLING.name",
        );
        refused(&json!({ "name": "other" }), bad, "name");
    }

    /// The preview is refused as the write is.
    fn refused_alike(wanted: &Value, member: &str) {
        let mut desk = Desk::with_billing();
        let headers = json!([{ "name": "x-open", "value": "open" }]);
        let url = "https://billing.example/hooks";
        desk.put(
            "billing",
            json!({ "endpoint": { "url": url }, "deliveryHeaders": headers }),
        )
        .unwrap();
        let of = |problem: ApiProblem| (problem.kind, problem.member, problem.detail);
        let previewed = of(previewed(&desk, wanted).unwrap_err());
        assert_eq!(
            previewed,
            of(desk.put_topic(wanted.clone()).unwrap_err()),
            "{wanted}"
        );
        assert_eq!(previewed.1.as_deref(), Some(member), "{wanted}");
    }

    #[test]
    fn a_masked_header_without_a_secret_to_keep_has_no_preview() {
        let header = |name: &str| json!([{ "name": name, "value": "(masked)", "isSecret": true }]);
        let value = "subscriptions.Billing.deliveryHeaders[0].value";
        refused_alike(&billing("deliveryHeaders", &header("x-renamed")), value);
        refused_alike(&billing("deliveryHeaders", &header("x-open")), value);
        let new = json!({ "endpoint": { "url": "https://a.example/" }, "deliveryHeaders": header("x-key") });
        let value = "subscriptions.crm.deliveryHeaders[0].value";
        refused_alike(&json!({ "subscriptions": { "crm": new } }), value);
    }

    #[test]
    fn an_endpoint_s_url_that_is_too_long_has_no_preview() {
        let url =
            |host: &str, bytes: usize| format!("{:x<bytes$}", format!("https://{host}.example/"));
        let of = |first: usize, fallback: usize| {
            let urls = json!({ "url": url("a", first), "fallbackUrl": url("b", fallback) });
            billing("endpoint", &urls)
        };
        let fits = URL_BYTES_MAX;
        let long = URL_BYTES_MAX + 1;
        previewed(&Desk::with_billing(), &of(fits, fits)).unwrap();
        refused_alike(&of(long, fits), "subscriptions.BILLING.endpoint.url");
        refused_alike(
            &of(fits, long),
            "subscriptions.BILLING.endpoint.fallbackUrl",
        );
    }

    #[test]
    fn a_subscription_that_was_not_written_must_accept_the_topic() {
        let url = "https://billing.example/hooks";
        let mut desk = Desk::new();
        desk.put_topic(json!({ "inputSchema": "EventGrid" }))
            .unwrap();
        desk.put(
            "crm",
            json!({ "endpoint": { "url": url }, "deliverySchema": "EventGrid" }),
        )
        .unwrap();
        let problem = previewed(&desk, &json!({ "inputSchema": "CloudEvents" })).unwrap_err();
        let member = problem.member.as_deref();
        assert_eq!(
            (problem.kind, member),
            (
                ProblemKind::Incompatible,
                Some("subscriptions.crm.deliverySchema")
            )
        );
    }
}
