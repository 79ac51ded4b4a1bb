//! The form that sends events of a subscription again since a time: its dead letters, or those of the
//! delivery log, also what was delivered. It begins with a dry run.

use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::search::DeadLetterSearch;
use crate::address::PageAddress;
use crate::extract::{FormFields, PageQuery};
use crate::filters::{FormField, checkbox, hidden_fields};
use crate::page::{ConsolePage, MenuSection, form_token};
use crate::pages::known_topic::subscription_link;
use crate::parts::back_field;
use crate::visit::PageVisit;

/// The sources, as the API writes them.
const SOURCES: [(&str, &str); 2] = [
    ("deadLetters", "Dead letters"),
    ("log", "All that the delivery log has"),
];

/// The source whose events may also have been delivered.
const LOG: &str = SOURCES[1].0;

/// The ways in which a delivery ended, as the API writes them.
const RESULTS: [(&str, &str); 4] = [
    ("failed", "Given up"),
    ("dead-lettered", "Given up, and kept as a dead letter"),
    ("dropped", "Given up, and not kept"),
    ("delivered", "Delivered"),
];

/// The query of the page.
#[derive(Debug, Deserialize)]
pub(super) struct SendSinceQuery {
    topic: String,
    subscription: String,
    from: Option<String>,
}

/// The page of the form, for a subscription.
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

/// The page.
pub(super) async fn show_form(
    visit: PageVisit,
    PageQuery(asked): PageQuery<SendSinceQuery>,
) -> ConsolePage {
    let body = html! {
        p {
            "To " (subscription_link(&asked.topic, &asked.subscription, false)) ". First you see how many events \
             would be sent."
        }
        (asked.form(&visit))
        p.hint {
            "The delivery log knows what it has kept, for some days. Events keep their delivery id, so a receiver that \
             drops what it has seen drops them. What is still tried is left out, and so is what was sent again \
             before."
        }
    };
    ConsolePage::new("Send again since a time", body).in_section(MenuSection::DeadLetters)
}

impl SendSinceQuery {
    fn form(&self, visit: &PageVisit) -> Markup {
        let back = send_since_address(&self.topic, &self.subscription, self.from.as_deref());
        let owner = DeadLetterSearch::of_owner(&self.topic, &self.subscription);
        let source = FormField::new("source", "Which events", Some(LOG), None);
        let result = FormField::new("result", "How they ended (delivery log)", None, None);
        let status = FormField::new(
            "status",
            "Status of the last answer (delivery log)",
            None,
            None,
        );
        let from = FormField::new("from", "Since", self.from.as_deref(), None);
        let to = FormField::new("to", "Until", None, None);
        html! {
            form.filters method="post" action=(PageAddress::new(&["dead-letters", "replay"])) {
                (form_token(&visit.form_token))
                (hidden_fields(&owner.hidden_fields()))
                (back_field(&back.to_string()))
                (source.labelled_select("Dead letters", &SOURCES[1..]))
                (from.time_input())
                (to.time_input())
                (result.labelled_select("(any)", &RESULTS))
                (status.with_example("5xx").text_input())
                (rate_field())
                (checkbox("includeFormer", "Include events for an earlier subscription of this name", false))
                div { button.primary type="submit" { "Show what would be sent" } }
            }
        }
    }
}

/// The field for the events per second of a replay.
pub(super) fn rate_field() -> Markup {
    html! {
        div {
            label for="ratePerSecond" { "Events per second" }
            input #ratePerSecond name="ratePerSecond" type="number" min="1" max="1000" value="100";
        }
    }
}

/// The source of a replay, with what only one from the delivery log has.
#[derive(Debug, Clone, Default)]
pub(super) struct ReplaySourceFields {
    source: Option<String>,
    result: Option<String>,
    status: Option<String>,
}

impl ReplaySourceFields {
    pub(super) fn from_form(fields: &FormFields) -> Self {
        Self {
            source: fields.get_filled("source"),
            result: fields.get_filled("result"),
            status: fields.get_filled("status"),
        }
    }

    /// Whether the events are those of the delivery log.
    pub(super) fn is_log(&self) -> bool {
        self.source.as_deref() == Some(LOG)
    }

    /// Writes the source into the body of a request. The API refuses what it does not know.
    pub(super) fn write_to(&self, body: &mut Map<String, Value>) {
        for (name, value) in self.hidden_fields() {
            if let Some(value) = value {
                body.insert(name.to_owned(), value.into());
            }
        }
    }

    /// The same as hidden fields. Dead letters have neither a result nor a status to choose by.
    pub(super) fn hidden_fields(&self) -> [(&'static str, Option<&str>); 3] {
        let of_log = self.is_log();
        [
            ("source", self.source.as_deref()),
            ("result", self.result.as_deref().filter(|_| of_log)),
            ("status", self.status.as_deref().filter(|_| of_log)),
        ]
    }
}
