use std::cell::Cell;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::api::{IsoTimestamp, StatusState};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const BILLING: &str = "https://billing.example/hooks";

/// Edits with bytes that are never the same twice.
pub(super) struct Desk {
    policy: AddressPolicy,
    own: PublishUrls,
    drawn: Cell<u8>,
    pub(super) topic: TopicName,
    pub(super) settings: TopicSettings,
}

impl Desk {
    pub(super) fn new() -> Self {
        let own = PublishUrls::default().with_base("https://publish.example".parse().ok());
        let topic = TopicName::parse("Orders").unwrap();
        let drawn = Cell::new(0);
        Self {
            policy: AddressPolicy::default(),
            own,
            drawn,
            topic,
            settings: TopicSettings::default(),
        }
    }

    /// A topic with the subscription `Billing`.
    pub(super) fn with_billing() -> Self {
        let mut desk = Self::new();
        desk.put("Billing", json!({ "endpoint": { "url": BILLING } }))
            .unwrap();
        desk
    }

    fn editor(&self) -> SettingsEditor<'_, impl Fn(&mut [u8])> {
        let random = |bytes: &mut [u8]| {
            self.drawn.set(self.drawn.get() + 1);
            bytes.fill(self.drawn.get());
        };
        SettingsEditor {
            random,
            now: NOW,
            addresses: &self.policy,
            own_publish_urls: &self.own,
        }
    }

    pub(super) fn put(
        &mut self,
        name: &str,
        written: Value,
    ) -> Result<SubscriptionChange, ApiProblem> {
        let name = named(name);
        let written = serde_json::from_value(written).unwrap();
        let mut settings = self.settings.clone();
        let change = self
            .editor()
            .put_subscription(&self.topic, &mut settings, &name, &written)?;
        self.settings = settings;
        Ok(change)
    }

    pub(super) fn put_topic(
        &mut self,
        written: Value,
    ) -> Result<Vec<SubscriptionChange>, ApiProblem> {
        let mut settings = self.settings.clone();
        let written = serde_json::from_value(written).unwrap();
        let changes = self
            .editor()
            .put_topic(&self.topic, &mut settings, &written)?;
        self.settings = settings;
        Ok(changes)
    }

    fn stored(&self, name: &str) -> &SubscriptionSettings {
        self.settings.find_subscription(&named(name)).unwrap().1
    }
}

fn named(name: &str) -> SubscriptionName {
    SubscriptionName::parse(name).unwrap()
}

fn refused<T: std::fmt::Debug>(result: Result<T, ApiProblem>, kind: ProblemKind, member: &str) {
    let problem = result.unwrap_err();
    assert_eq!(
        (problem.kind, problem.member.as_deref()),
        (kind, Some(member)),
        "{:?}",
        problem.detail
    );
    assert_eq!(problem.status, kind.status());
}

#[test]
fn a_subscription_keeps_the_name_its_creator_wrote() {
    let mut desk = Desk::with_billing();
    let change = desk
        .put(
            "BILLING",
            json!({ "name": "billing", "endpoint": { "url": BILLING } }),
        )
        .unwrap();
    assert_eq!((change.name.as_str(), change.is_new), ("Billing", false));
    assert_eq!(desk.settings.subscriptions.len(), 1);
    assert_eq!(desk.stored("Billing").name, None);
}

#[test]
fn a_name_that_differs_from_the_path_is_refused() {
    let mut desk = Desk::with_billing();
    let other = json!({ "name": "crm", "endpoint": { "url": BILLING } });
    refused(
        desk.put("Billing", other.clone()),
        ProblemKind::BadSettings,
        "name",
    );
    let within = json!({ "subscriptions": { "Billing": other } });
    refused(
        desk.put_topic(within),
        ProblemKind::BadSettings,
        "subscriptions.Billing.name",
    );
    refused(
        desk.put_topic(json!({ "name": "Invoices" })),
        ProblemKind::BadSettings,
        "name",
    );
    assert!(
        desk.put_topic(json!({ "name": "ORDERS" }))
            .unwrap()
            .is_empty()
    );
    let one = json!({ "endpoint": { "url": BILLING } });
    let twice = json!({ "subscriptions": { "a": one, "A": one } });
    refused(
        desk.put_topic(twice),
        ProblemKind::BadSettings,
        "subscriptions.a",
    );
}

