//! Editing: the settings of a topic after a write, an operator's action or a rotation.
//!
//! Names are kept as their creator wrote them, masked secrets stand for the present ones, and the
//! state of a subscription follows from the present state. Time and chance are arguments.

mod change;
mod checks;
mod preview;
mod rules;
#[cfg(test)]
mod tests;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

pub(crate) use self::change::is_corrected;
pub use self::change::{PendingHandshake, SubscriptionChange};
use self::change::{failed_notices, links_changed, may_deliver};
use self::checks::{
    bad_setting, bad_settings, check_compiled_topic, check_expiration, normal_endpoint,
    require_distinct, require_same_name, rotation_problem, within_subscription, written_url,
};
pub use self::preview::preview_topic;
pub use self::rules::{check_subscription, check_topic};
use super::{
    EndpointSettings, RotateSecret, RotatedSecret, SecretText, SigningSettings,
    SubscriptionSettings, TopicSettings, compile_subscription, resolve_masks,
};
use crate::api::handshake::{status_after_action, status_after_write};
use crate::api::problem::{ApiProblem, ProblemKind};
use crate::api::{NewHandshake, SubscriptionAction};
use crate::model::{
    AddressPolicy, EndpointUrl, MADE_SECRET_BYTES, PublishUrls, SignatureKind, SigningSecret,
    SubscriptionName, Timestamp, TopicName,
};

/// Bytes of a publish key, and of the code of a handshake.
const KEY_BYTES: usize = 32;

/// An editor of settings, at one moment of one installation.
pub struct SettingsEditor<'a, R> {
    /// Chance, for keys and secrets: fills bytes.
    pub random: R,
    /// The time.
    pub now: Timestamp,
    /// The addresses that endpoints may have.
    pub addresses: &'a AddressPolicy,
    /// The URLs that no endpoint may have.
    pub own_publish_urls: &'a PublishUrls,
}

