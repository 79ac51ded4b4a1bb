//! The search for records of the delivery log: the filters, and the form that has them.

use std::iter;

use maud::{Markup, html};
use posthaste_core::api::events::RecordPage;
use posthaste_core::delivery_log::{LogResult, StatusRange};
use posthaste_core::model::Timestamp;
use serde::Deserialize;

use super::words::result_word;
use crate::address::PageAddress;
use crate::api::{ApiRefusal, ManageApi, RequestTarget};
use crate::console::PATH;
use crate::filters::{FormField, ROWS_MAX, TimeRangeFields};
use crate::pages::topic_names::TopicNames;

/// The fields of the form that the API may refuse.
pub(super) const FIELDS: [&str; 6] = ["subscription", "type", "result", "status", "from", "to"];

/// The last status that HTTP defines.
/// <https://www.rfc-editor.org/rfc/rfc9110#section-15>
const STATUS_MAX: u16 = 599;

/// The query of the page.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventSearch {
    pub(crate) topic: Option<String>,
    /// An event's id, of an address from before: leads to the event.
    pub(crate) id: Option<String>,
    /// A `webhook-id`, of an address from before: leads to the search.
    pub(crate) webhook_id: Option<String>,
    #[serde(rename = "type")]
    pub(crate) event_type: Option<String>,
    pub(crate) subscription: Option<String>,
    pub(crate) result: Option<String>,
    pub(crate) status: Option<String>,
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
    pub(crate) cursor: Option<String>,
}

impl EventSearch {
    /// The same for this topic, where none is named.
    pub(super) fn with_default_topic(self, only: Option<&str>) -> Self {
        Self {
            topic: self.topic.or_else(|| only.map(str::to_owned)),
            ..self
        }
    }

    /// Loads the records of the topic, if one is named and no event is looked for.
    pub(super) async fn load_records(
        &self,
        api: &ManageApi,
    ) -> Option<Result<RecordPage, ApiRefusal>> {
        let is_elsewhere = self.id.is_some() || self.webhook_id.is_some();
        let topic = self.topic.as_ref().filter(|_| !is_elsewhere)?;
        if self.has_invalid_status() {
            return Some(Err(invalid_status_refusal()));
        }
        let target =
            RequestTarget::new(&["topics", topic, "events"]).query("limit", Some(ROWS_MAX));
        let target = self
            .filters()
            .into_iter()
            .fold(target, |target, (name, value)| target.query(name, value));
        Some(
            api.get(target.query("cursor", self.cursor.as_deref()))
                .await,
        )
    }

    /// The address of a page of this search.
    pub(super) fn page_address(&self, cursor: Option<&str>) -> PageAddress {
        let address = PageAddress::new(&["events"]).query("topic", self.topic.as_deref());
        let filters = self.filters().into_iter();
        filters
            .fold(address, |address, (name, value)| address.query(name, value))
            .query("cursor", cursor)
    }

    /// The address of the first page with all filters but the times.
    fn address_of_any_time(&self) -> PageAddress {
        let of_any_time = Self {
            from: None,
            to: None,
            ..self.clone()
        };
        of_any_time.page_address(None)
    }

    /// The values that hold, each with its label.
    pub(super) fn chosen_filters(&self) -> Vec<(&'static str, Option<&str>)> {
        let topic = ("topic", self.topic.as_deref());
        iter::once(topic).chain(self.filters()).collect()
    }

    /// Whether a filter holds.
    pub(super) fn is_narrow(&self) -> bool {
        self.filters().iter().any(|(_, value)| value.is_some())
    }

    /// Whether the status is one that no response has. The API takes all of three digits.
    fn has_invalid_status(&self) -> bool {
        let asked = self.status.as_deref().and_then(StatusRange::parse);
        asked.is_some_and(|asked| asked.bounds().1 > STATUS_MAX)
    }

    fn filters(&self) -> [(&'static str, Option<&str>); 6] {
        let values = [
            &self.subscription,
            &self.event_type,
            &self.result,
            &self.status,
            &self.from,
            &self.to,
        ];
        std::array::from_fn(|at| (FIELDS[at], values[at].as_deref()))
    }
}

fn invalid_status_refusal() -> ApiRefusal {
    ApiRefusal {
        status: 400,
        member: Some("status".to_owned()),
        detail: Some("expected a status from 100 to 599, or a class from 1xx to 5xx".to_owned()),
        ..ApiRefusal::default()
    }
}

/// The form.
pub(super) fn filter_form(
    topics: &TopicNames,
    search: &EventSearch,
    refusal: Option<&ApiRefusal>,
    outage_since: Option<Timestamp>,
) -> Markup {
    let event_type = FormField::new("type", "Event type", search.event_type.as_deref(), refusal);
    let name = search.subscription.as_deref();
    let subscription = FormField::new("subscription", "Subscription", name, refusal);
    let result = FormField::new("result", "Result", search.result.as_deref(), refusal);
    let status = search.status.as_deref();
    let status = FormField::new("status", "Status of the answer", status, refusal);
    let times = TimeRangeFields::new(search.from.as_deref(), search.to.as_deref(), refusal)
        .with_presets(search.address_of_any_time())
        .with_outage(outage_since);
    let results: Vec<_> = LogResult::ALL
        .iter()
        .map(|it| (it.as_str(), result_word(*it)))
        .collect();
    html! {
        form.filters method="get" action={ (PATH) "/events" } {
            (topics.topic_field("(choose a topic)", search.topic.as_deref(), refusal))
            (event_type.with_example("com.example.order.paid").text_input())
            (subscription.with_example("billing").text_input())
            (result.labelled_select("(any)", &results))
            (status.with_example("503 or 5xx").text_input())
            (times.render())
            div { button.primary type="submit" { "Search" } }
        }
    }
}
