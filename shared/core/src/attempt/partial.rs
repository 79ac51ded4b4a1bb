//! Partial acknowledgement: an answer of success to a batch that names the events which failed all
//! the same, as `{"batchItemFailures":[{"itemIdentifier":"<event id>"}]}`, the form of AWS Lambda
//! and SQS. <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html>
//!
//! Nothing is lost by a report that cannot be understood: then the whole batch failed. An answer
//! that is no report at all, such as `OK` or `{"status":"ok"}`, acknowledges the whole batch, as it
//! does without this option.

use std::borrow::Cow;
use std::collections::BTreeSet;

use http::header::HeaderMap;
use serde::Deserialize;

use crate::model::json_pointer::decode_string;
use crate::model::{JsonObject, JsonPointer, content_coding};

/// The member that makes an answer a report.
const MEMBER: &str = "batchItemFailures";

/// The events of a batch that arrived.
#[derive(Debug, PartialEq, Eq)]
pub enum BatchAcknowledgement {
    /// All of them.
    All,
    /// All but those at these indices, of which there is at least one.
    AllBut(BTreeSet<usize>),
    /// None: there is a report that cannot be understood.
    Nothing(ReportError),
}

/// The reason why a report cannot be understood.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ReportError {
    /// The answer was not read to its end, so that what it names is not known.
    #[error("the answer is longer than what is read of it, or broke off")]
    CutOff,
    /// Not JSON, or not of the form of a report.
    #[error("the answer is not a report of batchItemFailures")]
    Form,
    /// Compressed, or in another character set, so that what it names cannot be read.
    #[error("the answer has a content coding, or is not UTF-8")]
    Coding,
    /// A name that no event of the batch has.
    #[error("an itemIdentifier is not the id of an event of the batch")]
    UnknownEvent,
}

/// The body of an answer of success, as far as it was read.
#[derive(Debug, Clone, Copy)]
pub struct AnswerBody<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// Whether that is all of it.
    pub is_whole: bool,
    /// Whether it has a content coding, such as gzip, although none was asked for.
    pub is_coded: bool,
}

impl<'a> AnswerBody<'a> {
    /// The body of an answer with these headers.
    pub fn new(headers: &HeaderMap, bytes: &'a [u8], is_whole: bool) -> Self {
        Self {
            bytes,
            is_whole,
            is_coded: content_coding(headers).is_some(),
        }
    }

    /// Whether its bytes may be read as they are. UTF-16 has zero bytes or a mark that is no UTF-8.
    fn is_plain(&self) -> bool {
        let is_text = match str::from_utf8(self.bytes) {
            Ok(_) => true,
            // The cut may lie within a character.
            Err(error) => !self.is_whole && error.error_len().is_none(),
        };
        self.bytes.is_empty() || (!self.is_coded && is_text && !self.bytes.contains(&0))
    }
}

/// An event of a batch, as far as a report can name it.
#[derive(Debug, Clone, Copy)]
pub struct BatchEvent<'a> {
    /// The event's text, as it was sent.
    pub text: &'a [u8],
    /// The id of its envelope, where it is a custom event.
    pub envelope_id: Option<&'a str>,
}

#[derive(Deserialize)]
struct FailureReport<'a> {
    #[serde(rename = "batchItemFailures", borrow)]
    failures: Option<Vec<JsonObject<ReportedFailure<'a>>>>,
}

#[derive(Deserialize)]
struct ReportedFailure<'a> {
    #[serde(rename = "itemIdentifier", borrow)]
    id: Cow<'a, str>,
}

impl BatchAcknowledgement {
    /// Whether the event at this index of the batch arrived.
    pub fn includes(&self, index: usize) -> bool {
        match self {
            Self::All => true,
            Self::AllBut(failed) => !failed.contains(&index),
            Self::Nothing(_) => false,
        }
    }
}