impl<R: Fn(&mut [u8])> SettingsEditor<'_, R> {
    /// Puts a topic's settings. Subscriptions that were not written stay.
    pub fn put_topic(
        &self,
        topic: &TopicName,
        settings: &mut TopicSettings,
        written: &TopicSettings,
    ) -> Result<Vec<SubscriptionChange>, ApiProblem> {
        require_same_name(written.name.as_ref().map(TopicName::as_str), topic.as_str())?;
        require_distinct(written)?;
        let subscriptions = std::mem::take(&mut settings.subscriptions);
        let delivery_failed_notices = failed_notices(settings, written);
        *settings = TopicSettings {
            name: None,
            endpoint: None,
            keys: None,
            delivery_failed_notices,
            subscriptions,
            ..written.clone()
        };
        let put = written.subscriptions.iter().map(|(name, subscription)| {
            let put = self.insert_subscription(settings, name, subscription);
            put.map_err(|problem| within_subscription(name, problem))
        });
        let changes: Vec<_> = put.collect::<Result<_, _>>()?;
        check_compiled_topic(topic, settings, changes.iter().map(|change| &change.name))?;
        Ok(changes)
    }

    /// Puts a subscription of this topic.
    pub fn put_subscription(
        &self,
        topic: &TopicName,
        settings: &mut TopicSettings,
        name: &SubscriptionName,
        written: &SubscriptionSettings,
    ) -> Result<SubscriptionChange, ApiProblem> {
        let change = self.insert_subscription(settings, name, written)?;
        let stored = &settings.subscriptions[&change.name];
        compile_subscription(topic, settings.input_schema, &change.name, stored)
            .map_err(|error| bad_settings(&error))?;
        check_compiled_topic(topic, settings, [&change.name])?;
        Ok(change)
    }

    /// Applies an operator's action to a subscription, and returns the handshake that is to be run
    /// now.
    pub fn apply_action(
        &self,
        action: SubscriptionAction,
        name: &SubscriptionName,
        settings: &mut SubscriptionSettings,
    ) -> Result<Option<PendingHandshake>, ApiProblem> {
        let code = self.new_handshake_code();
        let status = status_after_action(
            action,
            settings,
            NewHandshake {
                now: self.now,
                code: &code,
            },
        )
        .map_err(|wrong| ApiProblem::new(ProblemKind::WrongState).detail(wrong.to_string()))?;
        let handshake = PendingHandshake::from_status(name, &status, &code);
        settings.status = Some(status);
        Ok(handshake)
    }

    /// Rotates the signing secret of a subscription, and returns the new one in clear.
    pub fn rotate_secret(
        &self,
        signing: &mut SigningSettings,
        written: &RotateSecret,
    ) -> Result<RotatedSecret, ApiProblem> {
        let secret = self.new_signing_secret(signing.kind_to_make(written.kind));
        let next = signing
            .after_rotation(&secret, written, self.now)
            .map_err(|error| rotation_problem(&error))?;
        let ended = signing.secrets_ended_in(&next);
        *signing = next;
        let public_key = SigningSecret::parse(secret.expose())
            .ok()
            .and_then(|secret| secret.public_key());
        Ok(RotatedSecret {
            kind: SignatureKind::for_secret(secret.expose()),
            public_key: public_key.map(|key| key.to_string()),
            signing: signing.masked(),
            secret,
            ended,
        })
    }

    /// A new publish key.
    pub fn new_publish_key(&self) -> SecretText {
        SecretText::new(STANDARD.encode(self.random_bytes::<KEY_BYTES>()))
    }

    /// A new code for a handshake, as it fits into a URL.
    fn new_handshake_code(&self) -> SecretText {
        SecretText::new(URL_SAFE_NO_PAD.encode(self.random_bytes::<KEY_BYTES>()))
    }

    /// A new signing secret.
    fn new_signing_secret(&self, kind: SignatureKind) -> SecretText {
        SecretText::new(
            kind.make_secret(&self.random_bytes::<MADE_SECRET_BYTES>())
                .expose(),
        )
    }

    fn random_bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        (self.random)(&mut bytes);
        bytes
    }

    /// Puts a subscription among the others.
    fn insert_subscription(
        &self,
        settings: &mut TopicSettings,
        name: &SubscriptionName,
        wanted: &SubscriptionSettings,
    ) -> Result<SubscriptionChange, ApiProblem> {
        require_same_name(
            wanted.name.as_ref().map(SubscriptionName::as_str),
            name.as_str(),
        )?;
        let name = settings.stored_name(name).unwrap_or(name).clone();
        let present = settings.subscriptions.get(&name);
        let endpoint = normal_endpoint(&wanted.endpoint)?;
        self.check_endpoints(present.map(|present| &present.endpoint), &endpoint)?;
        check_expiration(wanted.expiration_time_utc, self.now)?;
        let (signing, has_made_secret) = self.signing_to_store(present, &wanted.signing)?;
        let present_headers = present
            .map(|present| present.delivery_headers.as_slice())
            .unwrap_or_default();
        let delivery_headers = wanted
            .delivery_headers
            .iter()
            .map(|header| header.resolve_mask(present_headers));
        let code = self.new_handshake_code();
        let status = status_after_write(
            present,
            &endpoint,
            NewHandshake {
                now: self.now,
                code: &code,
            },
        );
        let does_deliver = may_deliver(&status);
        let handshake = PendingHandshake::from_status(&name, &status, &code);
        let stored = SubscriptionSettings {
            name: None,
            endpoint,
            delivery_headers: delivery_headers.collect(),
            signing,
            status: Some(status),
            waiting: None,
            last_outcome: None,
            health: None,
            circuit: None,
            ..wanted.clone()
        };
        let change = SubscriptionChange {
            is_new: present.is_none(),
            has_made_secret,
            is_corrected: does_deliver && is_corrected(present, &stored),
            links_changed: links_changed(present, &stored),
            handshake,
            name,
        };
        settings.subscriptions.insert(change.name.clone(), stored);
        Ok(change)
    }

    /// The secrets to store, and whether one was made.
    fn signing_to_store(
        &self,
        present: Option<&SubscriptionSettings>,
        written: &SigningSettings,
    ) -> Result<(SigningSettings, bool), ApiProblem> {
        if present.is_none() && written.secrets.is_none() {
            return Ok((
                SigningSettings::from_timed([(self.new_signing_secret(SignatureKind::V1), None)]),
                true,
            ));
        }
        let present = present
            .map(|present| present.signing.clone())
            .unwrap_or_default();
        let resolved = resolve_masks(written, &present, self.now);
        let signing = resolved.map_err(|error| bad_setting(error.member(), error.to_string()))?;
        Ok((signing, false))
    }

    fn check_endpoints(
        &self,
        present: Option<&EndpointSettings>,
        wanted: &EndpointSettings,
    ) -> Result<(), ApiProblem> {
        let is_new = present.is_none_or(|present| !EndpointUrl::is_same(&present.url, &wanted.url));
        self.check_endpoint("endpoint.url", &wanted.url, is_new)?;
        let Some(fallback) = &wanted.fallback_url else {
            return Ok(());
        };
        let present = present.and_then(|present| present.fallback_url.as_deref());
        let is_new = present.is_none_or(|present| !EndpointUrl::is_same(present, fallback));
        self.check_endpoint("endpoint.fallbackUrl", fallback, is_new)
    }

    /// Checks a URL. A publish URL that an older release accepted stays while it is not changed: it
    /// may be no loop, and a loop ends by its hops.
    fn check_endpoint(&self, member: &str, url: &str, is_new: bool) -> Result<(), ApiProblem> {
        let url = written_url(member, url)?;
        self.addresses
            .check_link(&url.link())
            .map_err(|refusal| bad_setting(member, refusal.to_string()))?;
        if is_new {
            self.own_publish_urls
                .refuse_own_url(&url)
                .map_err(|own| bad_setting(member, own.to_string()))
        } else {
            Ok(())
        }
    }
}
