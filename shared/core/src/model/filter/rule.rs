//! A subscription's filter.

use super::fold::fold_char;
use super::{FilterKey, FilterTest};

/// The entry of [`Filter::included_event_types`] that stands for every type, as in Event Grid.
const ALL_TYPES: &str = "All";

/// A subscription's filter. The default lets every event through.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Types let through; none, or the entry `All`, means every type. Compared exactly, case
    /// included: Event Grid asks for an "exact match" of type names.
    /// <https://learn.microsoft.com/azure/event-grid/subscription-creation-schema#filter-object>
    pub included_event_types: Vec<String>,
    /// The beginning of the subject; empty means any. No wildcards.
    pub subject_begins_with: String,
    /// The end of the subject; empty means any. No wildcards.
    pub subject_ends_with: String,
    /// Whether case matters in the two subject rules. Event Grid's default is that it does not.
    pub is_subject_case_sensitive: bool,
    /// The advanced filters, all of which must hold. [`FilterSet`](super::FilterSet) looks at
    /// them.
    pub advanced: Vec<FilterCondition>,
    /// Whether the advanced filters look into arrays.
    pub arrays: bool,
}

/// An advanced filter.
#[derive(Debug, Clone)]
pub struct FilterCondition {
    /// The part of the event that is tested.
    pub key: FilterKey,
    /// The test that it must pass.
    pub test: FilterTest,
}

impl Filter {
    /// Whether every type is let through.
    pub(crate) fn includes_all_types(&self) -> bool {
        let types = &self.included_event_types;
        types.is_empty() || types.iter().any(|included| included == ALL_TYPES)
    }

    pub(crate) fn includes_type(&self, event_type: &str) -> bool {
        self.includes_all_types()
            || self
                .included_event_types
                .iter()
                .any(|included| included == event_type)
    }

    pub(crate) fn includes_subject(&self, subject: &str) -> bool {
        let start = &self.subject_begins_with;
        let end = &self.subject_ends_with;
        if self.is_subject_case_sensitive {
            return subject.starts_with(start.as_str()) && subject.ends_with(end.as_str());
        }
        begins_with(folded_chars(subject), folded_chars(start))
            && begins_with(folded_chars(subject).rev(), folded_chars(end).rev())
    }
}

/// The characters of a text, folded, from either end, without a copy.
fn folded_chars(text: &str) -> impl DoubleEndedIterator<Item = char> {
    text.chars().map(fold_char)
}

fn begins_with(mut text: impl Iterator<Item = char>, start: impl Iterator<Item = char>) -> bool {
    start
        .into_iter()
        .all(|expected| text.next() == Some(expected))
}

#[cfg(test)]
mod tests {
    //! Reads events, which lie above filters.

    use super::*;
    use crate::events::Event;
    use crate::model::EventSchema;
    use crate::model::filter::fold::fold_case;
    use bytes::Bytes;
    use proptest::prelude::*;

    fn event(event_type: &str, subject: Option<&str>) -> Event {
        let mut json = serde_json::json!({"specversion": "1.0", "id": "1", "source": "/s", "type": event_type});
        if let Some(subject) = subject {
            json["subject"] = subject.into();
        }
        Event::parse(EventSchema::CloudEvents, Bytes::from(json.to_string())).unwrap()
    }

    fn by_type(types: &[&str], event_type: &str) -> bool {
        let included_event_types = types.iter().map(|&text| text.to_owned()).collect();
        Filter {
            included_event_types,
            ..Filter::default()
        }
        .includes_event(&event(event_type, None))
    }

    fn by_subject(
        start: &str,
        end: &str,
        is_subject_case_sensitive: bool,
        subject: Option<&str>,
    ) -> bool {
        let filter = Filter {
            subject_begins_with: start.to_owned(),
            subject_ends_with: end.to_owned(),
            is_subject_case_sensitive,
            ..Filter::default()
        };
        filter.includes_event(&event("t", subject))
    }

    #[test]
    fn the_default_lets_every_event_through() {
        assert!(Filter::default().includes_event(&event("t", None)));
        assert!(Filter::default().includes_event(&event("t", Some("/a/b"))));
    }

    #[test]
    fn types_are_compared_exactly() {
        assert!(by_type(&["Order.Paid", "order.sent"], "order.sent"));
        assert!(!by_type(&["Order.Paid"], "order.paid"));
        assert!(!by_type(&["Order.Paid"], "Order.Paid.Late"));
        assert!(by_type(&["All"], "anything"));
    }

    #[test]
    fn both_ends_of_the_subject_must_fit() {
        assert!(by_subject("/blobs/", ".txt", false, Some("/blobs/a.txt")));
        assert!(!by_subject("/blobs/", ".txt", false, Some("/blobs/a.png")));
        assert!(!by_subject("/blobs/", ".txt", false, Some("/queues/a.txt")));
        assert!(by_subject("abc", "bcd", false, Some("abcd")));
        assert!(!by_subject("abcde", "", false, Some("abcd")));
    }

    #[test]
    fn case_matters_only_if_asked_for() {
        assert!(by_subject("/BLOBS/Ä", ".TXT", false, Some("/blobs/ä.txt")));
        assert!(!by_subject("/BLOBS/", "", true, Some("/blobs/a.txt")));
        assert!(!by_subject("", ".TXT", true, Some("/blobs/a.txt")));
        assert!(by_subject("/blobs/", ".txt", true, Some("/blobs/a.txt")));
    }

    #[test]
    fn cases_of_a_subject_are_those_of_unicode() {
        for (written, seen) in [
            ("ΟΔΟΣ", "οδος"),
            ("οδοσ", "ΟΔΟΣ"),
            ("µm", "ΜM"),
            ("Kelvin", "\u{212A}ELVIN"),
            ("meſſen", "MESSEN"),
            ("GRO\u{1E9E}", "groß"),
        ] {
            assert!(
                by_subject(written, "", false, Some(&format!("{seen}/1"))),
                "{written}"
            );
            assert!(
                by_subject("", written, false, Some(&format!("1/{seen}"))),
                "{written}"
            );
            assert!(!by_subject(written, "", true, Some(seen)), "{written}");
        }
        assert!(!by_subject("gross", "", false, Some("groß")));
        assert!(!by_subject("i", "", false, Some("ı")));
    }

    #[test]
    fn a_missing_subject_is_an_empty_one() {
        assert!(by_subject("", "", false, None));
        assert!(!by_subject("/a", "", false, None));
        assert!(!by_subject("", "a", true, None));
    }

    proptest! {
        #[test]
        fn without_case_it_agrees_with_folding_both(
            text in "[aAßẞÄİıIsſΣσςµμ]{0,5}", part in "[aAßÄäİiSΣσςΜ]{0,2}",
        ) {
            let filter = |start: &str, end: &str| Filter {
                subject_begins_with: start.to_owned(),
                subject_ends_with: end.to_owned(),
                ..Filter::default()
            };
            let (folded_text, folded_part) = (fold_case(&text), fold_case(&part));
            prop_assert_eq!(filter(&part, "").includes_subject(&text), folded_text.starts_with(&*folded_part));
            prop_assert_eq!(filter("", &part).includes_subject(&text), folded_text.ends_with(&*folded_part));
        }
    }
}
