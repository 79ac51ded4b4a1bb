//! The dead letters that an operator ticks in a list, as a form has them.

use posthaste_core::stored::layout;
use serde_json::{Value, json};

use crate::extract::FormFields;

/// The field of a tick box, and the one that says that a form has such boxes.
pub(super) const LETTER: &str = "letter";
pub(super) const TICKED: (&str, &str) = ("ticked", "true");

/// The dead letters that are ticked.
#[derive(Debug, Clone, Default)]
pub(super) struct TickedLetters {
    /// Whether the form has tick boxes. Without a tick it then selects nothing.
    has_boxes: bool,
    /// The values of the boxes that are ticked.
    values: Vec<String>,
}

/// The value of the box of a dead letter.
pub(super) fn letter_value(object: &str, index: usize) -> String {
    format!("{index} {object}")
}

impl TickedLetters {
    /// One dead letter.
    pub(super) fn only(object: &str, index: usize) -> Self {
        Self {
            has_boxes: true,
            values: vec![letter_value(object, index)],
        }
    }

    /// The boxes of a form.
    pub(super) fn from_form(fields: &FormFields) -> Self {
        Self {
            has_boxes: fields.get(TICKED.0) == TICKED.1,
            values: fields.values(LETTER).map(str::to_owned).collect(),
        }
    }

    /// Whether the form names single dead letters, or has boxes of which none is ticked.
    pub(super) fn is_used(&self) -> bool {
        self.has_boxes || !self.values.is_empty()
    }

    /// Whether the form has boxes, and none is ticked.
    pub(super) fn is_empty_choice(&self) -> bool {
        self.has_boxes && self.values.is_empty()
    }

    /// The topic and the subscription of all of them, as their keys name them. `None` if they are of
    /// several, or of none.
    pub(super) fn only_owner(&self) -> Option<(String, String)> {
        let mut owners = self.values.iter().map(|value| letter_owner(value));
        let first = owners.next()??;
        owners
            .all(|owner| owner.as_ref() == Some(&first))
            .then_some(first)
    }

    /// The same boxes as hidden fields.
    pub(super) fn hidden_fields(&self) -> impl Iterator<Item = (&'static str, Option<&str>)> {
        let mark = (TICKED.0, self.has_boxes.then_some(TICKED.1));
        let values = self.values.iter();
        let values = values.map(|value| (LETTER, Some(value.as_str())));
        values.chain([mark])
    }

    /// The letters as a request names them. A value that is no place stays a text, which the API
    /// refuses: it must not count as no letter.
    pub(super) fn to_json(&self) -> Value {
        self.values.iter().map(|value| letter_json(value)).collect()
    }
}

fn letter_json(value: &str) -> Value {
    match parse_letter(value) {
        Some((index, object)) => json!({ "object": object, "index": index }),
        None => value.into(),
    }
}

fn parse_letter(value: &str) -> Option<(u64, &str)> {
    let (index, object) = value.split_once(' ')?;
    Some((index.parse().ok()?, object))
}

fn letter_owner(value: &str) -> Option<(String, String)> {
    let (_, object) = parse_letter(value)?;
    let (topic, subscription) = layout::dead_letter_owner(object)?;
    Some((topic.to_string(), subscription.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticked(values: &[&str]) -> TickedLetters {
        TickedLetters {
            has_boxes: true,
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        }
    }

    #[test]
    fn letters_of_one_subscription_have_its_names() {
        let owner = |values: &[&str]| ticked(values).only_owner();
        let own = "0 ORDERS/BILLING/2026/3/7/4/a.json";
        let named = Some(("ORDERS".to_owned(), "BILLING".to_owned()));
        assert_eq!(owner(&[own, "7 ORDERS/BILLING/2026/3/8/4/b.json"]), named);
        assert_eq!(owner(&[own, "0 ORDERS/CRM/2026/3/7/4/a.json"]), None);
        assert_eq!(owner(&[own, "x"]), None);
        assert_eq!(owner(&[]), None);
    }

    #[test]
    fn value_that_is_no_place_stays_a_text() {
        let values = ticked(&["3 A/B/c d", "x", "-1 A", ""]);
        let expected = json!([{ "object": "A/B/c d", "index": 3 }, "x", "-1 A", ""]);
        assert_eq!(values.to_json(), expected);
    }
}
