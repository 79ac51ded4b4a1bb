//! Traces of events: W3C's trace context, and the spans of an event, whose ids are made of what
//! every function knows of it. So nothing has to be stored or sent along for a trace.

pub mod collector;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::model::{Timestamp, hex};

/// The length of a `traceparent` of version 00, whose parts any later version begins with.
/// <https://www.w3.org/TR/trace-context/#traceparent-header>
const TRACEPARENT_BYTES: usize = 55;

/// The flag of a trace that is recorded.
/// <https://www.w3.org/TR/trace-context/#sampled-flag>
const SAMPLED: u8 = 1;

/// The id of a trace, which is never all zeros.
pub type TraceId = [u8; 16];

/// The id of a span, which is never all zeros.
pub type SpanId = [u8; 8];

/// A span as others refer to it: the value of the header `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace.
    pub trace_id: TraceId,
    /// The span.
    pub span_id: SpanId,
    /// Whether the trace is recorded.
    pub is_sampled: bool,
}

impl TraceContext {
    /// Reads a `traceparent`. `None` if it is not in W3C's form.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != TRACEPARENT_BYTES {
            return None;
        }
        let mut parts = text.split('-');
        let [version] = hex::parse(parts.next()?)?;
        let trace_id: TraceId = hex::parse(parts.next()?)?;
        let span_id: SpanId = hex::parse(parts.next()?)?;
        let [flags] = hex::parse(parts.next()?)?;
        let is_valid = version != 0xff && trace_id != [0; 16] && span_id != [0; 8];
        is_valid.then_some(Self {
            trace_id,
            span_id,
            is_sampled: flags & SAMPLED != 0,
        })
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trace = hex::encode(&self.trace_id);
        let span = hex::encode(&self.span_id);
        let flags = u8::from(self.is_sampled);
        write!(f, "00-{trace}-{span}-{flags:02x}")
    }
}

/// The share of events without a trace of their own that are recorded, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleRatio(f64);

/// Error of a text that is no share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a number from 0 to 1, such as 0.1")]
pub struct SampleRatioError;

impl SampleRatio {
    /// Every event.
    pub const ALL: Self = Self(1.0);

    /// Whether a trace of this id is recorded: every function that is asked says the same.
    fn includes_trace(self, trace_id: &TraceId) -> bool {
        let [.., a, b, c, d] = *trace_id;
        f64::from(u32::from_be_bytes([a, b, c, d])) < self.0 * 2f64.powi(32)
    }
}

impl FromStr for SampleRatio {
    type Err = SampleRatioError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number: f64 = text.parse().map_err(|_| SampleRatioError)?;
        let is_share = (0.0..=1.0).contains(&number);
        is_share.then_some(Self(number)).ok_or(SampleRatioError)
    }
}

/// The trace of an event.
#[derive(Debug, Clone, Copy)]
pub struct EventTrace<'a> {
    /// The `webhook-id` of the event when it travels alone, of which the ids of its spans are made.
    webhook_id: &'a str,
    trace_id: TraceId,
    /// The span that the producer's `traceparent` names.
    producer: Option<SpanId>,
}

impl<'a> EventTrace<'a> {
    /// The trace of the event with this `webhook-id`: the one that its `traceparent` names, or else
    /// one of its own. `None` if it is not recorded, as the producer says, or else the ratio.
    pub fn if_recorded(
        webhook_id: &'a str,
        traceparent: Option<&str>,
        ratio: SampleRatio,
    ) -> Option<Self> {
        let given = traceparent.and_then(TraceContext::parse);
        let trace_id =
            given.map_or_else(|| digest_prefix(&["trace", webhook_id]), |it| it.trace_id);
        let is_recorded = given.map_or_else(|| ratio.includes_trace(&trace_id), |it| it.is_sampled);
        is_recorded.then_some(Self {
            webhook_id,
            trace_id,
            producer: given.map(|it| it.span_id),
        })
    }

    /// The span of the event's acceptance, to which all others of the event belong.
    pub fn publish_span(&self) -> SpanPlace {
        SpanPlace {
            context: self.trace_context(digest_prefix(&["publish", self.webhook_id])),
            parent: self.producer,
        }
    }

    /// The span of the wait before a request to the target of this name, which began then.
    pub fn wait_span(&self, target: &str, began: Timestamp) -> SpanPlace {
        self.request_span("wait", target, began)
    }

    /// The span of a request to the target of this name, which began then.
    pub fn attempt_span(&self, target: &str, began: Timestamp) -> SpanPlace {
        self.request_span("attempt", target, began)
    }

    fn request_span(&self, kind: &str, target: &str, began: Timestamp) -> SpanPlace {
        let began = began.as_millis().to_string();
        let span_id = digest_prefix(&[kind, self.webhook_id, target, &began]);
        SpanPlace {
            context: self.trace_context(span_id),
            parent: Some(self.publish_span().context.span_id),
        }
    }

    fn trace_context(&self, span_id: SpanId) -> TraceContext {
        TraceContext {
            trace_id: self.trace_id,
            span_id,
            is_sampled: true,
        }
    }
}

/// The first bytes of a digest of these words, none of which has a line break.
fn digest_prefix<const N: usize>(words: &[&str]) -> [u8; N] {
    let mut digest = Sha256::new();
    for word in words {
        digest.update(word.as_bytes());
        digest.update(b"\n");
    }
    let whole: [u8; 32] = digest.finalize().into();
    std::array::from_fn(|index| whole[index])
}

