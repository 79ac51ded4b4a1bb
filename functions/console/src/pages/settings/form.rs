//! The texts of the form's fields, and the settings that they make.

use std::borrow::Cow;

use posthaste_core::api::{SubscriptionSettings, TopicSettings};
use posthaste_core::model::visible::is_hidden;
use posthaste_yaml::{TextMistake, read_checked};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};

use super::fields::{FieldKind, FieldTable, SUBSCRIPTION, SettingsField, TOPIC};
use super::template::{EXAMPLE_URL, NEW_SUBSCRIPTION};
use crate::extract::FormFields;

/// Longest text of settings that the form shows, in bytes. The page has it once more in its fields.
const TEXT_BYTES_MAX: usize = 24 * 1024;

/// The form of a text of settings.
#[derive(Debug, Clone)]
pub(super) struct SettingsForm {
    pub(super) table: &'static FieldTable,
    /// The text that the fields are laid over. Members without a field are as it says.
    pub(super) base: String,
    /// The settings of the text.
    settings: Value,
    /// The field's text for each field of the table; `None` where a field cannot hold the value.
    texts: Vec<Option<String>>,
}

impl SettingsForm {
    /// The form of a topic's settings.
    pub(super) fn for_topic(text: &str) -> Result<Self, Vec<TextMistake>> {
        Self::read::<TopicSettings>(text, &TOPIC)
    }

    /// The form of a subscription's settings.
    pub(super) fn for_subscription(text: &str) -> Result<Self, Vec<TextMistake>> {
        Self::read::<SubscriptionSettings>(text, &SUBSCRIPTION)
    }

    fn read<T: DeserializeOwned>(
        text: &str,
        table: &'static FieldTable,
    ) -> Result<Self, Vec<TextMistake>> {
        if text.len() > TEXT_BYTES_MAX {
            let text = "these settings are too long for the form".to_owned();
            return Err(vec![TextMistake {
                place: None,
                member: String::new(),
                text,
            }]);
        }
        // Every value has the type of its member.
        read_checked::<T>(text.as_bytes(), &|_| Ok(()))?;
        let settings = read_checked::<Value>(text.as_bytes(), &|_| Ok(()))?;
        let is_template = text == NEW_SUBSCRIPTION;
        let texts = table
            .fields()
            .map(|field| {
                let shown = field.kind.show(member_value(&settings, field.member))?;
                let is_example = is_template && shown == EXAMPLE_URL;
                Some(if is_example { String::new() } else { shown })
            })
            .collect();
        Ok(Self {
            table,
            base: text.to_owned(),
            settings,
            texts,
        })
    }

    /// The same with what was typed.
    pub(super) fn with_typed(self, fields: &FormFields) -> Self {
        let texts = self.table.fields().zip(&self.texts);
        let texts = texts
            .map(|(field, text)| {
                let typed = fields.values(field.member).next().map(str::to_owned);
                text.as_ref()
                    .map(|text| typed.unwrap_or_else(|| text.clone()))
            })
            .collect();
        Self { texts, ..self }
    }

    /// The fields with their texts.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&'static SettingsField, Option<&str>)> {
        self.table
            .fields()
            .zip(self.texts.iter().map(Option::as_deref))
    }

    /// Whether a member is written, of those that only YAML has.
    pub(super) fn is_written(&self, member: &str) -> bool {
        member_value(&self.settings, member).is_some_and(|value| !is_empty(value))
    }

    /// The settings with what the fields say. Members that they do not change stay as they are.
    pub(super) fn apply(&self) -> Value {
        let mut settings = self.settings.clone();
        for (field, text) in self.texts() {
            let Some(text) = text else { continue };
            let typed = field.kind.read(text);
            let present = member_value(&settings, field.member);
            let is_untouched = field.kind.show(present).as_deref() == Some(text);
            if !is_untouched && typed.as_ref() != present {
                let parts: Vec<_> = field.member.split('.').collect();
                set_member(&mut settings, &parts, typed);
            }
        }
        settings
    }

    /// The settings with what the fields say, as YAML. It is the text as it was where they say
    /// nothing new.
    pub(super) fn to_yaml(&self) -> String {
        let settings = self.apply();
        if settings == self.settings {
            return self.base.clone();
        }
        let text = if self.table.type_name == TOPIC.type_name {
            ordered_text::<TopicSettings>(&settings)
        } else {
            ordered_text::<SubscriptionSettings>(&settings)
        };
        text.unwrap_or_else(|| self.base.clone())
    }

    /// The same for the tab with YAML. The template stays while nothing was typed.
    pub(super) fn to_yaml_tab(&self) -> String {
        let is_template = self.base == NEW_SUBSCRIPTION;
        let first = is_template.then(|| Self::for_subscription(&self.base));
        match first {
            Some(Ok(first)) if first.texts == self.texts => self.base.clone(),
            _ => self.to_yaml(),
        }
    }
}

