//! One dead letter, as it is stored.

use bytes::Bytes;
use maud::{Markup, html};
use posthaste_core::api::events::EncodedId;
use posthaste_core::delivery_log::log_text;
use posthaste_core::stored::dead_letter::{ShownLetter, shown_letters};
use posthaste_core::stored::layout;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::owner::LetterOwner;
use super::places::{LetterMatch, match_table, record_address};
use super::search::DeadLetterSearch;
use crate::address::PageAddress;
use crate::api::RequestTarget;
use crate::console::PageContext;
use crate::display::{BODY_CHARS_MAX, foreign_cut, foreign_text, number};
use crate::extract::PageQuery;
use crate::filters::hidden_fields;
use crate::page::{ConsolePage, MenuSection, PageResult, form_token};
use crate::pages::event::{json_body, resend_address};
use crate::parts::{fact, foreign_fact};
use crate::visit::PageVisit;

/// Most characters of a fact.
const FACT_CHARS_MAX: usize = 1_100;

/// The query of the page.
#[derive(Debug, Deserialize)]
pub(crate) struct RecordPageQuery {
    object: String,
    index: Option<usize>,
    /// The event's id, where its place is not known.
    id: Option<String>,
    /// The same in base64url.
    id64: Option<EncodedId>,
}

impl RecordPageQuery {
    fn id(&self) -> Option<&str> {
        let encoded = self.id64.as_ref().map(|id| id.0.as_str());
        encoded.or(self.id.as_deref())
    }
}

/// The page of a dead letter, by its place in its object or by its event's id, or else of the first
/// one.
pub(crate) async fn show_record(
    pages: PageContext,
    visit: PageVisit,
    PageQuery(asked): PageQuery<RecordPageQuery>,
) -> PageResult {
    let (_, bytes) = pages
        .api
        .get_bytes(RequestTarget::new(&["dead-letters", &asked.object]))
        .await?;
    let letters = shown_letters(&bytes).unwrap_or_default();
    let object = &asked.object;
    let owner = LetterOwner::load(&pages.api, object).await;
    let letter = StoredLetters {
        object,
        letters: &letters,
        owner: owner.as_ref(),
    };
    let body = match LetterMatch::find(asked.index, asked.id(), &letters) {
        _ if letters.is_empty() => unreadable_object(object, &bytes),
        LetterMatch::At(index) => letter.render_letter(&bytes, index, &visit),
        LetterMatch::Several(places) => {
            html! { (match_table(object, &letters, &places)) (list_link(object)) }
        }
        LetterMatch::Nowhere => html! { (not_found_note(&asked)) (list_link(object)) },
    };
    Ok(ConsolePage::new("Dead letter", body).in_section(MenuSection::DeadLetters))
}

/// The letters of an object, and their subscription.
struct StoredLetters<'a> {
    object: &'a str,
    letters: &'a [ShownLetter],
    owner: Option<&'a LetterOwner>,
}

