//! Handshakes: asks endpoints whether they want events, and writes their answers down. A write leaves a
//! handshake in the record; here it is run, side by side with the others of the same request, before the
//! request is answered.

use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use posthaste_core::api::SubscriptionSettings;
use posthaste_core::api::edit::PendingHandshake;
use posthaste_core::attempt::handshake::{concluded, judge, judge_failure};
use posthaste_core::attempt::{Answer, Ask, Rate};
use posthaste_core::model::{HANDSHAKE_TIMEOUT_MAX, Subscription, Topic};
use posthaste_core::stored::TopicRecord;
use posthaste_ports::{Clock, Entropy, Ports};
use posthaste_services::{timeout, timeout_at};

use crate::error::{ApiError, unavailable, unknown_topic, unusable_record};
use crate::manage::Manage;
use crate::public_url::below;

/// Longest time for the handshakes of one request together: with [`HANDSHAKE_TIMEOUT_MAX`] enough for one
/// round of them and the start of another; the rest of the request's time is for the stores. An endpoint that
/// was not asked by then is still pending: the next write asks it with the same code, or it fails at its
/// deadline unless it calls back.
const HANDSHAKES_TIME_MAX: Duration = Duration::from_secs(14);

/// Most endpoints that are asked at once.
const HANDSHAKES_AT_ONCE_MAX: usize = 64;

impl<P: Ports> Manage<P> {
    /// Runs handshakes of this record until a time of the clock's `monotonic`, and answers the record with
    /// their outcome.
    pub(crate) async fn shake_hands(
        &self,
        record: TopicRecord,
        pending: Vec<PendingHandshake>,
        until: Duration,
    ) -> Result<TopicRecord, ApiError> {
        if pending.is_empty() {
            return Ok(record);
        }
        let answers = self.answers(&record, pending, self.rest(until).min(HANDSHAKES_TIME_MAX)).await?;
        if answers.is_empty() {
            return Ok(record);
        }
        let edit = |present: Option<TopicRecord>| {
            let record = present.ok_or_else(|| unknown_topic(&record.name))?;
            Ok((self.conclude(record, &answers), ()))
        };
        match timeout_at(&self.clock, until, self.change(&record.name, &[], edit)).await {
            Some(changed) => changed.map(|(record, ())| record),
            None => Err(unavailable().detail("what the endpoint said could not be written in time").into()),
        }
    }

    /// The answers of the endpoints that could be asked in time.
    async fn answers(
        &self,
        record: &TopicRecord,
        pending: Vec<PendingHandshake>,
        time: Duration,
    ) -> Result<Vec<(PendingHandshake, Answer)>, ApiError> {
        let topic = record.compile().map_err(|_| unusable_record())?;
        let ask = |pending: PendingHandshake| {
            let settings = record.settings.subscriptions.get(&pending.subscription);
            let both = settings.zip(topic.subscription(&pending.subscription));
            let topic = &topic;
            async move {
                let (settings, subscription) = both?;
                let answer = self.ask(topic, settings, subscription, &pending).await;
                Some((pending, answer))
            }
        };
        let mut asked = stream::iter(pending).map(ask).buffer_unordered(HANDSHAKES_AT_ONCE_MAX);
        let mut answers = Vec::new();
        let all = async {
            while let Some(answer) = asked.next().await {
                answers.extend(answer);
            }
        };
        if timeout(&self.clock, time, all).await.is_none() {
            tracing::warn!(topic = %record.name, "not every endpoint was asked in time");
        }
        Ok(answers)
    }

    async fn ask(
        &self,
        topic: &Topic,
        settings: &SubscriptionSettings,
        subscription: &Subscription,
        pending: &PendingHandshake,
    ) -> Answer {
        let (validation, code) = (settings.endpoint.validation, &pending.code);
        let path = ["validate", topic.name.as_str(), subscription.name.as_str(), code.expose()];
        let callback = self.settings.public_url.as_ref().map(|base| below(base, &path));
        let ask = Ask {
            subscription,
            validation,
            origin: &self.settings.origin,
            rate: settings.endpoint.max_requests_per_second.and_then(Rate::per_second),
            callback: callback.as_deref(),
            code,
            id: &self.entropy.uuid().to_string(),
            at: self.clock.now(),
        };
        let sent = self.outbound().ask(&ask, subscription.timeout.min(HANDSHAKE_TIMEOUT_MAX)).await;
        let asked = (validation, &self.settings.origin, code);
        match sent.result {
            Ok(answer) => judge(asked, callback.is_some(), answer.status, &answer.headers, &answer.body),
            Err(failure) => judge_failure(failure),
        }
    }

    /// The record with the answers of endpoints. A handshake that was replaced or called back meanwhile stays
    /// as it is.
    fn conclude(&self, mut record: TopicRecord, answers: &[(PendingHandshake, Answer)]) -> TopicRecord {
        let now = self.clock.now();
        for (PendingHandshake { subscription, code }, answer) in answers {
            let Some((name, settings)) = record.settings.subscription_mut(subscription) else { continue };
            if let Some(status) = concluded(settings, code, answer, now) {
                tracing::info!(
                    topic = %record.name, subscription = %name, ?answer, state = ?status.state,
                    "endpoint asked"
                );
                settings.status = Some(status);
            }
        }
        record
    }
}