/// Settings as YAML, with the members in the order of their type. Those that are not of the type
/// are in the order of the alphabet.
fn ordered_text<T: DeserializeOwned + Serialize>(settings: &Value) -> Option<String> {
    let text = match serde_json::from_value::<T>(settings.clone()) {
        Ok(ordered) => posthaste_yaml::to_text(&ordered),
        Err(_) => posthaste_yaml::to_text(settings),
    };
    text.ok()
}

/// The value of a member, unless it is not written.
fn member_value<'a>(settings: &'a Value, member: &str) -> Option<&'a Value> {
    let found = member
        .split('.')
        .try_fold(settings, |value, part| value.get(part))?;
    (!found.is_null()).then_some(found)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_empty),
        _ => value.is_null(),
    }
}

/// Writes a member, or leaves it out, and with it an object that has no member then.
fn set_member(settings: &mut Value, parts: &[&str], typed: Option<Value>) {
    let [name, below @ ..] = parts else { return };
    if !settings.is_object() {
        *settings = Value::Object(Map::new());
    }
    let Some(members) = settings.as_object_mut() else {
        return;
    };
    if below.is_empty() {
        match typed {
            Some(value) => members.insert((*name).to_owned(), value),
            None => members.remove(*name),
        };
        return;
    }
    let inner = members.entry((*name).to_owned()).or_insert(Value::Null);
    set_member(inner, below, typed);
    if inner.as_object().is_some_and(Map::is_empty) {
        members.remove(*name);
    }
}

impl FieldKind {
    /// A value as the text of a field. `None` if the field cannot hold it.
    fn show(self, value: Option<&Value>) -> Option<String> {
        let Some(value) = value else {
            return Some(String::new());
        };
        let text = match self {
            Self::RequiredText | Self::Text | Self::Choice => value.as_str()?.to_owned(),
            Self::Number => value.as_number()?.to_string(),
            Self::Flag => value.as_bool()?.to_string(),
            Self::Lines => joined(value.as_array()?, "\n")?,
            Self::TextList | Self::NumberList => joined(value.as_array()?, ", ")?,
        };
        let is_empty_text = text.is_empty() && self != Self::RequiredText && self != Self::Text;
        let is_plain = text
            .chars()
            .all(|it| !is_hidden(it) && (!it.is_control() || it == '\n' && self == Self::Lines));
        (is_plain && !is_empty_text).then_some(text)
    }

    /// The value that a text means. `None` where the member is left out.
    fn read(self, text: &str) -> Option<Value> {
        match self {
            Self::RequiredText => Some(text.into()),
            // A blank that was typed may be meant, or else it is a mistake of its member.
            Self::Text | Self::Number if !text.is_empty() && is_blank(text) => Some(text.into()),
            Self::TextList | Self::NumberList if !text.is_empty() && is_blank(text) => {
                Some(Value::from(vec![text]))
            }
            _ if is_blank(text) => None,
            Self::Text | Self::Choice => Some(text.into()),
            Self::Number => Some(read_number(text)),
            Self::Flag => Some(match text {
                "true" => true.into(),
                "false" => false.into(),
                _ => text.into(),
            }),
            Self::Lines => Some(items(text, '\n').map(Value::from).collect()),
            Self::TextList => Some(items(text, ',').map(Value::from).collect()),
            Self::NumberList => Some(items(text, ',').map(read_number).collect()),
        }
    }
}

/// The items of a list as one text, if it can be taken apart again.
fn joined(list: &[Value], separator: &str) -> Option<String> {
    let texts: Option<Vec<_>> = list.iter().map(item_text).collect();
    let texts = texts?;
    let is_plain = texts.iter().all(|text| {
        !text.is_empty() && text.trim() == text && !text.contains(separator.trim_end_matches(' '))
    });
    is_plain.then(|| texts.join(separator))
}

fn item_text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(text.into()),
        Value::Number(number) => Some(number.to_string().into()),
        _ => None,
    }
}

fn items(text: &str, separator: char) -> impl Iterator<Item = &str> {
    text.split(separator)
        .map(str::trim)
        .filter(|item| !item.is_empty())
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// A number; what is none stays a text, which is a mistake of its member.
fn read_number(text: &str) -> Value {
    let text = text.trim();
    serde_json::from_str::<Number>(text).map_or_else(|_| text.into(), Value::Number)
}

#[cfg(test)]
mod tests;
