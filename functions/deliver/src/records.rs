//! Records of the delivery log. An attempt's record is made beside its log line and kept until its
//! message is settled. Then each event that changed without an attempt has its record too.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use posthaste_core::attempt::{EntryVerdict, redirect_location};
use posthaste_core::delivery_log::{
    EventChange, RecordDetails, RecordKind, RecordText, RecordedEvent, answer_body_text,
    answer_text, change_for_verdict,
};
use posthaste_core::model::{
    DeadLetter, Delivery, EndpointUrl, EventPayload, Subscription, Timestamp,
};
use posthaste_ports::WebhookResponse;
use posthaste_services::catch_panic::catch_panic_now;
use posthaste_services::delivery_log::{RecordNotMade, report_lost};
use posthaste_services::outbound::SentRequest;

use crate::invocation::DeliveryJob;
use crate::waiting_place::due_again;

/// An endpoint's answer as the log keeps it.
#[derive(Debug)]
pub(crate) struct LoggedAnswer {
    /// The beginning of its body; `None` if it has none.
    pub(crate) text: Option<String>,
    pub(crate) media_type: Option<String>,
}

/// Shortest value in a URL's query that is taken for a secret, in bytes.
const QUERY_SECRET_BYTES_MIN: usize = 8;

impl DeliveryJob {
    /// The answer to a request with events of this message, if the log keeps it.
    pub(crate) fn logged_answer(&self, sent: &SentRequest) -> Option<LoggedAnswer> {
        let response = sent.result.as_ref().ok()?;
        let subscription = self.subscription.as_ref()?;
        self.log
            .keeps_attempts()
            .then(|| catch_panic_now(|| logged_answer(response, subscription)).ok())?
    }

    /// Notes where the last attempt at an event was redirected.
    pub(crate) fn note_redirect(&self, entry: usize, place: Option<&str>) {
        let mut redirects = self.redirects.lock();
        match place {
            Some(place) => {
                redirects.insert(entry, place.to_owned());
            }
            None => {
                redirects.remove(&entry);
            }
        }
    }

    /// The letters of this message, each event with the place to which it was redirected.
    pub(crate) fn with_redirects(&self, mut letters: Vec<DeadLetter>) -> Vec<DeadLetter> {
        let redirects = std::mem::take(&mut *self.redirects.lock());
        for (index, place) in redirects {
            let key = &self.delivery.events[index].key;
            let entries = letters
                .iter_mut()
                .flat_map(|letter| &mut letter.delivery.events);
            for entry in entries.filter(|entry| entry.key == *key) {
                entry.marks.redirect = Some(place.clone());
            }
        }
        letters
    }

    /// Makes the record of an attempt at an event, and keeps it. If that fails, the message's end
    /// makes one with less in it.
    pub(crate) fn keep_record(
        &self,
        entry: usize,
        text: &Bytes,
        verdict: EntryVerdict,
        details: RecordDetails<'_>,
        time: Timestamp,
    ) {
        if !self.log.keeps_attempts() {
            return;
        }
        let change = self.event_change(entry, verdict, time);
        let record =
            change.and_then(|change| self.make_record(entry, Some(text), &change, details, time));
        if let Some(record) = record {
            self.records.lock().insert(entry, record);
        }
    }

    /// The records of all events of the message, which has these verdicts.
    pub(crate) fn take_records(
        &self,
        verdicts: &[EntryVerdict],
        now: Timestamp,
    ) -> Vec<RecordText> {
        if !self.log.keeps_attempts() {
            return Vec::new();
        }
        let mut kept = std::mem::take(&mut *self.records.lock());
        let changes = verdicts.iter().enumerate().filter_map(|(entry, verdict)| {
            let change = self.event_change(entry, *verdict, now)?;
            Some(
                kept.remove(&entry)
                    .or_else(|| self.unsent_record(entry, *verdict, &change, now)),
            )
        });
        let records: Vec<_> = changes.collect();
        let made = records.len();
        let records: Vec<_> = records.into_iter().flatten().collect();
        if records.len() < made {
            let lost = made - records.len();
            report_lost(
                &BTreeMap::from([(&self.delivery.topic, lost)]),
                &RecordNotMade,
            );
        }
        records
    }

