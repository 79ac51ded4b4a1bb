//! The fields of a time range in a form with filters, and links to ranges that are often asked for.

use maud::{Markup, html};
use posthaste_core::model::Timestamp;

use super::field::FormField;
use crate::address::PageAddress;
use crate::api::ApiRefusal;

/// The ranges that are often asked for, as the API writes their beginnings. `today` begins at midnight
/// in UTC; the script makes it the day of the zone that is shown.
const PRESETS: [(&str, &str); 3] = [("15m", "15 min"), ("1h", "1 h"), ("today", "Today")];

/// The two times of a range, `from` and `to`, in a form with filters.
#[derive(Debug, Clone)]
pub(crate) struct TimeRangeFields<'a> {
    from: Option<&'a str>,
    to: Option<&'a str>,
    labels: TimeLabels,
    refusal: Option<&'a ApiRefusal>,
    /// The list with all filters but the times.
    list: Option<PageAddress>,
    outage_since: Option<Timestamp>,
}

/// The labels of the two fields.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeLabels {
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
}

impl<'a> TimeRangeFields<'a> {
    pub(crate) fn new(
        from: Option<&'a str>,
        to: Option<&'a str>,
        refusal: Option<&'a ApiRefusal>,
    ) -> Self {
        let labels = TimeLabels {
            from: "From",
            to: "To",
        };
        Self {
            from,
            to,
            labels,
            refusal,
            list: None,
            outage_since: None,
        }
    }

    pub(crate) fn with_labels(self, labels: TimeLabels) -> Self {
        Self { labels, ..self }
    }

    /// The same with links to ranges of `list`, the address of the list with all filters but the
    /// times.
    pub(crate) fn with_presets(self, list: PageAddress) -> Self {
        Self {
            list: Some(list),
            ..self
        }
    }

    /// The same with a link to the time since the outage of the chosen subscription began.
    pub(crate) fn with_outage(self, since: Option<Timestamp>) -> Self {
        Self {
            outage_since: since,
            ..self
        }
    }

    /// The links, the two fields, and the zone of their times.
    pub(crate) fn render(&self) -> Markup {
        html! {
            @if let Some(list) = &self.list { (self.preset_links(list)) }
            (self.time_field("from", self.labels.from, self.from))
            (self.time_field("to", self.labels.to, self.to))
            p.hint.zone { "Times in " span data-zone { "UTC" } "." }
        }
    }

    fn time_field(&self, name: &str, label: &str, value: Option<&str>) -> Markup {
        FormField::new(name, label, value, self.refusal).time_input()
    }

    fn preset_links(&self, list: &PageAddress) -> Markup {
        html! {
            nav.presets aria-label="Time" {
                @for (from, label) in PRESETS { (self.preset_link(list, from, label)) }
                @if let Some(since) = self.outage_since {
                    (self.preset_link(list, &since.to_string(), "Since the outage began"))
                }
            }
        }
    }

    fn preset_link(&self, list: &PageAddress, from: &str, label: &str) -> Markup {
        let address = list.clone().query("from", Some(from));
        let is_chosen = self.from == Some(from) && self.to.is_none();
        html! {
            a href=(address) data-day[from == "today"]
                aria-current=[is_chosen.then_some("true")] { (label) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> PageAddress {
        PageAddress::new(&["events"]).query("topic", Some("a&b"))
    }

    #[test]
    fn presets_keep_the_other_filters_and_name_the_chosen_one() {
        let range = TimeRangeFields::new(Some("1h"), None, None).with_presets(list());
        let shown = range.render().into_string();
        for expected in [
            r#"<a href="/console/events?topic=a%26b&amp;from=15m">15 min</a>"#,
            r#"<a href="/console/events?topic=a%26b&amp;from=1h" aria-current="true">1 h</a>"#,
            r#"<a href="/console/events?topic=a%26b&amp;from=today" data-day>Today</a>"#,
            r#"name="from" value="1h""#,
            "Times in <span data-zone>UTC</span>.",
        ] {
            assert!(shown.contains(expected), "{expected} is missing in {shown}");
        }
        assert!(!shown.contains("outage"), "{shown}");
    }

    #[test]
    fn known_outage_is_a_preset() {
        let since = Timestamp::from_millis(1_700_000_000_000);
        let range = TimeRangeFields::new(None, None, None)
            .with_presets(list())
            .with_outage(Some(since));
        let shown = range.render().into_string();
        let link = "from=2023-11-14T22%3A13%3A20.000Z\">Since the outage began</a>";
        assert!(shown.contains(link), "{shown}");
    }

    #[test]
    fn fields_have_their_labels_and_no_presets_without_a_list() {
        let labels = TimeLabels {
            from: "Written from",
            to: "Written before",
        };
        let range = TimeRangeFields::new(None, Some("<x>"), None).with_labels(labels);
        let shown = range.render().into_string();
        assert!(shown.contains(">Written from</label>"), "{shown}");
        assert!(shown.contains("value=\"&lt;x&gt;\""), "{shown}");
        assert!(!shown.contains("<nav"), "{shown}");
    }
}
