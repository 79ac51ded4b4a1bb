//! All mistakes of a YAML text, each with its place and its member.

use posthaste_core::api::{
    ApplyFile, InputMistake, InputNotation, SettingsError, SubscriptionSettings, TopicSettings,
    WrittenValue, read_written,
};
use serde::de::DeserializeOwned;

use crate::locate::ValuePlaces;
use crate::text::without_byte_order_mark;
use crate::text_mistake::TextMistake;

/// The rules of a value that was read.
pub type SettingsCheck<'a, T> = &'a dyn Fn(&T) -> Result<(), SettingsError>;

/// Reads a file of topics that has to pass `check`, or finds all mistakes in it, in their order.
///
/// # Errors
/// All mistakes of the text, up to a bound.
pub fn read_file(
    text: &[u8],
    check: SettingsCheck<'_, ApplyFile>,
) -> Result<ApplyFile, Vec<TextMistake>> {
    read_checked(text, check)
}

/// Reads the settings of a topic, as [`read_file`] does.
pub fn read_topic(
    text: &[u8],
    check: SettingsCheck<'_, TopicSettings>,
) -> Result<TopicSettings, Vec<TextMistake>> {
    read_checked(text, check)
}

/// Reads the settings of a subscription, as [`read_file`] does.
pub fn read_subscription(
    text: &[u8],
    check: SettingsCheck<'_, SubscriptionSettings>,
) -> Result<SubscriptionSettings, Vec<TextMistake>> {
    read_checked(text, check)
}

/// Reads a text of any kind, as [`read_file`] does.
///
/// # Errors
/// All mistakes of the text, up to a bound.
pub fn read_checked<T: DeserializeOwned>(
    text: &[u8],
    check: SettingsCheck<'_, T>,
) -> Result<T, Vec<TextMistake>> {
    read_part(text, &WrittenValue::clone, check).map(|(value, _)| value)
}

/// Reads a text of which `complete` makes a whole, as [`read_checked`] does, and returns what was written
/// too. This is the only way in for YAML.
///
/// # Errors
/// All mistakes of the text, up to a bound.
pub fn read_part<T: DeserializeOwned>(
    text: &[u8],
    complete: &dyn Fn(&WrittenValue) -> WrittenValue,
    check: SettingsCheck<'_, T>,
) -> Result<(T, WrittenValue), Vec<TextMistake>> {
    let text = without_byte_order_mark(text);
    let places = ValuePlaces::find(text).map_err(|mistake| vec![mistake])?;
    let written = places.to_written(text);
    let read = read_written(complete(&written), InputNotation::Yaml, check);
    let value = read.map_err(|mistakes| {
        let mut found: Vec<_> = mistakes
            .into_iter()
            .map(|mistake| with_place(&places, mistake))
            .collect();
        found.sort_by_key(|mistake| mistake.place);
        found
    })?;
    Ok((value, written))
}

/// Reads a text as a value of no certain type.
///
/// # Errors
/// The mistake that makes it no YAML.
pub fn read_value(text: &[u8]) -> Result<WrittenValue, TextMistake> {
    let text = without_byte_order_mark(text);
    Ok(ValuePlaces::find(text)?.to_written(text))
}

fn with_place(places: &ValuePlaces, mistake: InputMistake) -> TextMistake {
    let InputMistake {
        member,
        text,
        is_at_name,
    } = mistake;
    let place = if is_at_name {
        places.place_of_name(&member)
    } else {
        places.place_of_value(&member)
    };
    TextMistake {
        place: Some(place),
        member,
        text,
    }
}

/// The mistake of a member's value.
pub fn value_mistake(text: &[u8], member: String, fault: String) -> TextMistake {
    let places = ValuePlaces::find(without_byte_order_mark(text)).ok();
    let place = places.map(|places| places.place_of_value(&member));
    TextMistake {
        place,
        member,
        text: fault,
    }
}