#[test]
fn subscriptions_that_were_not_written_stay() {
    let mut desk = Desk::with_billing();
    let written =
        json!({ "subscriptions": { "crm": { "endpoint": { "url": "https://crm.example" } } } });
    let changes = desk.put_topic(written).unwrap();
    assert_eq!(
        changes
            .iter()
            .map(|change| change.name.as_str())
            .collect::<Vec<_>>(),
        ["crm"]
    );
    assert_eq!(desk.settings.subscriptions.len(), 2);
}

/// A subscription that was not written and does not fit the new topic is a conflict.
#[test]
fn unwritten_incompatible_subscription_is_a_conflict() {
    let mut desk = Desk::with_billing();
    let mapped = json!({ "endpoint": { "url": BILLING }, "deliverySchema": "CloudEvents" });
    desk.put_topic(json!({ "inputSchema": "EventGrid", "subscriptions": { "Billing": mapped } }))
        .unwrap();
    desk.put(
        "Billing",
        json!({ "endpoint": { "url": BILLING }, "deliverySchema": "EventGrid" }),
    )
    .unwrap();
    let member = "subscriptions.Billing.deliverySchema";
    refused(desk.put_topic(json!({})), ProblemKind::Incompatible, member);
    let written = json!({ "endpoint": { "url": BILLING }, "deliverySchema": "EventGrid" });
    refused(
        desk.put_topic(json!({ "subscriptions": { "Billing": written } })),
        ProblemKind::BadSettings,
        member,
    );
}

#[test]
fn a_secret_is_made_once_and_shown_once() {
    let mut desk = Desk::new();
    let written = json!({ "endpoint": { "url": BILLING } });
    let made = desk.put("Billing", written.clone()).unwrap();
    let shown = made
        .response_view(desk.stored("Billing"), NOW)
        .signing
        .secrets
        .unwrap();
    assert!(
        made.has_made_secret && shown[0].expose().starts_with("whsec_"),
        "{shown:?}"
    );
    let kept = desk.put("Billing", written).unwrap();
    let masked = kept
        .response_view(desk.stored("Billing"), NOW)
        .signing
        .secrets
        .unwrap();
    assert!(
        !kept.has_made_secret && masked[0].expose().starts_with("(masked:"),
        "{masked:?}"
    );
    assert_eq!(desk.stored("Billing").signing.secrets, Some(shown));
    let stranger =
        json!({ "endpoint": { "url": BILLING }, "signing": { "secrets": ["(masked:00000000)"] } });
    refused(
        desk.put("Billing", stranger),
        ProblemKind::BadSettings,
        "signing.secrets[0]",
    );
}

#[test]
fn a_rotation_shows_the_new_secret_and_masks_the_others() {
    let desk = Desk::with_billing();
    let mut signing = desk.stored("Billing").signing.clone();
    let rotated = desk
        .editor()
        .rotate_secret(&mut signing, &RotateSecret::default())
        .unwrap();
    assert_eq!(signing.secrets.as_ref().unwrap()[0], rotated.secret);
    assert_eq!(
        (rotated.kind, rotated.public_key),
        (SignatureKind::V1, None)
    );
    assert!(
        rotated
            .signing
            .secrets
            .unwrap()
            .iter()
            .all(|it| it.expose().starts_with("(masked:"))
    );
    let long: RotateSecret = serde_json::from_value(json!({ "overlap": "P8D" })).unwrap();
    refused(
        desk.editor().rotate_secret(&mut signing, &long),
        ProblemKind::BadSettings,
        "overlap",
    );
}

