//! Answers of endpoints.

use http::{HeaderMap, HeaderValue, StatusCode};
use posthaste_core::api::handshake::judge_response;
use posthaste_core::api::{AllowedRate, EndpointValidation, SecretText};
use posthaste_core::attempt::echo::{TextExtent, mask_secrets};
use posthaste_core::attempt::partial::read_acknowledgement;
use posthaste_core::attempt::{
    AnswerBody, BatchAcknowledgement, BatchEvent, readable_text, redirect_location,
};
use posthaste_core::delivery_log::{answer_body_text, answer_text};

use super::events::request;
use crate::hold::{debug, word};
use crate::target::Target;

/// Most bytes of an answer that are shown.
const SHOWN_BYTES_MAX: usize = 200;

/// The secret that no text may show.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// The targets.
pub(super) const TARGETS: &[Target] = &[
    Target {
        name: "partial-report",
        corpus: &["tests/parsers/corpus/answers/report"],
        check: report,
        weight: 1,
    },
    Target {
        name: "validation-answer",
        corpus: &["tests/parsers/corpus/answers/validation"],
        check: validation,
        weight: 1,
    },
    Target {
        name: "answer-text",
        corpus: &["tests/parsers/corpus/answers/"],
        check: shown,
        weight: 2,
    },
];

/// A report names events of the batch. If it names none that fits, nothing is lost: either all
/// arrived, or none counts as such.
fn report(bytes: &[u8]) -> String {
    let (headers, body) = request(bytes);
    let texts = [r#"{"id":"1"}"#, r#"{"id":"2"}"#, r#"{"id":"\u0033"}"#, "{}"];
    let events = texts.map(|text| BatchEvent {
        text: text.as_bytes(),
        envelope_id: None,
    });
    let cut = read_acknowledgement(AnswerBody::new(&headers, &body, false), &events);
    let whole = read_acknowledgement(AnswerBody::new(&headers, &body, true), &events);
    for answer in [&cut, &whole] {
        let arrived = (0..events.len()).filter(|index| answer.includes(*index));
        let arrived = arrived.count();
        match answer {
            BatchAcknowledgement::All => assert_eq!(arrived, events.len()),
            BatchAcknowledgement::AllBut(failed) => {
                assert!(failed.iter().all(|index| *index < events.len()));
                assert!(arrived < events.len(), "{answer:?}");
            }
            BatchAcknowledgement::Nothing(_) => assert_eq!(arrived, 0),
        }
    }
    word(&(cut, whole))
}

/// An answer to a question for consent.
fn validation(bytes: &[u8]) -> String {
    let (headers, body) = request(bytes);
    let origin = HeaderValue::from_static("posthaste.example");
    let code = SecretText::new("a-code");
    let judged = [
        EndpointValidation::CloudEvents,
        EndpointValidation::EventGrid,
    ]
    .map(|validation| {
        judge_response(
            (validation, &origin, &code),
            true,
            StatusCode::OK,
            &headers,
            &body,
        )
    });
    let _ = AllowedRate::from_headers(&headers);
    word(&judged)
}

/// The shown part of an answer is short, and has no secret in it.
fn shown(bytes: &[u8]) -> String {
    let (headers, body): (HeaderMap, _) = request(bytes);
    let text = readable_text(&headers, &body, SHOWN_BYTES_MAX);
    let location = redirect_location(308, &headers);
    let logged = answer_body_text(&headers, &body, &[SECRET]);
    assert!(!logged.contains(SECRET), "{logged}");
    assert!(!answer_text(&body, &[SECRET]).contains(SECRET));
    for extent in [TextExtent::Whole, TextExtent::Cut] {
        let masked = mask_secrets(&String::from_utf8_lossy(&body), &[SECRET], extent, "***");
        assert!(!masked.contains(SECRET), "{masked}");
    }
    debug(&(text.is_empty(), location.is_some(), text == logged))
}