/// Reads which events an answer of success acknowledges. `events` are those of the batch, in its
/// order; they are parsed only if the report names any. If several events share an id that is
/// named, all of them failed.
pub fn read_acknowledgement(
    body: AnswerBody<'_>,
    events: &[BatchEvent<'_>],
) -> BatchAcknowledgement {
    if !body.is_plain() {
        return BatchAcknowledgement::Nothing(ReportError::Coding);
    }
    let text = body
        .bytes
        .strip_prefix("\u{feff}".as_bytes())
        .unwrap_or(body.bytes)
        .trim_ascii();
    let may_be_report = text.first() == Some(&b'{') || mentions_report(text);
    if !body.is_whole && (text.is_empty() || may_be_report) {
        return BatchAcknowledgement::Nothing(ReportError::CutOff);
    }
    if !may_be_report {
        return BatchAcknowledgement::All;
    }
    match serde_json::from_slice(text) {
        // Without the member the answer parses too: it is a report only if it has it.
        Ok(JsonObject(FailureReport { failures: None }))
            if mentions_report(text) && !has_member(text) =>
        {
            BatchAcknowledgement::Nothing(ReportError::Form)
        }
        Ok(JsonObject(FailureReport { failures })) => {
            acknowledge_all_but(&failures.unwrap_or_default(), events)
        }
        Err(_) => BatchAcknowledgement::Nothing(ReportError::Form),
    }
}

fn acknowledge_all_but(
    failures: &[JsonObject<ReportedFailure<'_>>],
    events: &[BatchEvent<'_>],
) -> BatchAcknowledgement {
    if failures.is_empty() {
        return BatchAcknowledgement::All;
    }
    let named: BTreeSet<&str> = failures
        .iter()
        .map(|failure| failure.0.id.as_ref())
        .collect();
    let mut indices = BTreeSet::new();
    let mut known = BTreeSet::new();
    for (index, event) in events.iter().enumerate() {
        let id = event.id();
        for name in [id.as_deref(), event.envelope_id]
            .into_iter()
            .flatten()
            .filter_map(|id| named.get(id))
        {
            indices.insert(index);
            known.insert(*name);
        }
    }
    if known == named {
        BatchAcknowledgement::AllBut(indices)
    } else {
        BatchAcknowledgement::Nothing(ReportError::UnknownEvent)
    }
}

impl<'a> BatchEvent<'a> {
    /// The event's id: its envelope's, or else its own member. Empty if it has neither.
    pub fn event_id(&self) -> Cow<'a, str> {
        self.envelope_id
            .map(Cow::Borrowed)
            .or_else(|| self.id())
            .unwrap_or_default()
    }

    /// The member `id`, which CloudEvents and Event Grid both have. A custom event may have one
    /// too: its receiver may know it by that, or by the id that the topic's mapping takes from
    /// elsewhere.
    fn id(&self) -> Option<Cow<'a, str>> {
        decode_string(JsonPointer::for_member("id").find(self.text)?)
    }
}

fn mentions_report(text: &[u8]) -> bool {
    text.windows(MEMBER.len())
        .any(|window| window == MEMBER.as_bytes())
}

fn has_member(text: &[u8]) -> bool {
    JsonPointer::for_member(MEMBER).find(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::CONTENT_ENCODING;
    use proptest::prelude::*;
    use serde_json::json;

    const EVENTS: [&[u8]; 4] = [
        br#"{"id":"a"}"#,
        br#"{"data":{"id":"c"},"id":"b"}"#,
        br#"{"id":"a","n":1}"#,
        br#"{"id":"\u00e9"}"#,
    ];

    fn read(bytes: &[u8], is_whole: bool, texts: &[&[u8]]) -> BatchAcknowledgement {
        let events: Vec<_> = texts
            .iter()
            .map(|text| BatchEvent {
                text,
                envelope_id: None,
            })
            .collect();
        read_acknowledgement(
            AnswerBody {
                bytes,
                is_whole,
                is_coded: false,
            },
            &events,
        )
    }

    fn whole(body: &str) -> BatchAcknowledgement {
        read(body.as_bytes(), true, &EVENTS)
    }

    fn cut(body: &str) -> BatchAcknowledgement {
        read(body.as_bytes(), false, &EVENTS)
    }

    fn all_but(indices: &[usize]) -> BatchAcknowledgement {
        BatchAcknowledgement::AllBut(indices.iter().copied().collect())
    }

    #[test]
    fn an_answer_that_is_no_report_acknowledges_everything() {
        for body in [
            "",
            "  ",
            "OK",
            "null",
            "[]",
            "\"fine\"",
            "{}",
            r#"{"status":"ok","received":4}"#,
            "<html>",
            "\u{feff}",
            "[{\"itemIdentifier\":\"a\"}]",
        ] {
            assert_eq!(whole(body), BatchAcknowledgement::All, "{body}");
        }
    }

    #[test]
    fn a_report_without_failures_acknowledges_everything() {
        for body in [
            r#"{"batchItemFailures":[]}"#,
            r#"{"batchItemFailures":null}"#,
            "\u{feff}{\"batchItemFailures\":[]}",
        ] {
            assert_eq!(whole(body), BatchAcknowledgement::All, "{body}");
        }
    }

    #[test]
    fn the_events_that_are_named_failed() {
        let check =
            |body: &str, indices: &[usize]| assert_eq!(whole(body), all_but(indices), "{body}");
        check(r#"{"batchItemFailures":[{"itemIdentifier":"b"}]}"#, &[1]);
        check(
            r#"{"batchItemFailures":[{"itemIdentifier":"b"},{"itemIdentifier":"b"}]}"#,
            &[1],
        );
        check(
            r#" {"batchItemFailures":[{"itemIdentifier":"é","why":"x"}],"more":1} "#,
            &[3],
        );
        check(
            r#"{"batchItemFailures":[{"itemIdentifier":"\u0061"},{"itemIdentifier":"b"}]}"#,
            &[0, 1, 2],
        );
    }

    #[test]
    fn events_that_share_an_id_all_failed() {
        assert_eq!(
            whole(r#"{"batchItemFailures":[{"itemIdentifier":"a"}]}"#),
            all_but(&[0, 2])
        );
    }

    #[test]
    fn a_custom_event_is_known_by_its_mapped_id_and_by_its_own() {
        let event = |text, id| BatchEvent {
            text,
            envelope_id: Some(id),
        };
        let events = [
            event(br#"{"order":7}"#, "7"),
            event(br#"{"id":"own"}"#, "mapped"),
            event(br#"{"id":1}"#, "1"),
        ];
        let check = |name: &str, expected| {
            let body = json!({ "batchItemFailures": [{ "itemIdentifier": name }] }).to_string();
            let body = AnswerBody {
                bytes: body.as_bytes(),
                is_whole: true,
                is_coded: false,
            };
            assert_eq!(read_acknowledgement(body, &events), expected, "{name}");
        };
        check("7", all_but(&[0]));
        check("own", all_but(&[1]));
        check("mapped", all_but(&[1]));
        check("1", all_but(&[2]));
        check(
            "order",
            BatchAcknowledgement::Nothing(ReportError::UnknownEvent),
        );
    }

    #[test]
    fn an_event_s_id_is_its_envelope_s_or_its_own() {
        let id = |text: &str, envelope_id| {
            BatchEvent {
                text: text.as_bytes(),
                envelope_id,
            }
            .event_id()
            .into_owned()
        };
        assert_eq!(id(r#"{"id":"a"}"#, None), "a");
        assert_eq!(id(r#"{"id":"a"}"#, Some("b")), "b");
        assert_eq!(id(r#"{"number":1}"#, None), "");
    }

    #[test]
    fn a_report_that_cannot_be_understood_acknowledges_nothing() {
        for body in [
            "{",
            r#"{"status":"ok""#,
            r#"{"batchItemFailures":[{"itemIdentifier":"b"}]"#,
            r#"{"batchItemFailures":[{"itemIdentifier":"b"}]} and more"#,
            r#"{"batchItemFailures":["b"]}"#,
            r#"{"batchItemFailures":[["b"]]}"#,
            r#"[[{"itemIdentifier":"batchItemFailures"}]]"#,
            r#"{"batchItemFailures":{"itemIdentifier":"b"}}"#,
            r#"{"batchItemFailures":[{"itemIdentifier":null}]}"#,
            r#"{"batchItemFailures":[{"itemIdentifier":7}]}"#,
            r#"{"batchItemFailures":[{"id":"b"}]}"#,
            r#"{"batchItemFailures":[],"batchItemFailures":[{"itemIdentifier":"b"}]}"#,
            r#"{"body":{"batchItemFailures":[{"itemIdentifier":"b"}]}}"#,
            r#""{\"batchItemFailures\":[{\"itemIdentifier\":\"b\"}]}""#,
            r#"[{"batchItemFailures":[{"itemIdentifier":"b"}]}]"#,
        ] {
            assert_eq!(
                whole(body),
                BatchAcknowledgement::Nothing(ReportError::Form),
                "{body}"
            );
        }
    }

    #[test]
    fn a_name_of_no_event_acknowledges_nothing() {
        for name in ["c", "", "A", "b "] {
            let body = json!({ "batchItemFailures": [{ "itemIdentifier": "b" }, { "itemIdentifier": name }] });
            assert_eq!(
                whole(&body.to_string()),
                BatchAcknowledgement::Nothing(ReportError::UnknownEvent),
                "{name:?}"
            );
        }
    }

    #[test]
    fn cut_off_answer_is_believed_only_if_it_can_be_no_report() {
        for body in [
            "",
            "{",
            r#"{"batchItemFailures":[]}"#,
            r#"{"status":"ok"}"#,
            "[\"batchItemFailures",
        ] {
            assert_eq!(
                cut(body),
                BatchAcknowledgement::Nothing(ReportError::CutOff),
                "{body}"
            );
        }
        for body in ["O", "<html>", "[1,"] {
            assert_eq!(cut(body), BatchAcknowledgement::All, "{body}");
        }
    }

    #[test]
    fn an_answer_that_cannot_be_read_as_it_is_acknowledges_nothing() {
        let check = |coding: Option<&'static str>, bytes: &[u8], expected| {
            let coding = coding.map(|coding| (CONTENT_ENCODING, coding.parse().unwrap()));
            let headers = HeaderMap::from_iter(coding);
            let event = BatchEvent {
                text: EVENTS[0],
                envelope_id: None,
            };
            assert_eq!(
                read_acknowledgement(AnswerBody::new(&headers, bytes, true), &[event]),
                expected,
                "{bytes:?}"
            );
        };
        let report = r#"{"batchItemFailures":[{"itemIdentifier":"a"}]}"#;
        let little: Vec<u8> = report.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = report.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let with_mark: Vec<u8> = [0xff, 0xfe]
            .into_iter()
            .chain(little.iter().copied())
            .collect();
        let nothing = || BatchAcknowledgement::Nothing(ReportError::Coding);
        check(Some("gzip"), b"\x1f\x8b\x08\x00", nothing());
        check(Some("br"), b"OK", nothing());
        for bytes in [&little, &big, &with_mark] {
            check(None, bytes, nothing());
        }
        check(Some("gzip"), b"", BatchAcknowledgement::All);
        check(Some("Identity"), b"OK", BatchAcknowledgement::All);
        assert_eq!(cut("gr\u{fc}\u{df}e"), BatchAcknowledgement::All);
        assert_eq!(read(b"gr\xc3", false, &EVENTS), BatchAcknowledgement::All);
        assert_eq!(read(b"gr\xc3", true, &EVENTS), nothing());
    }

    proptest! {
        #[test]
        fn exactly_the_named_events_failed(failed in prop::collection::vec(any::<bool>(), 0..20)) {
            let text = |n| json!({ "id": format!("e{n}") }).to_string();
            let texts: Vec<_> = (0..failed.len()).map(text).collect();
            let events: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
            let named = failed.iter().enumerate().filter(|(_, failed)| **failed).map(|(n, _)| n);
            let expected: BTreeSet<usize> = named.clone().collect();
            let items: Vec<_> = named.map(|n| json!({ "itemIdentifier": format!("e{n}") })).collect();
            let body = json!({ "batchItemFailures": items }).to_string();
            match read(body.as_bytes(), true, &events) {
                BatchAcknowledgement::All => prop_assert!(expected.is_empty()),
                other => prop_assert_eq!(other, BatchAcknowledgement::AllBut(expected)),
            }
        }

        #[test]
        fn no_answer_makes_it_panic(bytes: Vec<u8>, is_whole: bool) {
            let _ = read(&bytes, is_whole, &EVENTS);
        }
    }
}