#[test]
fn a_rotation_names_the_secrets_that_it_ended() {
    let desk = Desk::with_billing();
    let mut signing = desk.stored("Billing").signing.clone();
    let first = signing.secrets.as_ref().unwrap()[0].masked_as_one_of_several();
    let mut rotate = |written| desk.editor().rotate_secret(&mut signing, &written);
    let v1 = RotateSecret::default;
    assert_eq!(
        [rotate(v1()).unwrap().ended, rotate(v1()).unwrap().ended],
        [vec![], vec![]]
    );
    assert_eq!(rotate(v1()).unwrap_err().member.as_deref(), Some("drop"));
    let drops = RotateSecret { drop: true, ..v1() };
    assert_eq!(rotate(drops).unwrap().ended, [first]);
    let v1a = || RotateSecret {
        kind: Some(SignatureKind::V1a),
        ..v1()
    };
    assert_eq!(rotate(v1a()).unwrap_err().kind, ProblemKind::Incompatible);
}

#[test]
fn an_endpoint_is_corrected_only_on_its_own_link() {
    let mut desk = Desk::with_billing();
    let mut check = |url: &str, is_corrected: bool, links_changed: usize| {
        let change = desk
            .put("Billing", json!({ "endpoint": { "url": url } }))
            .unwrap();
        assert_eq!(
            (change.is_corrected, change.links_changed.len()),
            (is_corrected, links_changed),
            "{url}"
        );
    };
    check(BILLING, false, 0);
    check("https://billing.example/v2", true, 0);
    check("https://other.example/v2", false, 2);
}

/// A gateway that refused the token of the requests may take another one.
#[test]
fn endpoint_that_gets_other_requests_is_corrected() {
    let mut desk = Desk::with_billing();
    let mut check = |more: Value, is_corrected: bool| {
        let mut settings = json!({ "endpoint": { "url": BILLING } });
        settings
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let change = desk.put("Billing", settings).unwrap();
        assert_eq!(change.is_corrected, is_corrected, "{more}");
    };
    let headers =
        |value: &str| json!({ "deliveryHeaders": [{ "name": "x-token", "value": value }] });
    check(headers("wrong"), true);
    check(headers("wrong"), false);
    check(headers("right"), true);
    let mut with = headers("right");
    with["contentMode"] = json!("binary");
    check(with.clone(), true);
    check(with.clone(), false);
    with["batching"] = json!({ "maxEventsPerBatch": 5 });
    with["contentMode"] = json!("structured");
    check(with.clone(), true);
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    with["signing"] = json!({ "secrets": [secret] });
    check(with.clone(), true);
    check(with.clone(), false);
    with["filter"] = json!({ "includedEventTypes": ["paid"] });
    with["retryPolicy"] = json!({ "maxDeliveryAttempts": 3 });
    check(with, false);
}

#[test]
fn the_first_write_joins_every_link() {
    let fallback = json!({ "url": BILLING, "fallbackUrl": "https://standby.example" });
    let change = Desk::new()
        .put("Billing", json!({ "endpoint": fallback }))
        .unwrap();
    assert_eq!((change.is_new, change.links_changed.len()), (true, 2));
}

/// Endpoint that is a publish URL of this installation is refused unless it was there before.
#[test]
fn publish_url_endpoint_is_refused_unless_already_present() {
    let own = json!({ "endpoint": { "url": "https://publish.example/topics/orders/events" } });
    let mut desk = Desk::new();
    refused(
        desk.put("Loop", own.clone()),
        ProblemKind::BadSettings,
        "endpoint.url",
    );
    let fallback = own["endpoint"]["url"].clone();
    let second = json!({ "endpoint": { "url": BILLING, "fallbackUrl": fallback } });
    refused(
        desk.put("Loop", second),
        ProblemKind::BadSettings,
        "endpoint.fallbackUrl",
    );
    desk.own = PublishUrls::default();
    desk.put("Loop", own.clone()).unwrap();
    desk.own = Desk::new().own;
    desk.put("Loop", own).unwrap();
}

#[test]
fn an_address_that_is_not_open_is_refused() {
    let private = json!({ "endpoint": { "url": "https://10.0.0.1/hooks" } });
    refused(
        Desk::new().put("a", private),
        ProblemKind::BadSettings,
        "endpoint.url",
    );
}

#[test]
fn a_subscription_ends_in_the_future() {
    let ending = |at: Timestamp| json!({ "endpoint": { "url": BILLING }, "expirationTimeUtc": at.to_string() });
    let mut desk = Desk::new();
    refused(
        desk.put("a", ending(NOW)),
        ProblemKind::BadSettings,
        "expirationTimeUtc",
    );
    desk.put("a", ending(NOW + Duration::from_millis(1)))
        .unwrap();
}

