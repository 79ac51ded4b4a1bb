//! `ReceiveMessage`: at once, or after a wait that the double's clock ends.

use std::time::Duration;

use futures_util::future::select;
use posthaste_ports::Clock;
use serde_json::{Map, Value, json};

use super::super::answer::Answer;
use super::super::digest::md5_of;
use super::super::shared::{Shared, State};
use super::error::{Error, to_answer};
use super::queue::{Stored, arn};
use super::request::{Call, Receive};
use super::rules;

/// Takes messages, waiting for one if asked to.
pub(super) async fn perform(call: &Call, receive: &Receive, shared: &Shared) -> Answer {
    let until = shared.clock.monotonic() + Duration::from_secs(receive.wait_secs.unsigned_abs());
    loop {
        let changed = shared.changed.notified();
        let mut changed = std::pin::pin!(changed);
        changed.as_mut().enable();
        let now = shared.clock.monotonic();
        let next = match attempt(call, receive, now >= until, shared) {
            Attempt::Answered(answer) => return answer,
            Attempt::Waits(next) => next,
        };
        let wake = next.map_or(until, |next| next.min(until));
        let sleep = std::pin::pin!(shared.clock.sleep(wake.saturating_sub(now)));
        // The clock may have been moved between the reading and the sleep, which would then end too
        // late.
        if shared.clock.monotonic() != now {
            continue;
        }
        let _waiting = Waiting::begin(shared);
        select(changed, sleep).await;
    }
}

enum Attempt {
    Answered(Answer),
    /// The time until the next message becomes visible, if there is one.
    Waits(Option<Duration>),
}

fn attempt(call: &Call, receive: &Receive, is_last: bool, shared: &Shared) -> Attempt {
    let mut state = shared.lock();
    let result = take(call, receive, &mut state, shared);
    if !is_last && matches!(&result, Ok(messages) if messages.is_empty()) {
        let queue = state.queues.named(&call.queue_url);
        let next = queue
            .ok()
            .and_then(|queue| queue.next_visible_from(shared.clock.monotonic()));
        return Attempt::Waits(next);
    }
    let bodies = result
        .as_ref()
        .map(|messages| bodies(messages))
        .unwrap_or_default();
    let answer = to_answer(result.map(|messages| body(&messages)));
    let mut seen = call.seen(answer.status.as_u16());
    seen.payload_bytes = bodies.iter().map(String::len).sum();
    seen.subjects = bodies;
    state.journal.push(seen);
    Attempt::Answered(answer)
}

fn take(
    call: &Call,
    receive: &Receive,
    state: &mut State,
    shared: &Shared,
) -> Result<Vec<Value>, Error> {
    rules::receive(receive)?;
    let queue = state.queues.named(&call.queue_url)?;
    // A long poll waits instead, and gets nothing in the end, which is no error.
    // <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html>
    if receive.wait_secs == 0 && queue.is_full(&shared.clock) {
        return Err(Error::over_limit());
    }
    let max = usize::try_from(receive.max).unwrap_or(0);
    let visibility = Duration::from_secs(receive.visibility_secs.unsigned_abs());
    let taken = state
        .queues
        .receive(&call.queue_url, max, visibility, &shared.clock)?;
    taken
        .into_iter()
        .map(|(handle, message)| show(&handle, message, &receive.attributes))
        .collect()
}

fn bodies(messages: &[Value]) -> Vec<String> {
    messages
        .iter()
        .filter_map(|message| message["Body"].as_str())
        .map(str::to_owned)
        .collect()
}

fn body(messages: &[Value]) -> Value {
    if messages.is_empty() {
        json!({})
    } else {
        json!({ "Messages": messages })
    }
}

/// A message with the attributes that were asked for, and no others.
fn show(handle: &str, message: &Stored, asked: &[String]) -> Result<Value, Error> {
    let known = [
        (
            "ApproximateReceiveCount",
            Some(message.receive_count.to_string()),
        ),
        (
            "SentTimestamp",
            Some(message.sent_at.as_millis().to_string()),
        ),
        (
            "ApproximateFirstReceiveTimestamp",
            message
                .first_received_at
                .map(|at| at.as_millis().to_string()),
        ),
        ("SenderId", Some("AIDADOUBLE".to_owned())),
        ("MessageGroupId", message.group.clone()),
        (
            "DeadLetterQueueSourceArn",
            message.moved_from.as_deref().map(arn),
        ),
    ];
    if let Some(unknown) = asked
        .iter()
        .find(|name| *name != "All" && known.iter().all(|(k, _)| k != name))
    {
        return Err(Error::unknown_attribute(unknown));
    }
    let is_asked = |name: &str| asked.iter().any(|asked| asked == name || asked == "All");
    let attributes = known.into_iter().filter(|(name, _)| is_asked(name));
    let attributes: Map<_, _> = attributes
        .filter_map(|(name, value)| Some((name.to_owned(), value?.into())))
        .collect();
    let mut shown = json!({
        "MessageId": message.id,
        "ReceiptHandle": handle,
        "Body": message.body,
        "MD5OfBody": md5_of(message.body.as_bytes()),
    });
    if !attributes.is_empty() {
        shown["Attributes"] = attributes.into();
    }
    Ok(shown)
}

/// Counts a receive that waits, as long as it does.
struct Waiting<'a>(&'a Shared);

impl<'a> Waiting<'a> {
    fn begin(shared: &'a Shared) -> Self {
        shared.lock().waiting += 1;
        Self(shared)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting -= 1;
    }
}
