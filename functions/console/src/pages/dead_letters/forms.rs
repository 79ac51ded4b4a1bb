//! The forms with the filters of dead letters.

use maud::{Markup, html};
use posthaste_core::model::{DeadLetterReason, Timestamp};

use super::search::DeadLetterSearch;
use crate::address::PageAddress;
use crate::api::ApiRefusal;
use crate::console::PATH;
use crate::filters::{FormField, TimeLabels, TimeRangeFields, checkbox};
use crate::pages::topic_names::TopicNames;

/// The fields of the forms that the API may refuse.
pub(super) const FIELDS: [&str; 6] = ["topic", "subscription", "reason", "type", "from", "to"];
pub(super) const GROUP_FIELDS: [&str; 4] = ["topic", "subscription", "from", "to"];

/// The form of the groups.
pub(super) fn group_filter_form(
    topics: &TopicNames,
    search: &DeadLetterSearch,
    refusal: Option<&ApiRefusal>,
    outage_since: Option<Timestamp>,
) -> Markup {
    let name = search.subscription.as_deref();
    let subscription = FormField::new("subscription", "Subscription", name, refusal);
    let presets = search.at_any_time().groups_address(None);
    html! {
        form.filters method="get" action={ (PATH) "/dead-letters" } {
            (topics.topic_field("(any topic)", search.topic.as_deref(), refusal))
            (subscription.with_example("billing").text_input())
            (time_fields(search, refusal, presets, outage_since))
            (checkbox("includeResolved", "Include resolved", search.include_resolved))
            div { button.primary type="submit" { "Search" } }
        }
    }
}

/// The form of the list.
pub(super) fn filter_form(
    topics: &TopicNames,
    search: &DeadLetterSearch,
    refusal: Option<&ApiRefusal>,
    outage_since: Option<Timestamp>,
) -> Markup {
    let name = search.subscription.as_deref();
    let subscription = FormField::new("subscription", "Subscription", name, refusal);
    let reason = FormField::new("reason", "Reason", search.reason.as_deref(), refusal);
    let event_type = FormField::new("type", "Event type", search.event_type.as_deref(), refusal);
    let presets = search.at_any_time().page_address(None);
    let reasons = DeadLetterReason::ALL.map(DeadLetterReason::as_str);
    html! {
        form.filters method="get" action={ (PATH) "/dead-letters/list" } {
            (topics.topic_field("(any topic)", search.topic.as_deref(), refusal))
            (subscription.with_example("billing").text_input())
            (reason.word_select("(any)", &reasons))
            (event_type.with_example("com.example.order.paid").text_input())
            (time_fields(search, refusal, presets, outage_since))
            (checkbox("includeResolved", "Include resolved", search.include_resolved))
            div { button.primary type="submit" { "Search" } }
        }
    }
}

fn time_fields(
    search: &DeadLetterSearch,
    refusal: Option<&ApiRefusal>,
    presets: PageAddress,
    outage_since: Option<Timestamp>,
) -> Markup {
    TimeRangeFields::new(search.from.as_deref(), search.to.as_deref(), refusal)
        .with_labels(TimeLabels {
            from: "Written from",
            to: "Written before",
        })
        .with_presets(presets)
        .with_outage(outage_since)
        .render()
}