#[test]
fn an_endpoint_that_must_consent_is_asked_until_it_has_answered() {
    let written = json!({ "endpoint": { "url": BILLING, "validation": "CloudEvents" } });
    let mut desk = Desk::new();
    let first = desk.put("Billing", written.clone()).unwrap();
    let asked = first.handshake.unwrap();
    assert_eq!(asked.subscription.as_str(), "Billing");
    let again = desk.put("billing", written.clone()).unwrap();
    assert_eq!(
        again.handshake,
        Some(asked),
        "the write before could not ask it"
    );
    let mut settings = desk.stored("Billing").clone();
    let handshake = settings
        .status
        .as_mut()
        .and_then(|status| status.handshake.as_mut())
        .unwrap();
    handshake.asked_at = Some(IsoTimestamp(NOW));
    desk.settings
        .subscriptions
        .insert(named("Billing"), settings);
    assert_eq!(desk.put("Billing", written).unwrap().handshake, None);
}

#[test]
fn an_action_changes_the_state_or_says_why_not() {
    let mut desk = Desk::with_billing();
    let mut settings = desk.stored("Billing").clone();
    let billing = named("Billing");
    let wrong = desk
        .editor()
        .apply_action(SubscriptionAction::Resume, &billing, &mut settings)
        .unwrap_err();
    assert_eq!(wrong.kind, ProblemKind::WrongState);
    assert_eq!(
        desk.editor()
            .apply_action(SubscriptionAction::Pause, &billing, &mut settings),
        Ok(None)
    );
    assert_eq!(settings.status.as_ref().unwrap().state, StatusState::Paused);
    desk.put(
        "Billing",
        json!({ "endpoint": { "url": BILLING, "validation": "EventGrid" } }),
    )
    .unwrap();
    let mut settings = desk.stored("Billing").clone();
    let asked = desk
        .editor()
        .apply_action(SubscriptionAction::Validate, &billing, &mut settings)
        .unwrap()
        .unwrap();
    assert_eq!(
        (asked.subscription, settings.status.unwrap().state),
        (billing, StatusState::Pending)
    );
}

/// Keys are never made twice.
#[test]
fn new_publish_keys_differ() {
    let desk = Desk::new();
    let editor = desk.editor();
    assert_ne!(editor.new_publish_key(), editor.new_publish_key());
}

#[test]
fn url_in_another_spelling_is_stored_in_its_normal_form() {
    let mut desk = Desk::new();
    let written = json!({ "endpoint": {
        "url": "https://Billing.Example", "fallbackUrl": "https://Billing.example:8443?a=1",
    } });
    desk.put("Billing", written.clone()).unwrap();
    let stored = &desk.stored("Billing").endpoint;
    assert_eq!(
        (stored.url.as_str(), stored.fallback_url.as_deref()),
        (
            "https://billing.example/",
            Some("https://billing.example:8443/?a=1")
        )
    );
    let again = desk.put("Billing", written).unwrap();
    assert!(!again.is_corrected && again.links_changed.is_empty());
}

#[test]
fn url_that_needs_a_repair_is_refused_by_its_member() {
    let bad = ProblemKind::BadSettings;
    let mut desk = Desk::with_billing();
    let of =
        |url: &str, fallback: &str| json!({ "endpoint": { "url": url, "fallbackUrl": fallback } });
    refused(
        desk.put("x", of("https:a.example", "https://b.example/")),
        bad,
        "endpoint.url",
    );
    refused(
        desk.put("x", of("https://a.example/", "https://b.example\\")),
        bad,
        "endpoint.fallbackUrl",
    );
    // Nor is one accepted that an older release stored.
    let billing = desk.settings.subscriptions.values_mut().next().unwrap();
    billing.endpoint.url = "https:billing.example".to_owned();
    let same = json!({ "endpoint": { "url": "https:billing.example" } });
    refused(desk.put("Billing", same), bad, "endpoint.url");
}