    /// The record of an event that was in no request.
    fn unsent_record(
        &self,
        entry: usize,
        verdict: EntryVerdict,
        change: &EventChange,
        now: Timestamp,
    ) -> Option<RecordText> {
        let text = match &self.delivery.events[entry].payload {
            EventPayload::Inline(text) => Some(text),
            EventPayload::Stored { .. } => None,
        };
        let status = match verdict {
            EntryVerdict::GiveUp { last, .. } => last.and_then(|last| last.status),
            _ => None,
        };
        self.make_record(
            entry,
            text,
            change,
            RecordDetails {
                status,
                ..RecordDetails::default()
            },
            now,
        )
    }

    fn event_change(
        &self,
        entry: usize,
        verdict: EntryVerdict,
        now: Timestamp,
    ) -> Option<EventChange> {
        if self
            .acknowledged_late
            .contains(&self.delivery.events[entry].key)
        {
            return Some(EventChange::answered_late());
        }
        if verdict.is_untried() {
            return self.first_wait(verdict, now);
        }
        change_for_verdict(
            verdict,
            self.subscription
                .as_ref()
                .map(|subscription| &subscription.dead_letter),
        )
    }

    /// The change of an event that goes back without an attempt: a record says so the first time.
    /// From then on its message is due later than it was accepted, or has attempts.
    fn first_wait(&self, verdict: EntryVerdict, now: Timestamp) -> Option<EventChange> {
        let Delivery {
            attempts,
            not_before: due,
            ..
        } = self.delivery;
        let not_before = match verdict {
            EntryVerdict::Postponed { not_before } => not_before.max(due),
            _ => due,
        };
        (attempts == 0 && due <= self.delivery.begins_at())
            .then(|| EventChange::waiting_until(due_again(not_before, now)))
    }

    /// Notes on deliveries that take the message's place whether a record has counted them as
    /// waiting.
    pub(crate) fn note_counted(&self, successors: &mut [Delivery], are_held: bool) {
        let before = &self.delivery;
        let goes_back_first = before.attempts == 0 && before.not_before <= before.begins_at();
        for successor in successors {
            let attempts = successor.attempts;
            let has_record = are_held || attempts > before.attempts || goes_back_first;
            let is_recorded = self.log.keeps_attempts() && has_record;
            for entry in &mut successor.events {
                let marks = &mut entry.marks;
                let is_counted = is_recorded || marks.is_counted(before.attempts);
                marks.set_counted(attempts, is_counted);
            }
        }
    }

    /// A record. `None` if it cannot be made: that never harms the delivery.
    fn make_record(
        &self,
        entry: usize,
        text: Option<&Bytes>,
        change: &EventChange,
        details: RecordDetails<'_>,
        time: Timestamp,
    ) -> Option<RecordText> {
        let event = RecordedEvent {
            message_id: &self.message.id.0,
            receive_count: self.message.receive_count,
            delivery: &self.delivery,
            entry: &self.delivery.events[entry],
            text,
            // The record of its first attempt has it.
            keeps_payload: self.log.keeps_payloads() && change.kind != RecordKind::Waiting,
            is_given_up: false,
        };
        catch_panic_now(|| event.render_record(change, details, time))
            .ok()?
            .ok()
    }
}

/// The place to which an answer redirects, if it does, without the subscription's secrets.
pub(crate) fn masked_redirect(sent: &SentRequest, subscription: &Subscription) -> Option<String> {
    let response = sent.result.as_ref().ok()?;
    let location = redirect_location(response.status.as_u16(), &response.headers)?;
    let in_query = query_texts(subscription);
    catch_panic_now(|| {
        let secrets = secrets_to_mask(subscription, &in_query);
        answer_text(location.as_bytes(), &secrets)
    })
    .ok()
}

fn secrets_to_mask<'a>(subscription: &'a Subscription, in_query: &'a [String]) -> Vec<&'a str> {
    subscription
        .secret_texts()
        .chain(in_query.iter().map(String::as_str))
        .collect()
}