impl StoredLetters<'_> {
    fn render_letter(&self, bytes: &Bytes, index: usize, visit: &PageVisit) -> Markup {
        let records: Vec<&RawValue> = serde_json::from_slice(bytes).unwrap_or_default();
        html! {
            @if let Some((record, letter)) = records.get(index).zip(self.letters.get(index)) {
                (self.fact_list(index, letter))
                (self.action_forms(index, letter, visit))
                h2 { "Record" }
                (json_body(record.get()))
                (neighbour_links(self.object, self.letters, index))
                (technical_facts(self.object, Some(index)))
            }
        }
    }

    fn fact_list(&self, index: usize, letter: &ShownLetter) -> Markup {
        html! {
            dl.facts {
                @if let Some(state) = self.owner.and_then(|owner| owner.state_text(index)) {
                    (fact("State", &state))
                }
                (foreign_fact("Event", letter.id.as_deref(), FACT_CHARS_MAX))
                (foreign_fact("Type", letter.event_type.as_deref(), FACT_CHARS_MAX))
                @if let Some(owner) = self.owner { (fact("Subscription", &owner.subscription_links())) }
                (foreign_fact("Reason for giving up", letter.reason.as_deref(), FACT_CHARS_MAX))
                @if let Some(attempts) = letter.attempts { (fact("Attempts", &html! { (attempts) })) }
                @if let Some(status) = letter.status {
                    (fact("Status of the last answer", &html! { (status) }))
                }
            }
        }
    }

    /// The event's page, and the forms that send this letter again and resolve it.
    fn action_forms(&self, index: usize, letter: &ShownLetter, visit: &PageVisit) -> Markup {
        let Some(owner) = self.owner else {
            return html! {};
        };
        let id = letter.id.as_deref().map(log_text);
        html! {
            div.actions {
                @if let Some(id) = &id {
                    a.button href=(PageAddress::for_event(&owner.topic, id)) { "Attempts of the event" }
                    @if !owner.is_deleted { (send_form(owner, self.object, index, id, visit)) }
                }
                (owner.resolve_form(index, visit))
            }
            @if owner.is_deleted {
                p.hint { "The subscription is deleted, so its dead letters cannot be sent again." }
            }
        }
    }
}

fn send_form(
    owner: &LetterOwner,
    object: &str,
    index: usize,
    id: &str,
    visit: &PageVisit,
) -> Markup {
    let index = index.to_string();
    let subscription = owner.subscription.as_str();
    let fields = [
        ("subscription", Some(subscription)),
        ("object", Some(object)),
        ("index", Some(&*index)),
    ];
    html! {
        form method="post" action=(resend_address(&owner.topic, id)) {
            (form_token(&visit.form_token))
            (hidden_fields(&fields))
            button type="submit" { "Send this event again" }
        }
    }
}

/// The page of a place or an id that the object does not have.
fn not_found_note(asked: &RecordPageQuery) -> Markup {
    html! {
        p.empty {
            @if asked.index.is_some() {
                "There is no dead letter of this number here. "
            } @else {
                "There is no dead letter of this id here. "
            }
            a href=(record_address(&asked.object, 0)) { "Show the first one" } "."
        }
    }
}

/// The way to all dead letters of the object's subscription.
fn list_link(object: &str) -> Markup {
    html! {
        @if let Some((topic, subscription)) = layout::dead_letter_owner(object) {
            @let list = DeadLetterSearch::of_owner(topic.as_str(), subscription.as_str());
            p { a.button href=(list.page_address(None)) { "Dead letters of this subscription" } }
        }
    }
}

fn neighbour_links(object: &str, letters: &[ShownLetter], index: usize) -> Markup {
    html! {
        @if letters.len() > 1 {
            p.hint {
                (number(letters.len() as u64)) " dead letters were written together; this is number "
                (number(index as u64 + 1)) "."
            }
            nav.pager aria-label="Dead letters written together" {
                @if let Some(before) = index.checked_sub(1) {
                    a.button href=(record_address(object, before)) { "Event before" }
                }
                @if index + 1 < letters.len() {
                    a.button href=(record_address(object, index + 1)) { "Next event" }
                }
            }
        }
    }
}

/// The place in the store, for commands and requests that take it.
fn technical_facts(object: &str, index: Option<usize>) -> Markup {
    html! {
        details {
            summary { "Technical" }
            dl.facts {
                (fact("Key in the store", &html! { code { (foreign_text(object)) } }))
                @if let Some(index) = index { (fact("Index", &html! { (index) })) }
            }
        }
    }
}

fn unreadable_object(object: &str, bytes: &[u8]) -> Markup {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(BODY_CHARS_MAX)]);
    html! {
        p { "What is stored here is no list of dead letters. It begins like this." }
        dl.facts {
            dt { "Bytes" }
            dd { (number(bytes.len() as u64)) }
        }
        pre tabindex="0" { (foreign_cut(&text, BODY_CHARS_MAX)) }
        (technical_facts(object, None))
    }
}
