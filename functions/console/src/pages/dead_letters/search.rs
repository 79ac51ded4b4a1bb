//! The search for dead letters: the filters, and the request that selects the same.

use maud::{Markup, html};
use posthaste_core::api::{DeadLetterPage, LetterGroupView};
use posthaste_core::model::{Timestamp, WrittenTime};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::ticked::TickedLetters;
use crate::address::PageAddress;
use crate::api::{ApiRefusal, ManageApi, RequestTarget};
use crate::display::foreign_text;
use crate::extract::FormFields;
use crate::filters::ROWS_MAX;
use crate::parts::{BACK, page_to_go_back_to};

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
    /// The letters that an action takes one by one.
    #[serde(skip)]
    ticked: TickedLetters,
    /// The page that an action leads back to.
    #[serde(skip)]
    back: Option<String>,
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
        let ticked = TickedLetters::from_form(fields);
        let named = fields
            .get_filled("topic")
            .zip(fields.get_filled("subscription"));
        let (topic, subscription) = named.or_else(|| ticked.only_owner()).unzip();
        let back = page_to_go_back_to(fields, "");
        Self {
            topic: topic.or_else(|| fields.get_filled("topic")),
            subscription: subscription.or_else(|| fields.get_filled("subscription")),
            reason: fields.get_filled("reason"),
            event_type: fields.get_filled("type"),
            from: fields.get_filled("from"),
            to: fields.get_filled("to"),
            ticked,
            back: (!back.is_empty()).then(|| back.to_owned()),
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

    /// One dead letter of a subscription.
    pub(super) fn of_letter(topic: &str, subscription: &str, object: &str, index: usize) -> Self {
        Self {
            ticked: TickedLetters::only(object, index),
            ..Self::of_owner(topic, subscription)
        }
    }

    /// The same of one group alone. Its actions lead back to the groups.
    pub(super) fn narrowed_to(&self, group: &LetterGroupView) -> Self {
        let of_group = Self::of_owner(&group.topic, &group.subscription);
        Self {
            reason: group.reason.map(|reason| reason.as_str().to_owned()),
            from: self.from.clone(),
            to: self.to.clone(),
            include_resolved: self.include_resolved,
            back: Some(self.groups_address(None).to_string()),
            ..of_group
        }
    }

    /// The same without those that are written from now on. Times that are relative to now become
    /// points in time: the action takes what the dry run counted.
    pub(super) fn frozen_at(self, now: Timestamp) -> Self {
        if self.ticked.is_used() {
            return self;
        }
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
        let list = PageAddress::new(&["dead-letters", "list"]);
        let address = address.fold(list, |it, (name, value)| it.query(name, value));
        address
            .query("includeResolved", self.include_resolved.then_some(true))
            .query("cursor", cursor)
    }

    /// The address of the groups of this search.
    pub(super) fn groups_address(&self, cursor: Option<&str>) -> PageAddress {
        let groups = PageAddress::new(&["dead-letters"]);
        let filters = self.owner_filters().into_iter().chain(self.time_filters());
        filters
            .fold(groups, |it, (name, value)| it.query(name, value))
            .query("includeResolved", self.include_resolved.then_some(true))
            .query("cursor", cursor)
    }

    /// The page that an action of this search leads back to.
    pub(super) fn page_after_action(&self) -> String {
        let back = self.back.clone();
        back.unwrap_or_else(|| self.page_address(None).to_string())
    }

    /// The same at any time.
    pub(super) fn at_any_time(&self) -> Self {
        Self {
            from: None,
            to: None,
            ..self.clone()
        }
    }

    /// The values that hold, each with its label, if it needs one.
    pub(super) fn chosen_filters(&self) -> Vec<(&'static str, Option<&str>)> {
        let resolved = ("", self.include_resolved.then_some("resolved too"));
        let owner = self.owner_filters().into_iter();
        owner
            .chain(self.other_filters())
            .chain([resolved])
            .collect()
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
        let (topic, name) = self.owner().filter(|_| self.missing_text().is_none())?;
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
        html! { a.button href=(self.page_after_action()) { "Go back" } }
    }

    /// Why an action has no subscription, or nothing to take. `None` if it has both.
    pub(super) fn missing_text(&self) -> Option<&'static str> {
        if self.ticked.is_empty_choice() {
            return Some("Nothing is ticked. Go back, and tick the dead letters that you mean.");
        }
        if self.owner().is_some() {
            return None;
        }
        Some(if self.ticked.is_used() {
            "The ticked dead letters are of several subscriptions. Go back, and tick those of one."
        } else {
            "Choose a topic and a subscription first."
        })
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
            (BACK, self.back.as_deref()),
        ];
        self.owner_filters()
            .into_iter()
            .chain(self.other_filters())
            .chain(rest)
            .chain(self.ticked.hidden_fields())
            .collect()
    }

    /// The same selection as the body of a request. The API reads its values, and says which it
    /// refuses.
    pub(super) fn request_body(&self) -> Map<String, Value> {
        let mut body = Map::new();
        if self.ticked.is_used() {
            // What was ticked is meant, whatever the filters of its list say.
            body.insert("letters".to_owned(), self.ticked.to_json());
            return body;
        }
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
        body
    }

    fn owner_filters(&self) -> [(&'static str, Option<&str>); 2] {
        [
            ("topic", self.topic.as_deref()),
            ("subscription", self.subscription.as_deref()),
        ]
    }

    fn other_filters(&self) -> [(&'static str, Option<&str>); 4] {
        let [from, to] = self.time_filters();
        [
            ("reason", self.reason.as_deref()),
            ("type", self.event_type.as_deref()),
            from,
            to,
        ]
    }

    fn time_filters(&self) -> [(&'static str, Option<&str>); 2] {
        [("from", self.from.as_deref()), ("to", self.to.as_deref())]
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