/// The mistake of a member, which is there.
pub fn name_mistake(text: &[u8], member: String, fault: String) -> TextMistake {
    let places = ValuePlaces::find(without_byte_order_mark(text)).ok();
    let place = places.map(|places| places.place_of_name(&member));
    TextMistake {
        place,
        member,
        text: fault,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::place::TextPlace;
    use crate::text::{LEVELS_MAX, parse};

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
        check("endpoint: [\n", &[(1, "endpoint")]);
        check("", &[(1, "")]);
    }

    #[test]
    fn text_without_a_value_is_nothing() {
        check("# nothing yet\n", &[(2, "")]);
        check("~", &[(1, "")]);
    }

    #[test]
    fn byte_order_mark_is_left_out() {
        let text = "\u{feff}endpoint: { url: https://a.example/ }\ncolour: 1\n";
        check(text, &[(2, "colour")]);
    }

    fn faults(text: &str) -> Vec<String> {
        let read = read_file(text.as_bytes(), &|_| Ok(()));
        let found = read.err().unwrap_or_default().into_iter();
        found
            .map(
                |TextMistake {
                     place,
                     member,
                     text,
                 }| {
                    let place = place.map(|TextPlace { line, column }| format!("{line}:{column}"));
                    format!("{} {member}: {text}", place.unwrap_or_default())
                },
            )
            .collect()
    }

    #[test]
    fn name_that_is_there_twice_is_named_with_its_place() {
        assert_eq!(
            faults("topics:\n  a: {}\n  b:\n    name: b\n    \"\\x6eame\": c\n"),
            ["5:5 topics.b.name: is there twice, remove or rename one"]
        );
    }

    #[test]
    fn text_that_is_no_yaml_is_refused_in_our_words() {
        let check = |text: &str, expected: &str| assert_eq!(faults(text), [expected], "{text}");
        check(
            "topics: {}\n---\ntopics: {}\n",
            "3:1 : this belongs to another document (`---`), expected one; put it into a file of its own",
        );
        check(
            "topics: { a: *x }\n",
            "1:14 topics: no anchor of this name is above (`&name`)",
        );
        check(
            "topics:\n  ~: {}\n",
            "2:3 topics: expected a name before the colon, found nothing",
        );
        check(
            "topics:\n  [a, b]: {}\n",
            "2:3 topics: expected a name or a value, found something else",
        );
        check(
            "topics:\n  a:\n    name: !!binary \"%%\"\n",
            "3:20 topics.a.name: tags (`!name`) are not read here; write the value without",
        );
        check(
            "topics:\n  a: &x\n    subscriptions: *x\n",
            "3:20 topics.a: the alias names what it stands in",
        );
    }

    #[test]
    fn messages_name_neither_a_library_nor_a_type() {
        const BROKEN: [&str; 22] = [
            "topics: {}\n---\ntopics: {}\n",
            "~: 1",
            "? [a]\n: 1",
            "a: !x 1",
            "a: !!binary x",
            "a: *b",
            "a: [",
            "a: ]",
            "a: }",
            "\ta: 1",
            "a:\n\t- b",
            "a: 'b",
            "a: \"\\q\"",
            "a: b: c",
            "- a\nb: 1",
            "a: >\nb",
            "%x",
            "a: &a [*a]",
            "a: @b",
            "a: `b",
            "<<: 1",
            "a: 1\na: 2",
        ];
        const FOREIGN: [&str; 9] = [
            "Option<", "String", "from_", "serde", "saphyr", "struct", "Rust", "_with", "policy",
        ];
        for text in BROKEN {
            let found = faults(text);
            assert!(!found.is_empty(), "{text:?} is read");
            for fault in found {
                assert!(
                    !FOREIGN.iter().any(|word| fault.contains(word)),
                    "{text:?}: {fault}"
                );
            }
        }
    }

    /// A value in so many lists and objects, in each way that YAML writes them.
    fn nested(levels: usize) -> [(&'static str, String); 5] {
        let flow = |open: &str, close: &str| {
            let text = open.repeat(levels) + "1" + &close.repeat(levels);
            text + "\n"
        };
        let indented = |level: usize| format!("{}x:\n", " ".repeat(level));
        let alias = |level: usize| format!("a{level}: &a{level} {{ x: *a{} }}\n", level - 1);
        // The file itself is a level.
        let aliases: String = (1..levels - 1).map(alias).collect();
        [
            ("lists in brackets", flow("[", "]")),
            ("objects in brackets", flow("{x: ", "}")),
            ("lists by indentation", "- ".repeat(levels) + "1\n"),
            (
                "objects by indentation",
                (0..levels).map(indented).collect(),
            ),
            ("objects by aliases", format!("a0: &a0 [1]\n{aliases}")),
        ]
    }

    #[test]
    fn text_is_as_deep_as_the_stack_allows() {
        let faults = |text: &str| {
            let read = read_checked::<serde_json::Value>(text.as_bytes(), &|_| Ok(()));
            let found = read.err().unwrap_or_default().into_iter();
            found.map(|mistake| mistake.text).collect::<Vec<_>>()
        };
        for (how, text) in nested(LEVELS_MAX) {
            assert_eq!(faults(&text), [""; 0], "{how}");
        }
        for levels in [LEVELS_MAX + 1, 100, 2_000] {
            for (how, text) in nested(levels).into_iter().take(4) {
                let found = faults(&text);
                let said = "aliases or nesting make this larger than a file of settings may be";
                assert!(
                    found.len() == 1 && found[0].starts_with(said),
                    "{how}, {levels} levels: {found:?}"
                );
            }
        }
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
                // Nothing is as if the member were left out, which readers of types do not know.
                let is_nothing = ["~", "null"].contains(&value) && !rest.contains("\n- ");
                let lines = text
                    .lines()
                    .filter(|line| !(is_nothing && line.contains(value)));
                let by_type = lines.collect::<Vec<_>>().join("\n");
                let by_type = parse::<SubscriptionSettings>(by_type.as_bytes()).ok();
                assert_eq!(json!(read), json!(by_type), "{text}");
            }
        }
    }
}
