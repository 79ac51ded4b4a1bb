//! What a write makes of a topic's record. Time, chance and the address rule are given; nothing is stored here.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::api::{
    EndpointSettings, IsoTimestamp, SecretText, SettingsError, SigningSettings, StatusState, StatusView,
    SubscriptionSettings, TierKeys, TopicSettings, compile_subscription, compile_topic,
};
use posthaste_core::attempt::handshake::{Begin, written};
use posthaste_core::attempt::signature::{MADE_SECRET_BYTES, SignatureKind};
use posthaste_core::model::address::AddressPolicy;
use posthaste_core::model::endpoint::{EndpointUrl, Link};
use posthaste_core::model::identity::Creations;
use posthaste_core::model::name::{SubscriptionName, TopicName};
use posthaste_core::model::publish_url::PublishUrls;
use posthaste_core::model::time::Timestamp;
use posthaste_core::stored::topic::{RECORD_VERSION, TopicRecord};
use posthaste_ports::Entropy;

use crate::force::links;
use crate::handshakes::Begun;

/// Bytes of a publish key, and of the code of a handshake.
const KEY_BYTES: usize = 32;

/// What edits need besides what was written.
#[derive(Debug)]
pub(crate) struct Editor<'a, E> {
    /// Chance, for keys and secrets.
    pub(crate) entropy: &'a E,
    /// The time.
    pub(crate) now: Timestamp,
    /// Where endpoints may be.
    pub(crate) policy: &'a AddressPolicy,
    /// The URLs that no endpoint may have.
    pub(crate) own_publish_urls: &'a PublishUrls,
}

/// A subscription that was put into a record.
#[derive(Debug)]
pub(crate) struct Placed {
    /// Its name, as its creator wrote it.
    pub(crate) name: SubscriptionName,
    /// Whether it was not there before.
    pub(crate) is_new: bool,
    /// Whether its secret was made just now, and is to be shown this once.
    pub(crate) has_made_secret: bool,
    /// Whether it delivers, and its endpoint is another one on the same link by this write: what is known of the old one
    /// says nothing of it.
    pub(crate) is_corrected: bool,
    /// The links that its events went to and do not any more, or go to by this write: what may be known of it there is of
    /// another time.
    pub(crate) links_changed: Vec<Link>,
    /// The handshake that is to be run after this write.
    pub(crate) begun: Option<Begun>,
}