fn logged_answer(response: &WebhookResponse, subscription: &Subscription) -> LoggedAnswer {
    let in_query = query_texts(subscription);
    let secrets = secrets_to_mask(subscription, &in_query);
    let text = (!response.body.is_empty())
        .then(|| answer_body_text(&response.headers, &response.body, &secrets));
    // Headers may be media types themselves (`Accept`), so their values are none of its secrets.
    let in_query: Vec<&str> = in_query.iter().map(String::as_str).collect();
    let media_type = response
        .headers
        .get(CONTENT_TYPE)
        .map(|it| answer_text(it.as_bytes(), &in_query));
    LoggedAnswer { text, media_type }
}

/// The queries of the endpoints, and each longer value in them: an access token may be one. A short
/// value, such as a format or a version, is in many answers.
fn query_texts(subscription: &Subscription) -> Vec<String> {
    let urls = [Some(&subscription.endpoint), subscription.fallback.as_ref()]
        .into_iter()
        .flatten();
    let mut texts = Vec::new();
    for url in urls.map(EndpointUrl::url) {
        texts.extend(url.query().map(str::to_owned));
        let values = url.query_pairs().map(|(_, value)| value.into_owned());
        texts.extend(values.filter(|value| value.len() >= QUERY_SECRET_BYTES_MIN));
    }
    texts
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use posthaste_core::delivery_log::{
        AttemptOrigin, LogRecord, LogResult, RecordKind, join_records, parse_records,
    };
    use posthaste_core::model::{AttemptOutcome, DeadLetterReason, DeliveryLogMode, LastAttempt};
    use serde_json::json;

    use super::*;
    use crate::testing::{START, delivery, event, job, response, secs, subscription};

    const DELIVERED: EntryVerdict = EntryVerdict::Delivered;

    fn logged(events: usize, log: DeliveryLogMode) -> DeliveryJob {
        DeliveryJob {
            log,
            ..job(delivery(events), &subscription(json!({})))
        }
    }

    fn taken(job: &DeliveryJob, verdicts: &[EntryVerdict]) -> Vec<LogRecord> {
        let records = job.take_records(verdicts, START + secs(1));
        join_records(records.iter())
            .iter()
            .flat_map(|body| parse_records(body).unwrap())
            .collect()
    }

    fn keep(job: &DeliveryJob, entry: usize, verdict: EntryVerdict, status: u16) {
        let details = RecordDetails {
            status: Some(status),
            ..RecordDetails::default()
        };
        job.keep_record(entry, &Bytes::from(event(entry)), verdict, details, START);
    }

    fn retry() -> EntryVerdict {
        let last = LastAttempt::from_outcome(
            AttemptOutcome::Answered {
                status: 503,
                retry_after: None,
            },
            START,
        )
        .unwrap();
        EntryVerdict::Retry {
            not_before: START + secs(10),
            last,
        }
    }

    #[test]
    fn an_attempt_is_kept_until_its_message_is_settled() {
        let job = logged(2, DeliveryLogMode::Payloads);
        keep(&job, 1, retry(), 503);
        keep(&job, 0, DELIVERED, 200);
        let records = taken(&job, &[DELIVERED, retry()]);
        let shown = records
            .iter()
            .map(|it| (it.status, it.result, it.time, it.attempt));
        let expected = [
            (Some(200), LogResult::Delivered, START, 1),
            (Some(503), LogResult::Retry, START, 1),
        ];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
        assert_eq!(records[1].payload.as_ref().unwrap().as_str(), event(1));
        assert_eq!(records[1].next_attempt_at, Some(START + secs(10)));
    }

    /// An event that changed without an attempt is recorded when its message is settled.
    #[test]
    fn event_changed_without_an_attempt_is_recorded_at_the_end() {
        let give_up = |reason, last| EntryVerdict::GiveUp { reason, last };
        let check = |verdict, kind, result, attempt, status| {
            let record = taken(&logged(1, DeliveryLogMode::Attempts), &[verdict]).remove(0);
            let shown = (record.kind, record.result, record.attempt, record.status);
            assert_eq!(shown, (kind, result, attempt, status), "{verdict:?}");
            assert_eq!(
                (record.time, record.event_id.as_deref()),
                (START + secs(1), Some("0"))
            );
            assert_eq!(
                (record.origin, record.payload),
                (AttemptOrigin::First, None)
            );
        };
        let expired = DeadLetterReason::TimeToLiveExceeded;
        let gone = DeadLetterReason::EndpointGone;
        let refused = LastAttempt::from_outcome(
            AttemptOutcome::Answered {
                status: 400,
                retry_after: None,
            },
            START,
        );
        check(
            EntryVerdict::Held,
            RecordKind::Held,
            LogResult::Held,
            0,
            None,
        );
        check(
            give_up(expired, None),
            RecordKind::Expired,
            LogResult::DeadLettered,
            0,
            None,
        );
        check(
            give_up(gone, None),
            RecordKind::GivenUp,
            LogResult::DeadLettered,
            0,
            None,
        );
        // It expired while a batch that was refused was sent again in parts.
        check(
            give_up(expired, refused),
            RecordKind::Attempt,
            LogResult::DeadLettered,
            1,
            Some(400),
        );
    }

    #[test]
    fn a_late_answer_is_no_attempt() {
        let mut job = logged(1, DeliveryLogMode::Payloads);
        job.delivery.attempts = 1;
        job.acknowledged_late = ["k-0".to_owned()].into();
        let record = taken(&job, &[DELIVERED]).remove(0);
        let shown = (record.kind, record.result, record.attempt, record.payload);
        assert_eq!(
            shown,
            (RecordKind::AnsweredLate, LogResult::Delivered, 1, None)
        );
    }

    #[test]
    fn without_the_log_there_is_none() {
        let off = logged(1, DeliveryLogMode::Off);
        keep(&off, 0, DELIVERED, 200);
        assert_eq!(taken(&off, &[DELIVERED]), []);
    }

    #[test]
    fn event_that_goes_back_is_recorded_the_first_time() {
        let later = START + secs(7);
        let untried = [
            EntryVerdict::NotStarted,
            EntryVerdict::Postponed { not_before: later },
        ];
        let first = taken(&logged(2, DeliveryLogMode::Payloads), &untried);
        let shown = first.iter().map(|it| {
            let has_payload = it.payload.is_some();
            (
                it.kind,
                it.result,
                it.attempt,
                it.next_attempt_at,
                has_payload,
            )
        });
        let waiting = |next| (RecordKind::Waiting, LogResult::Retry, 0, Some(next), false);
        // What goes back without a wait is due from then on.
        let now = START + secs(1);
        assert_eq!(shown.collect::<Vec<_>>(), [waiting(now), waiting(later)]);
        assert_eq!(first[0].event_id.as_deref(), Some("0"));
        let mut again = logged(2, DeliveryLogMode::Payloads);
        again.delivery.not_before = START + secs(1);
        assert_eq!(taken(&again, &untried), []);
        let mut tried = logged(2, DeliveryLogMode::Payloads);
        tried.delivery.attempts = 1;
        assert_eq!(taken(&tried, &untried), []);
    }

    /// It goes out with a minute, as lists of what waits say.
    #[test]
    fn first_wait_of_a_parked_event_ends_with_a_minute() {
        let next = |wait| {
            let not_before = START + secs(1) + wait;
            let verdict = EntryVerdict::Postponed { not_before };
            taken(&logged(1, DeliveryLogMode::Payloads), &[verdict])[0].next_attempt_at
        };
        // The start is 20 seconds into its minute.
        assert_eq!(next(secs(900)), Some(START + secs(901)));
        assert_eq!(next(secs(901)), Some(START + secs(940)));
    }

    #[test]
    fn first_records_name_the_subscriptions_of_the_event() {
        let mut job = logged(2, DeliveryLogMode::Attempts);
        job.delivery.events[0].marks.matched = Some("billing,shipping".into());
        keep(&job, 0, DELIVERED, 200);
        let records = taken(&job, &[DELIVERED, EntryVerdict::NotStarted]);
        let names = records.iter().map(|it| it.matched.as_deref());
        assert_eq!(names.collect::<Vec<_>>(), [Some("billing,shipping"), None]);
    }

    #[test]
    fn only_the_mode_payloads_keeps_payloads() {
        let has_payload = |log| {
            taken(&logged(1, log), &[EntryVerdict::Held])[0]
                .payload
                .is_some()
        };
        assert!(has_payload(DeliveryLogMode::Payloads) && !has_payload(DeliveryLogMode::Attempts));
    }

    #[test]
    fn an_answer_is_kept_without_the_secrets_of_its_subscription() {
        let settings = json!({
            "signing": { "secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] },
            "deliveryHeaders": [{ "name": "x-key", "value": "hunter2-hunter2", "isSecret": true }],
        });
        let own = subscription(settings);
        let mut answer = response(
            400,
            None,
            "no: hunter2-hunter2 whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        );
        answer
            .headers
            .insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        let logged = logged_answer(&answer, &own);
        assert_eq!(logged.text.as_deref(), Some("no: [redacted] [redacted]"));
        assert_eq!(logged.media_type.as_deref(), Some("text/plain"));
        assert_eq!(logged_answer(&response(204, None, ""), &own).text, None);
    }

    /// The answer to a request that was redirected.
    fn redirected(status: u16, location: &'static str) -> SentRequest {
        let mut response = response(status, None, "");
        let location = HeaderValue::from_static(location);
        response.headers.insert("location", location);
        SentRequest {
            outcome: AttemptOutcome::Answered {
                status,
                retry_after: None,
            },
            result: Ok(response),
            failure_text: None,
            took: secs(0),
            late: None,
        }
    }

    #[test]
    fn redirect_is_kept_without_the_secrets_of_its_subscription() {
        let url = "https://a.example/hook?code=open%20sesame";
        let own = subscription(json!({ "endpoint": { "url": url } }));
        let check = |status, location, expected: Option<&str>| {
            let kept = masked_redirect(&redirected(status, location), &own);
            assert_eq!(kept.as_deref(), expected, "{location}");
        };
        check(
            308,
            "https://b.example/hook",
            Some("https://b.example/hook"),
        );
        let echoed = "https://b.example/hook?code=open%20sesame";
        check(301, echoed, Some("https://b.example/hook?[redacted]"));
        check(200, "https://b.example/hook", None);
    }

    #[test]
    fn record_of_a_redirect_says_where_it_leads() {
        let job = logged(1, DeliveryLogMode::Attempts);
        let details = RecordDetails {
            status: Some(308),
            redirect: Some("/new"),
            ..RecordDetails::default()
        };
        job.keep_record(0, &Bytes::from(event(0)), retry(), details, START);
        let record = taken(&job, &[retry()]).remove(0);
        assert_eq!(record.error.as_deref(), Some("it leads to /new"));
    }

    #[test]
    fn letters_say_where_the_last_attempt_was_redirected() {
        let job = logged(3, DeliveryLogMode::Off);
        job.note_redirect(0, Some("/new"));
        job.note_redirect(1, Some("/new"));
        job.note_redirect(1, None);
        let letter = DeadLetter::new(
            DeadLetterReason::MaxDeliveryAttemptsExceeded,
            job.delivery.clone(),
        );
        let letters = job.with_redirects(vec![letter]);
        let marks = letters[0].delivery.events.iter();
        let redirects: Vec<_> = marks.map(|entry| entry.marks.redirect.as_deref()).collect();
        assert_eq!(redirects, [Some("/new"), None, None]);
    }

    #[test]
    fn an_answer_is_kept_without_the_query_of_its_endpoint() {
        let url = "https://a.example/hook?code=open%20sesame&v=json";
        let own = subscription(json!({ "endpoint": { "url": url } }));
        let mut answer = response(
            404,
            None,
            "no /hook?code=open%20sesame&v=json, json with open sesame",
        );
        answer.headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/json; open sesame"),
        );
        let logged = logged_answer(&answer, &own);
        assert_eq!(
            logged.text.as_deref(),
            Some("no /hook?[redacted], json with [redacted]")
        );
        assert_eq!(
            logged.media_type.as_deref(),
            Some("application/json; [redacted]")
        );
    }
}
