//! The search for dead letters: the filters, the form that has them, and the request that selects
//! the same.

use maud::{Markup, html};
use posthaste_core::api::DeadLetterPage;
use posthaste_core::model::{DeadLetterReason, Timestamp, WrittenTime};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::address::PageAddress;
use crate::api::{ApiRefusal, ManageApi, RequestTarget};
use crate::console::PATH;
use crate::display::foreign_text;
use crate::extract::FormFields;
use crate::filters::{FormField, ROWS_MAX, checkbox};
use crate::pages::topic_names::TopicNames;

/// The fields of the form that the API may refuse.
pub(super) const FIELDS: [&str; 6] = ["topic", "subscription", "reason", "type", "from", "to"];

/// The query of the page.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeadLetterSearch {
    pub(super) topic: Option<String>,
    pub(super) subscription: Option<String>,
    pub(super) reason: Option<String>,
    #[serde(rename = "type")]
    pub(super) event_type: Option<String>,
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
    /// The only object whose letters an action takes.
    #[serde(skip)]
    object: Option<String>,
    /// The time of a dry run: the action takes nothing that was written later.
    #[serde(skip)]
    until: Option<String>,
    #[serde(default)]
    pub(super) include_resolved: bool,
    pub(super) cursor: Option<String>,
}

impl DeadLetterSearch {
    /// The search that the fields of a form name.
    pub(super) fn from_form(fields: &FormFields) -> Self {
        Self {
            topic: fields.get_filled("topic"),
            subscription: fields.get_filled("subscription"),
            reason: fields.get_filled("reason"),
            event_type: fields.get_filled("type"),
            from: fields.get_filled("from"),
            to: fields.get_filled("to"),
            object: fields.get_filled("object"),
            until: fields.get_filled("until"),
            include_resolved: fields.get("includeResolved") == "true",
            cursor: None,
        }
    }

    /// All dead letters of a subscription.
    pub(super) fn of_owner(topic: &str, subscription: &str) -> Self {
        let topic = Some(topic.to_owned());
        let subscription = Some(subscription.to_owned());
        Self {
            topic,
            subscription,
            ..Self::default()
        }
    }

    /// The dead letters of a subscription in one object.
    pub(super) fn of_object(topic: &str, subscription: &str, object: &str) -> Self {
        Self {
            object: Some(object.to_owned()),
            ..Self::of_owner(topic, subscription)
        }
    }

    /// The same without those that are written from now on. Times that are relative to now become
    /// points in time: the action takes what the dry run counted.
    pub(super) fn frozen_at(self, now: Timestamp) -> Self {
        let Ok(from) = self.from.as_deref().map(WrittenTime::parse).transpose() else {
            return self;
        };
        let Ok(to) = self.to.as_deref().map(WrittenTime::parse).transpose() else {
            return self;
        };
        let (begin, end) = WrittenTime::resolve_period(from, to, now);
        let is_open = end.is_none_or(|end| end > now) && begin.is_none_or(|begin| begin < now);
        Self {
            from: freeze_time(self.from.as_deref(), from, begin),
            to: freeze_time(self.to.as_deref(), to, end),
            until: is_open.then(|| now.to_string()),
            ..self
        }
    }

    /// The note of a dry run that the action leaves out what is written after it.
    pub(super) fn until_hint(&self) -> Markup {
        html! {
            @if self.until.is_some() {
                p.hint { "Dead letters that are written from now on are not part of it." }
            }
        }
    }

    /// Loads a page.
    pub(super) async fn load_dead_letters(
        &self,
        api: &ManageApi,
    ) -> Result<DeadLetterPage, ApiRefusal> {
        let target = match (&self.topic, &self.subscription) {
            (None, None) => RequestTarget::new(&["dead-letters"]),
            (Some(topic), None) => RequestTarget::new(&["topics", topic, "dead-letters"]),
            (Some(topic), Some(name)) => {
                RequestTarget::new(&["topics", topic, "subscriptions", name, "dead-letters"])
            }
            (None, Some(_)) => return Err(missing_topic_refusal()),
        };
        let target = self
            .other_filters()
            .into_iter()
            .fold(target, |target, (name, it)| target.query(name, it));
        let target = target.query("includeResolved", self.include_resolved.then_some(true));
        api.get(
            target
                .query("limit", Some(ROWS_MAX))
                .query("cursor", self.cursor.as_deref()),
        )
        .await
    }

    /// The address of a page of this search.
    pub(super) fn page_address(&self, cursor: Option<&str>) -> PageAddress {
        let address = self.owner_filters().into_iter().chain(self.other_filters());
        let address = address.fold(PageAddress::new(&["dead-letters"]), |it, (name, value)| {
            it.query(name, value)
        });
        address
            .query("includeResolved", self.include_resolved.then_some(true))
            .query("cursor", cursor)
    }