impl<E: Entropy> Editor<'_, E> {
    /// The record after a topic was put. The subscriptions that were not written stay.
    pub(crate) fn put_topic(
        &self,
        name: &TopicName,
        present: Option<TopicRecord>,
        written: &TopicSettings,
    ) -> Result<(TopicRecord, Vec<Placed>), Problem> {
        let mut record = present.unwrap_or_else(|| self.new_record(name));
        require_same_name("name", written.name.as_ref().map(TopicName::as_str), name.as_str())?;
        require_distinct(written)?;
        record.settings.input_schema = written.input_schema;
        record.settings.input_mapping.clone_from(&written.input_mapping);
        record.settings.default_time_to_live = written.default_time_to_live;
        record.settings.auto_delete_on_idle = written.auto_delete_on_idle;
        record.settings.notices_topic.clone_from(&written.notices_topic);
        let mut placed = Vec::new();
        for (name, subscription) in &written.subscriptions {
            let within = |problem: Problem| within_subscription(name, problem);
            placed.push(self.place(&mut record.settings, name, subscription).map_err(within)?);
        }
        check_whole(&record, &placed)?;
        Ok((record, placed))
    }

    /// The record after a subscription was put.
    pub(crate) fn put_subscription(
        &self,
        mut record: TopicRecord,
        name: &SubscriptionName,
        written: &SubscriptionSettings,
    ) -> Result<(TopicRecord, Placed), Problem> {
        let placed = self.place(&mut record.settings, name, written)?;
        if let Some(settings) = record.settings.subscriptions.get(&placed.name) {
            compile_subscription(&record.name, record.settings.input_schema, &placed.name, settings)
                .map_err(|error| bad_settings(&error))?;
        }
        check_whole(&record, std::slice::from_ref(&placed))?;
        Ok((record, placed))
    }

    /// A key of random bytes.
    pub(crate) fn key(&self) -> SecretText {
        SecretText::new(STANDARD.encode(self.key_bytes()))
    }

    /// What an endpoint proves itself with, as it fits into a URL.
    pub(crate) fn code(&self) -> SecretText {
        SecretText::new(URL_SAFE_NO_PAD.encode(self.key_bytes()))
    }

    fn key_bytes(&self) -> [u8; KEY_BYTES] {
        let mut bytes = [0; KEY_BYTES];
        self.entropy.fill(&mut bytes);
        bytes
    }

    fn new_record(&self, name: &TopicName) -> TopicRecord {
        TopicRecord {
            v: RECORD_VERSION,
            name: name.clone(),
            key1: self.key(),
            key2: self.key(),
            tier_keys: TierKeys::default(),
            created_at: self.now,
            updated_at: self.now,
            deleted_at: None,
            creations: Creations::default(),
            settings: TopicSettings::default(),
        }
    }

    /// Puts a subscription among the others: its name as first written, its secrets resolved, its state as it follows
    /// from the present one.
    fn place(
        &self,
        settings: &mut TopicSettings,
        name: &SubscriptionName,
        wanted: &SubscriptionSettings,
    ) -> Result<Placed, Problem> {
        require_same_name("name", wanted.name.as_ref().map(SubscriptionName::as_str), name.as_str())?;
        let kept_name = spelling(settings, name).unwrap_or(name).clone();
        let present = settings.subscriptions.get(&kept_name);
        self.check_endpoints(present.map(|present| &present.endpoint), &wanted.endpoint)?;
        self.check_expiration(wanted.expiration_time_utc)?;
        let (signing, has_made_secret) = self.signing(present, &wanted.signing)?;
        let present_headers = present.map(|present| present.delivery_headers.as_slice()).unwrap_or_default();
        let delivery_headers = wanted.delivery_headers.iter().map(|header| header.resolved(present_headers));
        let code = self.code();
        let status = written(present, &wanted.endpoint, Begin { now: self.now, code: &code });
        let begun = begun(&kept_name, &status, &code);
        let is_new = present.is_none();
        let is_corrected = delivers(&status) && is_corrected(present, wanted);
        let before = present.map(|present| links(&present.endpoint)).unwrap_or_default();
        let links_changed = before.symmetric_difference(&links(&wanted.endpoint)).cloned().collect();
        let stored = SubscriptionSettings {
            name: None,
            delivery_headers: delivery_headers.collect(),
            signing,
            status: Some(status),
            ..wanted.clone()
        };
        settings.subscriptions.insert(kept_name.clone(), stored);
        Ok(Placed { name: kept_name, is_new, has_made_secret, is_corrected, links_changed, begun })
    }

    /// The secrets to store, and whether one was made.
    fn signing(
        &self,
        present: Option<&SubscriptionSettings>,
        written: &SigningSettings,
    ) -> Result<(SigningSettings, bool), Problem> {
        let none = SigningSettings::default();
        let present = match present {
            None if written.secrets.is_none() => {
                return Ok((SigningSettings::of([(self.secret(SignatureKind::V1), None)]), true));
            }
            None => &none,
            Some(present) => &present.signing,
        };
        let resolved = written.resolved(present, self.now).map_err(|error| {
            Problem::new(ProblemKind::BadSettings).member(error.member()).detail(error.to_string())
        })?;
        Ok((resolved, false))
    }

    /// A signing secret of random bytes.
    pub(crate) fn secret(&self, kind: SignatureKind) -> SecretText {
        let mut bytes = [0; MADE_SECRET_BYTES];
        self.entropy.fill(&mut bytes);
        SecretText::new(kind.secret(&bytes).expose())
    }

    fn check_endpoints(
        &self,
        present: Option<&EndpointSettings>,
        wanted: &EndpointSettings,
    ) -> Result<(), Problem> {
        let is_new = present.is_none_or(|present| present.url != wanted.url);
        self.check_endpoint("endpoint.url", &wanted.url, is_new)?;
        let Some(fallback) = &wanted.fallback_url else { return Ok(()) };
        let is_new = present.is_none_or(|present| present.fallback_url.as_ref() != Some(fallback));
        self.check_endpoint("endpoint.fallbackUrl", fallback, is_new)
    }

    /// A publish URL that an older release took stays while it is not changed: what it has been good for so far may
    /// be no loop, and one ends by its hops.
    fn check_endpoint(&self, member: &str, url: &str, is_new: bool) -> Result<(), Problem> {
        let bad = |detail: String| Problem::new(ProblemKind::BadSettings).member(member).detail(detail);
        let url = EndpointUrl::parse_written(url).map_err(|error| bad(error.to_string()))?;
        self.policy.check_link(&url.link()).map_err(|refusal| bad(refusal.to_string()))?;
        if is_new { self.own_publish_urls.check(&url).map_err(|own| bad(own.to_string())) } else { Ok(()) }
    }

    fn check_expiration(&self, written: Option<IsoTimestamp>) -> Result<(), Problem> {
        match written {
            Some(IsoTimestamp(ends_at)) if ends_at <= self.now => {
                let detail = format!("{ends_at} is not in the future");
                Err(Problem::new(ProblemKind::BadSettings).member("expirationTimeUtc").detail(detail))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Whether events go out in this state, or will as soon as the endpoint consents.
fn delivers(status: &StatusView) -> bool {
    matches!(status.state, StatusState::Active | StatusState::Pending)
}

fn is_corrected(present: Option<&SubscriptionSettings>, wanted: &SubscriptionSettings) -> bool {
    let url = |settings: &SubscriptionSettings| EndpointUrl::parse(&settings.endpoint.url).ok();
    let both = present.and_then(url).zip(url(wanted));
    both.is_some_and(|(before, after)| before != after && before.link() == after.link())
}

/// The handshake that is to be run with this status: the one with this new code, or one that an earlier request began
/// and could not bring to its end.
pub(crate) fn begun(name: &SubscriptionName, status: &StatusView, new_code: &SecretText) -> Option<Begun> {
    let code = status.handshake.as_ref()?.code_to_ask_with()?;
    let is_to_be_run = code == new_code || status.state == StatusState::Pending;
    is_to_be_run.then(|| Begun { name: name.clone(), code: code.clone() })
}

/// The name under which a subscription is stored, if it is there in any case.
pub(crate) fn spelling<'a>(
    settings: &'a TopicSettings,
    name: &SubscriptionName,
) -> Option<&'a SubscriptionName> {
    let is_same = |stored: &&SubscriptionName| stored.as_str().eq_ignore_ascii_case(name.as_str());
    settings.subscriptions.keys().find(is_same)
}

fn require_same_name(member: &str, written: Option<&str>, path: &str) -> Result<(), Problem> {
    match written {
        Some(written) if !written.eq_ignore_ascii_case(path) => {
            let detail = format!("differs from the name in the path, {path:?}");
            Err(Problem::new(ProblemKind::BadSettings).member(member).detail(detail))
        }
        Some(_) | None => Ok(()),
    }
}

fn require_distinct(written: &TopicSettings) -> Result<(), Problem> {
    let mut seen = BTreeSet::new();
    match written.subscriptions.keys().find(|name| !seen.insert(name.folded())) {
        None => Ok(()),
        Some(name) => {
            let problem = Problem::new(ProblemKind::BadSettings).member(format!("subscriptions.{name}"));
            Err(problem.detail("there is another of this name in another case"))
        }
    }
}

fn within_subscription(name: &SubscriptionName, problem: Problem) -> Problem {
    let member = problem.member.as_deref().unwrap_or_default();
    let member = format!("subscriptions.{name}.{member}");
    problem.member(member)
}

/// Checks the record as a whole. Where a subscription that was not written now cannot accept it, what was written is no
/// bad setting by itself.
fn check_whole(record: &TopicRecord, placed: &[Placed]) -> Result<(), Problem> {
    let compiled = compile_topic(&record.name, &record.settings, record.topic_keys());
    let Err(error) = compiled else { return Ok(()) };
    let problem = bad_settings(&error);
    let subscription = error.member.strip_prefix("subscriptions.").and_then(|rest| rest.split('.').next());
    match subscription {
        Some(name) if !placed.iter().any(|placed| placed.name.as_str() == name) => {
            let kind = ProblemKind::Incompatible;
            Err(Problem { kind, ..problem }.status(kind.status()))
        }
        Some(_) | None => Err(problem),
    }
}

pub(crate) fn bad_settings(error: &SettingsError) -> Problem {
    Problem::new(ProblemKind::BadSettings).member(error.member.as_str()).detail(error.problem.to_string())
}
