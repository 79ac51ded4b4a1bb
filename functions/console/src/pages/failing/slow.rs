//! Targets that answer slowly, well or not.

use maud::{Markup, html};
use posthaste_core::api::SlowTargetView;

use crate::address;
use crate::display::{foreign_text, time_tag};
use crate::table::TableColumn::{self, Text};
use crate::table::data_table;

const COLUMNS: [TableColumn; 2] = [Text("Subscription or host"), Text("Until at least")];

/// The table of what answers slowly, if there is any.
pub(super) fn slow_section(targets: &[SlowTargetView]) -> Markup {
    html! {
        @if !targets.is_empty() {
            h2 { "Answered more slowly" }
            p.hint {
                "These answer slowly. Their deliveries have a queue of their own, the slow lane, so that no \
                 others wait for them."
            }
            (data_table("Answered more slowly", &COLUMNS, targets.iter().map(slow_row)))
        }
    }
}

fn slow_row(slow: &SlowTargetView) -> [Markup; 2] {
    let target = html! {
        @if let (Some(topic), Some(name)) = (&slow.topic, &slow.subscription) {
            a href=(address::subscription_path(topic.as_str(), name.as_str(), &[])) { (topic) " / " (name) }
            br;
        }
        span.hint { (foreign_text(&slow.link)) }
    };
    [target, time_tag(slow.slow_until.0)]
}