/// The place of a span in its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanPlace {
    /// The span itself.
    pub context: TraceContext,
    /// The span of which it is a part.
    pub parent: Option<SpanId>,
}

/// The work that a span is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// From the arrival of a request to the moment in which its event was durable.
    Publish,
    /// From the acceptance of an event, or its last attempt, to the next request with it.
    Wait,
    /// A request with the event, to the answer.
    Attempt,
}

impl SpanKind {
    /// The word for it in the names of spans.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Publish => "publish",
            Self::Wait => "wait",
            Self::Attempt => "attempt",
        }
    }
}

/// A value that a span has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpanValue {
    /// A text.
    Text(String),
    /// A number.
    Number(i64),
}

/// A span that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceSpan {
    /// The work that it is of.
    pub kind: SpanKind,
    /// The topic or, after it, the subscription, for its name.
    pub target: String,
    /// The place of the span.
    pub place: SpanPlace,
    /// A span of another trace that it belongs to.
    pub link: Option<TraceContext>,
    /// The beginning of the span.
    pub began: Timestamp,
    /// The length of the span.
    pub took: Duration,
    /// The other facts that are known.
    pub values: Vec<(&'static str, SpanValue)>,
    /// The reason why it failed, if it did.
    pub error: Option<String>,
}

impl From<&str> for SpanValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for SpanValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u16> for SpanValue {
    fn from(number: u16) -> Self {
        Self::Number(number.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const AT: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    #[test]
    fn context_is_the_same_text_again() {
        let unsampled = TRACEPARENT.replace("-01", "-00");
        for text in [TRACEPARENT, &unsampled] {
            assert_eq!(TraceContext::parse(text).unwrap().to_string(), text);
        }
        let later = TRACEPARENT.replacen("00", "cc", 1).replace("-01", "-ff");
        assert!(TraceContext::parse(&later).unwrap().is_sampled);
    }

    #[test]
    fn text_in_another_form_is_no_context() {
        let with = |from, to| TRACEPARENT.replacen(from, to, 1);
        for text in [
            String::new(),
            with("00-", "ff-"),
            with("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            with("b7ad6b7169203331", &"0".repeat(16)),
            with("0af", "0AF"),
            with("-01", "-0"),
            with("-01", "-0g"),
            with("-01", "-01-"),
            with("9c-b7", "9cb-7"),
        ] {
            assert_eq!(TraceContext::parse(&text), None, "{text}");
        }
    }

    fn ratio(text: &str) -> Result<SampleRatio, SampleRatioError> {
        text.parse()
    }

    #[test]
    fn share_is_a_number_from_0_to_1() {
        assert_eq!(ratio("1"), Ok(SampleRatio::ALL));
        for text in ["", "-0.1", "1.1", "NaN", "10%", "inf"] {
            assert_eq!(ratio(text), Err(SampleRatioError), "{text}");
        }
    }

    #[test]
    fn event_with_a_context_is_recorded_if_that_says_so() {
        let unsampled = TRACEPARENT.replace("-01", "-00");
        let never = ratio("0").unwrap();
        assert!(EventTrace::if_recorded("msg_a-0", Some(TRACEPARENT), never).is_some());
        assert!(EventTrace::if_recorded("msg_a-0", Some(&unsampled), SampleRatio::ALL).is_none());
    }

    #[test]
    fn share_of_the_other_events_is_recorded() {
        let recorded = |share| {
            let ratio = ratio(share).unwrap();
            let ids = (0..10_000).map(|n| format!("msg_a-{n}"));
            ids.filter(|id| EventTrace::if_recorded(id, None, ratio).is_some())
                .count()
        };
        assert_eq!((recorded("0"), recorded("1")), (0, 10_000));
        assert!(
            (800..1200).contains(&recorded("0.1")),
            "{}",
            recorded("0.1")
        );
    }

    #[test]
    fn spans_of_an_event_are_one_tree() {
        let trace =
            EventTrace::if_recorded("msg_a-0", Some(TRACEPARENT), SampleRatio::ALL).unwrap();
        let given = TraceContext::parse(TRACEPARENT).unwrap();
        let publish = trace.publish_span();
        assert_eq!(publish.parent, Some(given.span_id));
        let wait = trace.wait_span("t/s", AT);
        let attempt = trace.attempt_span("t/s", AT);
        let again = trace.attempt_span("t/s", AT + Duration::from_millis(1));
        let places = [publish, wait, attempt, again, trace.attempt_span("t/u", AT)];
        for place in places {
            assert_eq!(place.context.trace_id, given.trace_id);
        }
        for place in &places[1..] {
            assert_eq!(place.parent, Some(publish.context.span_id));
        }
        let ids = places.map(|place| place.context.span_id);
        assert_eq!(std::collections::BTreeSet::from(ids).len(), ids.len());
    }

    #[test]
    fn event_without_a_context_has_a_trace_of_its_own() {
        let trace = |id| {
            EventTrace::if_recorded(id, None, SampleRatio::ALL)
                .unwrap()
                .publish_span()
        };
        let first = trace("msg_a-0");
        let second = trace("msg_a-1");
        assert_eq!((first.parent, second.parent), (None, None));
        assert_ne!(first.context.trace_id, second.context.trace_id);
        assert_eq!(trace("msg_a-0"), first);
    }
}
