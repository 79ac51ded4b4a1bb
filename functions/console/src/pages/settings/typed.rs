//! The settings that were typed into a form that did nothing, to be given back.

use serde_json::Value;

use super::fields::{FieldTable, SUBSCRIPTION, TOPIC};
use super::form::SettingsForm;
use crate::extract::FormFields;

/// The beginnings of signing secrets.
const SECRET_STARTS: [&str; 2] = ["whsec_", "whsk_"];

/// The members after which a line of YAML that cannot be read may have a secret.
const SECRET_MEMBERS: [&str; 6] = ["value:", "secrets:", "key1:", "key2:", "Key1:", "Key2:"];

/// The settings that a form has, without the secrets that were typed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TypedSettings {
    /// The settings as YAML.
    pub(crate) text: String,
    /// Whether a secret was left out.
    pub(crate) hides_secrets: bool,
}

impl TypedSettings {
    /// The settings of a form, whichever tab it was. `None` if it has none.
    pub(crate) fn from_form(fields: &FormFields) -> Option<Self> {
        let text = match fields.get_filled("base") {
            Some(base) => with_typed_fields(&base.replace("\r\n", "\n"), fields),
            None => fields.get_filled("text")?.replace("\r\n", "\n"),
        };
        Some(Self::without_secrets(text))
    }

    fn without_secrets(text: String) -> Self {
        let Ok(mut settings) = posthaste_yaml::read_checked::<Value>(text.as_bytes(), &|_| Ok(()))
        else {
            return Self::without_secret_lines(&text);
        };
        if !hide_secrets(&mut settings) {
            return Self {
                text,
                hides_secrets: false,
            };
        }
        Self {
            text: posthaste_yaml::to_text(&settings).unwrap_or_default(),
            hides_secrets: true,
        }
    }

    /// A text that is no YAML, without what may be a secret at the end of its lines.
    fn without_secret_lines(text: &str) -> Self {
        let lines: Vec<_> = text.lines().map(without_secret_end).collect();
        let shown = lines.join("\n");
        let hides_secrets = shown != text.lines().collect::<Vec<_>>().join("\n");
        Self {
            text: shown,
            hides_secrets,
        }
    }
}

/// The text under a form's fields, with what was typed into them. Where the form cannot show that
/// text, what was typed follows it as comments.
fn with_typed_fields(base: &str, fields: &FormFields) -> String {
    let is_subscription = has_field_of(&SUBSCRIPTION, fields);
    let form = if is_subscription {
        SettingsForm::for_subscription(base)
    } else {
        SettingsForm::for_topic(base)
    };
    if let Ok(form) = form {
        return form.with_typed(fields).to_yaml();
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

fn has_field_of(table: &FieldTable, fields: &FormFields) -> bool {
    let own = table.fields().filter(|field| field.member.contains('.'));
    own.into_iter()
        .any(|field| fields.values(field.member).next().is_some())
}

/// Takes the secrets out of settings: those of signatures, the keys of a topic, and the values of
/// headers that are secret. Whether there was one. Saved as they are then, they are mistakes. Masks
/// stay, because they are none.
fn hide_secrets(settings: &mut Value) -> bool {
    let mut is_hidden = false;
    match settings {
        Value::Array(items) => {
            for item in items {
                is_hidden |= hide_secrets(item);
            }
        }
        Value::Object(members) => {
            let is_secret = members.get("isSecret").is_some_and(|it| it != false);
            if is_secret && members.get("value").is_some_and(is_open_secret) {
                members.remove("value");
                is_hidden = true;
            }
            for (name, member) in members {
                is_hidden |= match name.as_str() {
                    "secrets" | "keys" => empty_secrets(member),
                    _ => hide_secrets(member),
                };
            }
        }
        _ => {}
    }
    is_hidden
}

/// Empties every text of a list or an object of secrets.
fn empty_secrets(secrets: &mut Value) -> bool {
    let mut is_hidden = false;
    match secrets {
        Value::Array(items) => {
            for item in items {
                is_hidden |= empty_secrets(item);
            }
        }
        Value::Object(members) => {
            for member in members.values_mut() {
                is_hidden |= empty_secrets(member);
            }
        }
        secret if is_open_secret(secret) => {
            *secret = "".into();
            is_hidden = true;
        }
        _ => {}
    }
    is_hidden
}

fn is_open_secret(value: &Value) -> bool {
    let is_mask = value
        .as_str()
        .is_some_and(|text| text.starts_with("(masked"));
    !is_mask && !value.is_null() && value != ""
}

fn without_secret_end(line: &str) -> &str {
    let starts = SECRET_STARTS.iter().filter_map(|start| line.find(start));
    let members = SECRET_MEMBERS
        .iter()
        .filter_map(|member| Some(line.find(member)? + member.len()));
    let end = starts.chain(members).min().unwrap_or(line.len());
    &line[..end]
}

#[cfg(test)]
mod tests {
    use url::form_urlencoded;

    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

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
        let expected = "a: [\n\n# endpoint.url: \"https://b.example/\"";
        assert_eq!(typed.unwrap().text, expected);
    }

    #[test]
    fn secrets_are_left_out_and_masks_stay() {
        let text = format!(
            "signing: {{ secrets: [{SECRET}, (masked:00000000)] }}\n\
             deliveryHeaders:\n- {{ name: A, value: Bearer s3cret, isSecret: true }}\n- {{ name: B, value: open }}\n\
             keys: {{ key1: s3cret }}\n"
        );
        let shown = shown(&text);
        assert!(shown.hides_secrets);
        for secret in [SECRET, "s3cret"] {
            assert!(!shown.text.contains(secret), "{shown:?}");
        }
        for kept in ["(masked:00000000)", "value: open", "name: A"] {
            assert!(shown.text.contains(kept), "{kept}: {shown:?}");
        }
    }

    #[test]
    fn text_that_is_no_yaml_ends_its_lines_before_secrets() {
        let text = format!("a: [\n  - {SECRET}\nname: x, value: s3cret\ninternalKey1: s3cret\n");
        let expected = TypedSettings {
            text: "a: [\n  - \nname: x, value:\ninternalKey1:".to_owned(),
            hides_secrets: true,
        };
        assert_eq!(shown(&text), expected);
    }

    #[test]
    fn text_without_secrets_stays_as_it_was_typed() {
        for text in ["# Mine\ninputSchema: <b>\n", "a: [\n"] {
            let shown = shown(text);
            assert_eq!(shown.text.trim_end(), text.trim_end());
            assert!(!shown.hides_secrets);
        }
        assert_eq!(typed(&[("name", "orders")]), None);
    }
}
