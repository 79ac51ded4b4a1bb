//! All mistakes of a YAML text, each with its place and its member.

use std::error::Error;

use posthaste_core::api::{
    ApplyFile, Mistake, Notation, SettingsError, SubscriptionSettings, TopicSettings, read_written,
};
use serde::de::DeserializeOwned;

use crate::locate::Places;
use crate::place::Place;
use crate::text::TextError;

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
pub fn read_topic(
    text: &[u8],
    check: Check<'_, TopicSettings>,
) -> Result<TopicSettings, Vec<TextMistake>> {
    read(text, check)
}

/// Reads the settings of a subscription, as [`read_file`] does.
pub fn read_subscription(
    text: &[u8],
    check: Check<'_, SubscriptionSettings>,
) -> Result<SubscriptionSettings, Vec<TextMistake>> {
    read(text, check)
}

fn read<T: DeserializeOwned>(text: &[u8], check: Check<'_, T>) -> Result<T, Vec<TextMistake>> {
    let places = Places::of(text).map_err(|error| vec![TextMistake::of(&error)])?;
    read_written(places.written(text), Notation::Yaml, check).map_err(|mistakes| {
        let mut found: Vec<_> = mistakes
            .into_iter()
            .map(|mistake| placed(&places, mistake))
            .collect();
        found.sort_by_key(|mistake| mistake.place);
        found
    })
}

fn placed(places: &Places, mistake: Mistake) -> TextMistake {
    let Mistake {
        member,
        text,
        is_at_name,
    } = mistake;
    let place = if is_at_name {
        places.of_name(&member)
    } else {
        places.of_value(&member)
    };
    TextMistake {
        place: Some(place),
        member,
        text,
    }
}

/// Error of a text whose `member`, as a path such as `topics.a.retry`, breaks a rule.
pub fn refused(
    text: &[u8],
    member: Option<&str>,
    rule: impl Error + Send + Sync + 'static,
) -> TextError {
    let place = member.and_then(|member| Some(Places::of(text).ok()?.of_value(member)));
    TextError {
        place,
        source: Box::new(rule),
    }
}

/// The mistake of a member's value.
pub fn mistake_of(text: &[u8], member: String, fault: String) -> TextMistake {
    let place = Places::of(text).ok().map(|places| places.of_value(&member));
    TextMistake {
        place,
        member,
        text: fault,
    }
}

/// The mistake of a member, which is there.
pub fn name_mistake(text: &[u8], member: String, fault: String) -> TextMistake {
    let place = Places::of(text).ok().map(|places| places.of_name(&member));
    TextMistake {
        place,
        member,
        text: fault,
    }
}

impl TextMistake {
    fn of(error: &TextError) -> Self {
        Self {
            place: error.place,
            member: String::new(),
            text: error.source.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::parse;

    fn check(text: &str, expected: &[(u64, &str)]) {
        let found = read_subscription(text.as_bytes(), &|_| Ok(())).unwrap_err();
        let found: Vec<_> = found
            .iter()
            .map(|mistake| {
                (
                    mistake.place.map_or(0, |place| place.line),
                    mistake.member.as_str(),
                )
            })
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

    const SCALARS: &str = "1.10 0x1F 0o17 1_000 010 1e3 .inf -.5 yes off true True ~ null '' '~' \"1.10\" \
        2001-12-14 12345678901234567890123 \"a\\tb\" a--b -";

    #[test]
    fn a_text_is_read_as_the_yaml_reader_of_its_type_would_read_it() {
        for value in SCALARS
            .split(' ')
            .chain(["a  b", "a # b", "|\n  x\n  y\n", ">-\n  x\n  y\n"])
        {
            for rest in [
                "deliveryHeaders:\n- name: a\n  value: VALUE\n",
                "retryPolicy:\n  maxDeliveryAttempts: VALUE\n",
                "filter:\n  includedEventTypes:\n  - &x VALUE\n  - *x\n",
                "filter:\n  isSubjectCaseSensitive: VALUE\n",
                "contentMode: VALUE\n",
                "batching: VALUE\n",
            ] {
                let text = format!("endpoint: {{ url: a }}\n{}", rest.replace("VALUE", value));
                let read = read_subscription(text.as_bytes(), &|_| Ok(())).ok();
                let by_type = parse::<SubscriptionSettings>(text.as_bytes()).ok();
                assert_eq!(json!(read), json!(by_type), "{text}");
            }
        }
    }
}
