//! The page that sends events of a subscription again since a time: its dead letters, or those of
//! the delivery log, also what was delivered. Where the time is known, it shows at once what would
//! be sent, and starts it with one press.

use axum::http::{StatusCode, Uri};
use maud::{Markup, html};
use posthaste_core::api::ReplayPreview;
use serde::Deserialize;
use url::form_urlencoded;

use super::replay::{ReplayForm, is_empty};
use super::replay_source::LOG;
use super::search::DeadLetterSearch;
use crate::address::PageAddress;
use crate::api::ApiRefusal;
use crate::console::PageContext;
use crate::extract::{FormFields, PageQuery};
use crate::filters::{FormField, checkbox, hidden_fields};
use crate::page::{ConsolePage, MenuSection, PageResult, problem_box};
use crate::pages::known_topic::subscription_link;
use crate::parts::BACK;
use crate::visit::PageVisit;

/// The sources, as the API writes them.
const SOURCES: [(&str, &str); 1] = [(LOG, "All that the delivery log has")];

/// The ways in which a delivery ended, as the API writes them.
const RESULTS: [(&str, &str); 4] = [
    ("failed", "Given up"),
    ("dead-lettered", "Given up, and kept as a dead letter"),
    ("dropped", "Given up, and not kept"),
    ("delivered", "Delivered"),
];

/// The events per second of a replay.
const RATE: &str = "100";

/// The fields of the page.
const FIELDS: [&str; 9] = [
    "topic",
    "subscription",
    "source",
    "from",
    "to",
    "result",
    "status",
    "ratePerSecond",
    "includeFormer",
];

/// The fields of a page that says none of them: what was given up, and nothing that arrived.
const DEFAULTS: [(&str, &str); 3] = [
    ("source", LOG),
    ("result", "failed"),
    ("ratePerSecond", RATE),
];

/// The query of the page, as far as it must have it.
#[derive(Debug, Deserialize)]
pub(super) struct SendSinceQuery {
    topic: String,
    subscription: String,
    from: Option<String>,
}

/// The page, for a subscription.
pub(super) fn send_since_address(
    topic: &str,
    subscription: &str,
    from: Option<&str>,
) -> PageAddress {
    PageAddress::new(&["dead-letters", "send-since"])
        .query("topic", Some(topic))
        .query("subscription", Some(subscription))
        .query("from", from)
}

/// The page. A dry run changes nothing, so that a link may ask for one.
pub(super) async fn show_page(
    pages: PageContext,
    visit: PageVisit,
    PageQuery(asked): PageQuery<SendSinceQuery>,
    uri: Uri,
) -> PageResult {
    let chosen = chosen_fields(uri.query().unwrap_or_default())
        .ok_or_else(|| ConsolePage::bad_request("the address has too many parameters"))?;
    let replay = ReplayForm::from_form(&chosen, &visit);
    let preview = match &asked.from {
        Some(_) => Some(replay.load_preview(&pages.api).await),
        None => None,
    };
    let refusal = preview.as_ref().and_then(|preview| preview.as_ref().err());
    let body = html! {
        p { "To " (subscription_link(&asked.topic, &asked.subscription, false)) "." }
        (preview_part(preview.as_ref(), &replay, &visit))
        h2 { "Choose what is sent" }
        (asked.form(&chosen, refusal))
        p.hint {
            "The delivery log knows what it has kept, for some days. Events keep their delivery id, so a receiver that \
             drops what it has seen drops them. What is still tried is left out, and so are events whose dead \
             letters are resolved. An event that was given up and not kept is sent again each time."
        }
    };
    let status = refusal.map_or(StatusCode::OK, ApiRefusal::status_code);
    Ok(ConsolePage::new("Send again since a time", body)
        .in_section(MenuSection::DeadLetters)
        .with_status(status))
}

/// The events that would be sent, with the button that starts it.
fn preview_part(
    preview: Option<&Result<ReplayPreview, ApiRefusal>>,
    replay: &ReplayForm,
    visit: &PageVisit,
) -> Markup {
    html! {
        @match preview {
            None => p { "Choose since when. Then you see how many events would be sent." },
            Some(Err(refusal)) => (problem_box(refusal)),
            Some(Ok(preview)) => {
                (replay.preview_part(preview, visit, &html! {}))
                @if is_empty(preview) {
                    p.empty {
                        "There is nothing to send again. What still waits goes out by itself once its endpoint takes it."
                    }
                }
            },
        }
    }
}

/// The fields of the page that an address has, and defaults of those that it lacks; `None` if there
/// are too many. A field that is empty was chosen so. An address starts nothing, whatever it says.
fn chosen_fields(query: &str) -> Option<FormFields> {
    let given: Vec<_> = form_urlencoded::parse(query.as_bytes())
        .filter(|(name, _)| FIELDS.contains(&name.as_ref()))
        .collect();
    let mut fields = form_urlencoded::Serializer::new(String::new());
    fields.extend_pairs(&given);
    for (name, value) in DEFAULTS {
        if !given.iter().any(|(known, _)| known == name) {
            fields.append_pair(name, value);
        }
    }
    let here = format!(
        "{}?{query}",
        PageAddress::new(&["dead-letters", "send-since"])
    );
    fields.append_pair(BACK, &here);
    FormFields::parse(fields.finish().as_bytes())
}

impl SendSinceQuery {
    fn form(&self, chosen: &FormFields, refusal: Option<&ApiRefusal>) -> Markup {
        let owner = DeadLetterSearch::of_owner(&self.topic, &self.subscription);
        let value = |name: &str| chosen.get_filled(name);
        let [source, result, status, from, to, rate] =
            ["source", "result", "status", "from", "to", "ratePerSecond"].map(value);
        let source = FormField::new("source", "Which events", source.as_deref(), refusal);
        let result = FormField::new("result", "How they ended (log)", result.as_deref(), refusal);
        let status = FormField::new("status", "Last status (log)", status.as_deref(), refusal);
        let from = FormField::new("from", "Since", from.as_deref(), refusal);
        let to = FormField::new("to", "Until", to.as_deref(), refusal);
        let former = chosen.get("includeFormer") == "true";
        html! {
            form.filters method="get" action=(PageAddress::new(&["dead-letters", "send-since"])) {
                (hidden_fields(&owner.hidden_fields()))
                (source.labelled_select("Dead letters", &SOURCES))
                (from.time_input())
                (to.time_input())
                (result.labelled_select("(any)", &RESULTS))
                (status.with_example("5xx").text_input())
                (rate_input(rate.as_deref().unwrap_or_default()))
                (checkbox("includeFormer", "Include events for an earlier subscription of this name", former))
                div { button type="submit" { "Show what would be sent" } }
            }
        }
    }
}

/// The field for the events per second of a replay.
pub(super) fn rate_field() -> Markup {
    rate_input(RATE)
}

fn rate_input(rate: &str) -> Markup {
    html! {
        div {
            label for="ratePerSecond" { "Events per second" }
            input #ratePerSecond name="ratePerSecond" type="number" min="1" max="1000" value=(rate);
        }
    }
}
