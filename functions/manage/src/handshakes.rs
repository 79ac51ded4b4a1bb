//! The steps after a write of subscriptions: changes of link health, and handshakes, which ask
//! endpoints whether they want events. The write is durable before and stays, even if a step fails.
//! A write leaves a pending handshake in the record. Here all handshakes of the request run at
//! once, and the record receives what the endpoints answered, before the request itself is
//! answered.

use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use posthaste_core::api::SubscriptionSettings;
use posthaste_core::api::edit::{PendingHandshake, SubscriptionChange};
use posthaste_core::attempt::handshake::{concluded, judge, judge_failure};
use posthaste_core::attempt::{Answer, Ask, Rate};
use posthaste_core::model::{HANDSHAKE_TIMEOUT_MAX, Subscription, Topic};
use posthaste_core::stored::TopicRecord;
use posthaste_ports::{Clock, Entropy, Ports};
use posthaste_services::{timeout, timeout_at};

use crate::answer::{ApiError, unavailable, unusable_record};
use crate::health_changes::HealthChanges;
use crate::manage::{Manage, below};

/// Longest time for all handshakes of one request. Within [`HANDSHAKE_TIMEOUT_MAX`] each, one round
/// of them ends and another begins; the rest of the request's time is for the stores. A handshake
/// that did not run by then is still pending: the next write, or the next look at what was left,
/// runs it with the same code.
const HANDSHAKES_TIME_MAX: Duration = Duration::from_secs(14);

/// Most endpoints that are asked at once.
const HANDSHAKES_AT_ONCE_MAX: usize = 64;

impl<P: Ports> Manage<P> {
    /// Ends holds and forgets the health of endpoints that changed, then runs the handshakes, until
    /// a time of the clock's `monotonic`. Answers the record with the endpoints' answers.
    pub(crate) async fn follow_up(
        &self,
        record: TopicRecord,
        changes: &[SubscriptionChange],
        until: Duration,
    ) -> TopicRecord {
        self.apply_after_write(
            &record.name,
            &HealthChanges::after_write(&record, changes),
            until,
        )
        .await;
        let pending = changes
            .iter()
            .filter_map(|change| change.handshake.clone())
            .collect();
        // Only this answer shows a secret that was made. So the record is answered even if the
        // outcome of the handshakes cannot be written; they are then still pending.
        self.shake_hands(record.clone(), pending, until)
            .await
            .unwrap_or_else(|error| {
                tracing::warn!(
                    topic = %record.name, problem = error.0.kind.title(),
                    "outcome of handshakes not written; they are still to be run"
                );
                record
            })
    }

    /// Runs handshakes of this record until a time of the clock's `monotonic`, and answers the
    /// record with their outcome.
    pub(crate) async fn shake_hands(
        &self,
        record: TopicRecord,
        pending: Vec<PendingHandshake>,
        until: Duration,
    ) -> Result<TopicRecord, ApiError> {
        if pending.is_empty() {
            return Ok(record);
        }
        let answers = self
            .answers(&record, pending, self.rest(until).min(HANDSHAKES_TIME_MAX))
            .await?;
        if answers.is_empty() {
            return Ok(record);
        }
        let edit = |record: &mut TopicRecord| {
            self.conclude(record, &answers);
            Ok(())
        };
        match timeout_at(
            &self.clock,
            until,
            self.change_existing(&record.name, &[], edit),
        )
        .await
        {
            Some(changed) => changed.map(|(record, ())| record),
            None => Err(unavailable()
                .detail("what the endpoint said could not be written in time")
                .into()),
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
        let mut asked = stream::iter(pending)
            .map(ask)
            .buffer_unordered(HANDSHAKES_AT_ONCE_MAX);
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
        let path = [
            "validate",
            topic.name.as_str(),
            subscription.name.as_str(),
            code.expose(),
        ];
        let callback = self
            .settings
            .public_url
            .as_ref()
            .map(|base| below(base, &path));
        let ask = Ask {
            subscription,
            validation,
            origin: &self.settings.origin,
            rate: settings
                .endpoint
                .max_requests_per_second
                .and_then(Rate::per_second),
            callback: callback.as_deref(),
            code,
            id: &self.entropy.uuid().to_string(),
            at: self.clock.now(),
        };
        let sent = self
            .outbound()
            .ask(&ask, subscription.timeout.min(HANDSHAKE_TIMEOUT_MAX))
            .await;
        let asked = (validation, &self.settings.origin, code);
        match sent.result {
            Ok(answer) => judge(
                asked,
                callback.is_some(),
                answer.status,
                &answer.headers,
                &answer.body,
            ),
            Err(failure) => judge_failure(failure),
        }
    }

    /// Writes the answers of endpoints into the record. A handshake that was replaced or concluded
    /// by a callback in the meantime stays as it is.
    fn conclude(&self, record: &mut TopicRecord, answers: &[(PendingHandshake, Answer)]) {
        let now = self.clock.now();
        for (PendingHandshake { subscription, code }, answer) in answers {
            let Some((name, settings)) = record.settings.subscription_mut(subscription) else {
                continue;
            };
            if let Some(status) = concluded(settings, code, answer, now) {
                tracing::info!(
                    topic = %record.name, subscription = %name, state = %status.state,
                    reason = status.reason, "endpoint asked"
                );
                settings.status = Some(status);
            }
        }
    }
}
