//! All mistakes of a YAML text, each with its place and its member.

use posthaste_core::api::{
    ApplyFile, Mistake, Notation, SettingsError, SubscriptionSettings, TopicSettings, mistakes,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::locate::{Place, Places};
use crate::text::{TextError, parse, refused};

/// The rules of a value that was read.
pub type Check<'a, T> = &'a dyn Fn(&T) -> Result<(), SettingsError>;

/// A mistake in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextMistake {
    /// The place in the text, if the mistake has one.
    pub place: Option<Place>,
    /// The member at fault; empty for the whole text.
    pub member: String,
    /// The fault and the remedy.
    pub text: String,
}

/// Reads a file of topics that has to pass `check`, or finds all mistakes in it, in their order.
///
/// # Errors
/// All mistakes of the text, up to a bound.
pub fn read_file(text: &[u8], check: Check<'_, ApplyFile>) -> Result<ApplyFile, Vec<TextMistake>> {
    read(text, check)
}

/// Reads the settings of a topic, as [`read_file`] does.
pub fn read_topic(text: &[u8], check: Check<'_, TopicSettings>) -> Result<TopicSettings, Vec<TextMistake>> {
    read(text, check)
}

/// Reads the settings of a subscription, as [`read_file`] does.
pub fn read_subscription(
    text: &[u8],
    check: Check<'_, SubscriptionSettings>,
) -> Result<SubscriptionSettings, Vec<TextMistake>> {
    read(text, check)
}

/// Not public: its code for a type is long, and so is made once, in this crate.
fn read<T: DeserializeOwned>(text: &[u8], check: Check<'_, T>) -> Result<T, Vec<TextMistake>> {
    let first = match parse::<T>(text) {
        Ok(value) => match check(&value) {
            Ok(()) => return Ok(value),
            Err(error) => {
                let member = error.member.clone();
                refused(text, Some(&member), error)
            }
        },
        Err(error) => error,
    };
    // A text that is no YAML has one mistake.
    let found = all::<T>(text, check);
    Err(if found.is_empty() { vec![TextMistake::of(&first)] } else { found })
}

/// The mistake of a member's value.
pub fn mistake_of(text: &[u8], member: String, fault: String) -> TextMistake {
    let place = Places::of(text).map(|places| places.of_value(&member));
    TextMistake { place, member, text: fault }
}

/// The mistake of a member, which is there.
pub fn name_mistake(text: &[u8], member: String, fault: String) -> TextMistake {
    let place = Places::of(text).map(|places| places.of_name(&member));
    TextMistake { place, member, text: fault }
}

fn all<T: DeserializeOwned>(text: &[u8], check: Check<'_, T>) -> Vec<TextMistake> {
    let (Ok(written), Some(places)) = (parse::<Value>(text), Places::of(text)) else {
        return Vec::new();
    };
    let located = |mistake: Mistake| {
        let Mistake { member, text, is_at_name } = mistake;
        let place = if is_at_name { places.of_name(&member) } else { places.of_value(&member) };
        TextMistake { place: Some(place), member, text }
    };
    let mut found: Vec<_> = mistakes(&written, Notation::Yaml, check).into_iter().map(located).collect();
    found.sort_by_key(|mistake| mistake.place);
    found
}

impl TextMistake {
    fn of(error: &TextError) -> Self {
        Self { place: error.place, member: String::new(), text: error.source.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(u64, &str)]) {
        let found = read_subscription(text.as_bytes(), &|_| Ok(())).unwrap_err();
        let found: Vec<_> = found
            .iter()
            .map(|mistake| (mistake.place.map_or(0, |place| place.line), mistake.member.as_str()))
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn all_mistakes_are_found_in_the_order_of_the_text() {
        check(
            "contentMode: binry\nendpoint: {}\nretry: {}\n",
            &[(1, "contentMode"), (2, "endpoint"), (3, "retry")],
        );
    }

    #[test]
    fn a_text_that_is_no_yaml_has_one_mistake() {
        check("endpoint: [\n", &[(1, "")]);
        check("", &[(1, "")]);
    }
}
