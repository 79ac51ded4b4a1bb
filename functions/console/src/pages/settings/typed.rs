//! The settings that were typed into a form that did nothing, to be given back. Anybody can send
//! such a form, so that what it costs is bounded: aliases of YAML are never expanded.

mod secret_lines;

use serde_json::Value;

use self::secret_lines::hide_secrets;
use super::fields::{FieldTable, SUBSCRIPTION, TOPIC};
use super::form::SettingsForm;
use crate::editing::TEXT_BYTES_MAX;
use crate::extract::FormFields;

/// The settings that a form has, without the secrets that were typed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TypedSettings {
    /// The settings as YAML.
    pub(crate) text: String,
    /// Whether a secret was left out.
    pub(crate) hides_secrets: bool,
}

impl TypedSettings {
    /// The settings of a form, whichever tab it was. `None` if it has none, and for those that are
    /// longer than the editor takes.
    pub(crate) fn from_form(fields: &FormFields) -> Option<Self> {
        let base = fields.get("base");
        let is_form = !base.is_empty();
        let typed = if is_form { base } else { fields.get("text") };
        if typed.is_empty() || typed.len() > TEXT_BYTES_MAX {
            return None;
        }
        let typed = typed.replace("\r\n", "\n");
        let whole = if is_form {
            with_typed_fields(&typed, fields)
        } else {
            typed
        };
        if whole.len() > TEXT_BYTES_MAX {
            return None;
        }
        let text = hide_secrets(&whole);
        let hides_secrets = text != whole;
        (text.len() <= TEXT_BYTES_MAX).then_some(Self {
            text,
            hides_secrets,
        })
    }
}

/// The text under a form's fields, with what was typed into them. Where the form cannot show that
/// text, what was typed follows it as comments.
fn with_typed_fields(base: &str, fields: &FormFields) -> String {
    let is_subscription = has_field_of(&SUBSCRIPTION, fields);
    if !may_have_alias(base) {
        let form = if is_subscription {
            SettingsForm::for_subscription(base)
        } else {
            SettingsForm::for_topic(base)
        };
        if let Ok(form) = form {
            return form.with_typed(fields).to_yaml();
        }
    }
    let table = if is_subscription {
        &SUBSCRIPTION
    } else {
        &TOPIC
    };
    let typed = table.fields().filter_map(|field| {
        let text = fields.get_filled(field.member)?;
        Some(format!("# {}: {}\n", field.member, Value::from(text)))
    });
    [base.to_owned(), "\n".to_owned()]
        .into_iter()
        .chain(typed)
        .collect()
}

/// Whether a text may have an alias of YAML, which stands for a text of any length. An asterisk
/// after a letter or digit, a dot or a slash is none.
fn may_have_alias(text: &str) -> bool {
    let mut before = ' ';
    text.chars().any(|it| {
        let begins_name = !before.is_alphanumeric() && before != '.' && before != '/';
        before = it;
        it == '*' && begins_name
    })
}

fn has_field_of(table: &FieldTable, fields: &FormFields) -> bool {
    let own = table.fields().filter(|field| field.member.contains('.'));
    own.into_iter()
        .any(|field| fields.values(field.member).next().is_some())
}

#[cfg(test)]
mod tests {
    use url::form_urlencoded;

    use super::*;

    fn typed(fields: &[(&str, &str)]) -> Option<TypedSettings> {
        let mut body = form_urlencoded::Serializer::new(String::new());
        let body = body.extend_pairs(fields).finish();
        TypedSettings::from_form(&FormFields::parse(body.as_bytes()).unwrap())
    }

    fn shown(text: &str) -> TypedSettings {
        typed(&[("text", text)]).unwrap()
    }

    #[test]
    fn typed_fields_are_laid_over_their_text() {
        let base = "endpoint:\n  url: https://a.example/\nsigning:\n  secrets: [(masked)]\n";
        let fields = [
            ("base", base),
            ("endpoint.url", "https://b.example/<b>"),
            ("filter.subjectBeginsWith", "orders/"),
            ("retryPolicy.maxDeliveryAttempts", "many"),
        ];
        let typed = typed(&fields).unwrap();
        for expected in [
            "url: https://b.example/<b>",
            "subjectBeginsWith: orders/",
            "maxDeliveryAttempts: many",
            "(masked)",
        ] {
            assert!(typed.text.contains(expected), "{expected}: {typed:?}");
        }
        assert!(!typed.hides_secrets);
    }

    #[test]
    fn typed_fields_of_a_topic_are_laid_over_its_text() {
        let fields = [("base", "inputSchema: Custom\n"), ("deliveryLog", "off")];
        let typed = typed(&fields).unwrap();
        assert!(typed.text.contains("inputSchema: Custom"), "{typed:?}");
        assert!(typed.text.contains("deliveryLog: "), "{typed:?}");
    }

    /// Nothing that was typed is lost where the form cannot show the text below it.
    #[test]
    fn typed_fields_follow_a_text_that_is_no_settings() {
        let typed = typed(&[("base", "a: [\n"), ("endpoint.url", "https://b.example/")]);
        let expected = "a: [\n\n# endpoint.url: \"https://b.example/\"\n";
        assert_eq!(typed.unwrap().text, expected);
    }

    /// Fields are not laid over a text whose aliases would have to be expanded.
    #[test]
    fn aliases_are_given_back_as_they_were_typed() {
        let long = "x".repeat(20_000);
        let base = format!(
            "a: &a {long}\nb: [{}]\nsecrets: [s3cret]\n",
            "*a, ".repeat(900)
        );
        for fields in [
            vec![("text", base.as_str())],
            vec![
                ("base", base.as_str()),
                ("endpoint.url", "https://b.example/"),
            ],
        ] {
            let typed = typed(&fields).unwrap();
            assert!(typed.text.len() < base.len() + 100, "{}", typed.text.len());
            assert!(typed.text.contains("*a, *a") && !typed.text.contains("s3cret"));
        }
        assert!(!may_have_alias("a: Orders.*") && may_have_alias("a: [*b]"));
    }

    #[test]
    fn text_longer_than_the_editor_takes_is_not_given_back() {
        let longest = "x".repeat(TEXT_BYTES_MAX);
        assert!(typed(&[("text", &longest)]).is_some());
        let longer = format!("{longest}x");
        assert_eq!(typed(&[("text", &longer)]), None);
        assert_eq!(typed(&[("base", &longer)]), None);
        let filled = [("base", "a: [\n"), ("endpoint.url", longest.as_str())];
        assert_eq!(typed(&filled), None);
    }

    /// A secret is taken out of a text that fields were laid over too.
    #[test]
    fn typed_fields_come_without_the_secrets_of_their_text() {
        let base = "endpoint: { url: x }\nsigning:\n  secrets: [whsec_abc]\n";
        let fields = [("base", base), ("endpoint.url", "https://b.example/")];
        let typed = typed(&fields).unwrap();
        assert!(
            typed.hides_secrets && !typed.text.contains("whsec_"),
            "{typed:?}"
        );
        assert!(typed.text.contains("url: https://b.example/"), "{typed:?}");
    }

    #[test]
    fn text_without_secrets_stays_as_it_was_typed() {
        for text in ["# Mine\ninputSchema: <b>\n", "a: [\n"] {
            let shown = shown(text);
            assert_eq!(shown.text, text);
            assert!(!shown.hides_secrets);
        }
        assert_eq!(typed(&[("name", "orders")]), None);
    }
}
