//! The attempt with a test event.

use maud::{Markup, html};
use posthaste_core::api::TestAttempt;

use crate::display::{foreign_cut, foreign_text, number};
use crate::pages::sent_request::{headers_table, request_part};
use crate::parts::{body_block, fact};

/// Most characters of a reason.
const REASON_CHARS_MAX: usize = 1_000;

pub(super) fn attempt_facts(attempt: &TestAttempt) -> Markup {
    let (class, word) = if attempt.delivered {
        ("good", "delivered")
    } else {
        ("bad", "not delivered")
    };
    html! {
        dl.facts {
            (fact("Result", &html! { span class={ "badge " (class) } { (word) } }))
            (fact("Outcome", &foreign_text(&attempt.outcome)))
            @if let Some(failure) = &attempt.failure {
                (fact("Reason", &foreign_cut(failure, REASON_CHARS_MAX)))
            }
            (fact("Time", &html! { (number(attempt.took_ms)) " ms" }))
        }
        h2 { "Request" }
        (request_part(&attempt.request))
        h2 { "Answer" }
        @match &attempt.response {
            None => p.empty { "The endpoint did not answer." },
            Some(response) => {
                p { "Status " strong { (response.status) } }
                (headers_table("Headers of the answer", &response.headers))
                (body_block("Body of the answer", &response.body))
                @if !response.body_is_whole { p.hint { "The endpoint sent more than was read." } }
            }
        }
    }
}
