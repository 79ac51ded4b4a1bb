//! Asking endpoints whether they want events, and writing down what they say. A write leaves a handshake in the record;
//! here it is run, side by side with the others of the same request, and only then the request is answered.

use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::api::{SecretText, SubscriptionSettings};
use posthaste_core::attempt::handshake::{Answer, Ask, concluded, judge, judge_failure, question};
use posthaste_core::attempt::rate::Rate;
use posthaste_core::model::limits::HANDSHAKE_TIMEOUT_MAX;
use posthaste_core::model::name::{SubscriptionName, TopicName};
use posthaste_core::model::topic::{Subscription, Topic};
use posthaste_core::stored::topic::TopicRecord;
use posthaste_ports::{Clock, Entropy, WebhookRequest};
use url::Url;

use crate::answer::UNAVAILABLE_RETRY_AFTER;
use crate::edit::spelling;
use crate::records::unknown_topic;
use crate::time_limit::WORK_TIME_MAX;
use crate::{Manage, Store, Webhooks};

/// How long the handshakes of one request may take together: with [`HANDSHAKE_TIMEOUT_MAX`] enough for one round of
/// them and the start of another, and the rest of the request's time is for the stores. Who was not asked to the end by
/// then is still pending: the next write asks it with the same code, or it fails at its deadline unless it calls back.
const HANDSHAKES_TIME_MAX: Duration = Duration::from_secs(14);

/// Most endpoints that are asked at once.
const HANDSHAKES_AT_ONCE_MAX: usize = 64;

/// A handshake that is to be run.
#[derive(Debug, Clone)]
pub(crate) struct Begun {
    /// The subscription, as its creator wrote it.
    pub(crate) name: SubscriptionName,
    /// What its endpoint proves itself with.
    pub(crate) code: SecretText,
}

impl<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy> Manage<S, D, W, C, E> {
    /// Runs handshakes of this record until a time of [`Clock::monotonic`], and answers the record with what came of
    /// them.
    pub(crate) async fn shake_hands(
        &self,
        record: TopicRecord,
        begun: Vec<Begun>,
        until: Duration,
    ) -> Result<TopicRecord, Problem> {
        if begun.is_empty() {
            return Ok(record);
        }
        let answers = self.answers(&record, begun, self.rest(until).min(HANDSHAKES_TIME_MAX)).await?;
        if answers.is_empty() {
            return Ok(record);
        }
        let edit = |present: Option<TopicRecord>| {
            let record = present.ok_or_else(|| unknown_topic(&record.name))?;
            Ok((self.conclude(record, &answers), ()))
        };
        tokio::select! {
            biased;
            changed = self.change(&record.name, edit) => changed.map(|(record, ())| record),
            () = self.clock.sleep(self.rest(until)) => {
                let detail = "what the endpoint said could not be written in time";
                Err(Problem::new(ProblemKind::Unavailable).retry_after(UNAVAILABLE_RETRY_AFTER).detail(detail))
            }
        }
    }

    /// The same for a record that a user wrote just now. It is written whatever comes of the handshakes, and this answer
    /// is the only one that shows a secret that was made: so where what endpoints say cannot be kept, they are still to
    /// be asked, and that is answered.
    pub(crate) async fn shake_hands_after_write(
        &self,
        record: TopicRecord,
        begun: Vec<Begun>,
        until: Duration,
    ) -> TopicRecord {
        if begun.is_empty() {
            return record;
        }
        match self.shake_hands(record.clone(), begun, until).await {
            Ok(record) => record,
            Err(problem) => {
                tracing::warn!(topic = %record.name, ?problem, "what endpoints said not written; they are still to be asked");
                record
            }
        }
    }

    /// When a request that begins now must have done its work, as a time of [`Clock::monotonic`].
    pub(crate) fn work_ends(&self) -> Duration {
        self.clock.monotonic() + WORK_TIME_MAX
    }

    /// How long it is until then.
    pub(crate) fn rest(&self, until: Duration) -> Duration {
        until.saturating_sub(self.clock.monotonic())
    }

    /// What the endpoints say that are asked to the end in time.
    async fn answers(
        &self,
        record: &TopicRecord,
        begun: Vec<Begun>,
        time: Duration,
    ) -> Result<Vec<(Begun, Answer)>, Problem> {
        // It was checked before it was written.
        let topic = record.compile().map_err(|_| Problem::new(ProblemKind::Internal))?;
        let ask = |begun: Begun| {
            let settings = record.settings.subscriptions.get(&begun.name);
            let both = settings.zip(topic.subscription(&begun.name));
            let topic = &topic;
            async move {
                let (settings, subscription) = both?;
                let answer = self.ask(topic, settings, subscription, &begun.code).await;
                Some((begun, answer))
            }
        };
        let mut asked = stream::iter(begun).map(ask).buffer_unordered(HANDSHAKES_AT_ONCE_MAX);
        let mut answers = Vec::new();
        let all = async {
            while let Some(answer) = asked.next().await {
                answers.extend(answer);
            }
        };
        tokio::select! {
            biased;
            () = all => {}
            () = self.clock.sleep(time) => {
                tracing::warn!(topic = %record.name, "not every endpoint was asked in time");
            }
        }
        Ok(answers)
    }

    async fn ask(
        &self,
        topic: &Topic,
        settings: &SubscriptionSettings,
        subscription: &Subscription,
        code: &SecretText,
    ) -> Answer {
        let validation = settings.endpoint.validation;
        let callback =
            self.public_url.as_ref().map(|base| callback(base, &topic.name, &subscription.name, code));
        let question = question(&Ask {
            subscription,
            validation,
            origin: &self.origin,
            rate: settings.endpoint.max_requests_per_second.and_then(Rate::per_second),
            callback: callback.as_deref(),
            code,
            id: &self.entropy.uuid().to_string(),
            at: self.clock.now(),
        });
        let request = WebhookRequest {
            method: question.method,
            url: subscription.endpoint.clone(),
            headers: question.headers,
            body: question.body,
            timeout: subscription.timeout.min(HANDSHAKE_TIMEOUT_MAX),
        };
        let asked = (validation, &self.origin, code);
        match self.webhooks.send(request).await.result {
            Ok(answer) => judge(asked, callback.is_some(), answer.status, &answer.headers, &answer.body),
            Err(failure) => judge_failure(failure),
        }
    }

    /// The record with what endpoints said. What was changed or has called back meanwhile is left as it is.
    fn conclude(&self, mut record: TopicRecord, answers: &[(Begun, Answer)]) -> TopicRecord {
        let now = self.clock.now();
        for (Begun { name, code }, answer) in answers {
            let Some(name) = spelling(&record.settings, name).cloned() else { continue };
            let Some(settings) = record.settings.subscriptions.get_mut(&name) else { continue };
            if let Some(status) = concluded(settings, code, answer, now) {
                tracing::info!(topic = %record.name, subscription = %name, ?answer, state = ?status.state, "endpoint asked");
                settings.status = Some(status);
            }
        }
        record
    }
}

/// The URL where an endpoint may consent. `base` may have a path, with or without a final slash.
fn callback(base: &Url, topic: &TopicName, subscription: &SubscriptionName, code: &SecretText) -> String {
    let mut url = base.clone();
    // An http(s) URL can always be a base, so there is always a path to extend.
    if let Ok(mut segments) = url.path_segments_mut() {
        let path = ["validate", topic.as_str(), subscription.as_str(), code.expose()];
        segments.pop_if_empty().extend(path);
    }
    url.into()
}