    /// The link to the letters of one subscription, where others are shown too.
    pub(super) fn only_owner_link(&self, topic: &str, subscription: &str) -> Markup {
        let of_owner = Self {
            cursor: None,
            ..self.clone()
        };
        let of_owner = Self {
            topic: Some(topic.to_owned()),
            ..of_owner
        };
        let of_owner = Self {
            subscription: Some(subscription.to_owned()),
            ..of_owner
        };
        html! {
            @if self.owner().is_none() {
                br;
                a.hint href=(of_owner.page_address(None)) { "Only this subscription" }
            }
        }
    }

    /// The subscription that is chosen.
    pub(super) fn owner(&self) -> Option<(&str, &str)> {
        self.topic.as_deref().zip(self.subscription.as_deref())
    }

    /// The request that does this to the subscription's dead letters; `None` without one.
    pub(super) fn action_target(&self, action: &str) -> Option<RequestTarget> {
        let (topic, name) = self.owner()?;
        Some(RequestTarget::new(&[
            "topics",
            topic,
            "subscriptions",
            name,
            "dead-letters",
            action,
        ]))
    }

    pub(super) fn owner_text(&self) -> Markup {
        let (topic, name) = self.owner().unwrap_or_default();
        html! { (foreign_text(topic)) " / " (foreign_text(name)) }
    }

    pub(super) fn back_link(&self) -> Markup {
        html! { a.button href=(self.page_address(None)) { "Back to the dead letters" } }
    }

    /// Whether a filter holds.
    pub(super) fn is_narrow(&self) -> bool {
        self.owner_filters()
            .iter()
            .chain(&self.other_filters())
            .any(|(_, value)| value.is_some())
    }

    /// The same selection as hidden fields of a form.
    pub(super) fn hidden_fields(&self) -> Vec<(&'static str, Option<&str>)> {
        let resolved = ("includeResolved", self.include_resolved.then_some("true"));
        let rest = [
            resolved,
            ("until", self.until.as_deref()),
            ("object", self.object.as_deref()),
        ];
        self.owner_filters()
            .into_iter()
            .chain(self.other_filters())
            .chain(rest)
            .collect()
    }

    /// The same selection as the body of a request. The API reads its values, and says which it
    /// refuses.
    pub(super) fn request_body(&self) -> Map<String, Value> {
        let mut body = Map::new();
        for (name, value) in self.other_filters() {
            let Some(value) = value else { continue };
            match name {
                "type" => body.insert("types".to_owned(), vec![value].into()),
                _ => body.insert(name.to_owned(), value.into()),
            };
        }
        if let Some(until) = &self.until {
            body.insert("to".to_owned(), until.as_str().into());
        }
        if let Some(object) = &self.object {
            body.insert("keys".to_owned(), vec![object.as_str()].into());
        }
        body
    }

    fn owner_filters(&self) -> [(&'static str, Option<&str>); 2] {
        [
            ("topic", self.topic.as_deref()),
            ("subscription", self.subscription.as_deref()),
        ]
    }

    fn other_filters(&self) -> [(&'static str, Option<&str>); 4] {
        [
            ("reason", self.reason.as_deref()),
            ("type", self.event_type.as_deref()),
            ("from", self.from.as_deref()),
            ("to", self.to.as_deref()),
        ]
    }
}

/// The text of a time: as it was written, or the point in time if it was relative to now.
fn freeze_time(
    text: Option<&str>,
    written: Option<WrittenTime>,
    at: Option<Timestamp>,
) -> Option<String> {
    match written {
        None | Some(WrittenTime::At(_)) => text.map(str::to_owned),
        Some(_) => at.map(|at| at.to_string()),
    }
}

fn missing_topic_refusal() -> ApiRefusal {
    ApiRefusal {
        status: 400,
        member: Some("topic".to_owned()),
        detail: Some("A subscription needs its topic.".to_owned()),
        ..ApiRefusal::default()
    }
}

/// The form.
pub(super) fn filter_form(
    topics: &TopicNames,
    search: &DeadLetterSearch,
    refusal: Option<&ApiRefusal>,
) -> Markup {
    let name = search.subscription.as_deref();
    let subscription = FormField::new("subscription", "Subscription", name, refusal);
    let reason = FormField::new("reason", "Reason", search.reason.as_deref(), refusal);
    let event_type = FormField::new("type", "Event type", search.event_type.as_deref(), refusal);
    let from = FormField::new(
        "from",
        "Written from (UTC)",
        search.from.as_deref(),
        refusal,
    );
    let to = FormField::new("to", "Written before (UTC)", search.to.as_deref(), refusal);
    let reasons = DeadLetterReason::ALL.map(DeadLetterReason::as_str);
    html! {
        form.filters method="get" action={ (PATH) "/dead-letters" } {
            (topics.topic_field("(any topic)", search.topic.as_deref(), refusal))
            (subscription.with_example("billing").text_input())
            (reason.word_select("(any)", &reasons))
            (event_type.with_example("com.example.order.paid").text_input())
            (from.time_input())
            (to.time_input())
            (checkbox("includeResolved", "Include resolved", search.include_resolved))
            div { button.primary type="submit" { "Search" } }
        }
    }
}
