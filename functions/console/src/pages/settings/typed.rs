//! The settings that were typed into a form that did nothing, to be given back. Anybody can send
//! such a form, so that what it costs is bounded: aliases of YAML are never expanded.

mod hidden;

use posthaste_core::api::{SubscriptionSettings, TopicSettings};
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::hidden::hide_secrets;
use super::fields::{FieldTable, SUBSCRIPTION};
use super::form::SettingsForm;
use crate::editing::TEXT_BYTES_MAX;
use crate::extract::FormFields;

/// The settings that a form has, without the secrets that were typed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TypedSettings {
    /// The settings as YAML.
    pub(crate) text: String,
    /// Whether secrets or comments may have been left out.
    pub(crate) is_shortened: bool,
}

impl TypedSettings {
    /// The settings of a form, whichever tab it was. `None` if it has none, or more than the editor
    /// takes, and of a text of which nobody can tell where a secret is: one that is no YAML, or may
    /// have aliases.
    pub(crate) fn from_form(fields: &FormFields) -> Option<Self> {
        let base = fields.get("base");
        let is_form = !base.is_empty();
        let typed = if is_form { base } else { fields.get("text") };
        if typed.is_empty() || typed.len() > TEXT_BYTES_MAX || may_have_alias(typed) {
            return None;
        }
        let typed = typed.replace("\r\n", "\n");
        let whole = if is_form {
            with_typed_fields(&typed, fields)?
        } else {
            typed
        };
        let mut settings =
            posthaste_yaml::read_checked::<Value>(whole.as_bytes(), &|_| Ok(())).ok()?;
        let is_shortened = hide_secrets(&mut settings) || !is_all_read(&whole);
        let text = if is_shortened {
            posthaste_yaml::to_text(&settings).ok()?
        } else {
            whole
        };
        (text.len() <= TEXT_BYTES_MAX).then_some(Self { text, is_shortened })
    }
}

/// The text under a form's fields, with what was typed into them.
fn with_typed_fields(base: &str, fields: &FormFields) -> Option<String> {
    let form = if has_field_of(&SUBSCRIPTION, fields) {
        is_sound::<SubscriptionSettings>(base).then(|| SettingsForm::for_subscription(base))
    } else {
        is_sound::<TopicSettings>(base).then(|| SettingsForm::for_topic(base))
    };
    Some(form?.ok()?.with_typed(fields).to_yaml())
}

/// Whether a text has the types of these settings. Nobody looks at its mistakes here, and to find
/// all of them it would be read many times.
fn is_sound<T: DeserializeOwned>(text: &str) -> bool {
    let read = posthaste_yaml::read_checked::<Value>(text.as_bytes(), &|_| Ok(()));
    let Ok(mut settings) = read else {
        return false;
    };
    leave_out_nulls(&mut settings);
    serde_json::from_value::<T>(settings).is_ok()
}

/// Removes members without a value, which count as left out.
fn leave_out_nulls(settings: &mut Value) {
    match settings {
        Value::Array(items) => items.iter_mut().for_each(leave_out_nulls),
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(leave_out_nulls);
        }
        _ => {}
    }
}

/// Whether a text has nothing but what a reader of YAML takes from it: comments, and what stands
/// behind the end of a document, may have anything.
fn is_all_read(text: &str) -> bool {
    let has_markers = text
        .lines()
        .any(|line| ["...", "---", "%"].iter().any(|it| line.starts_with(it)));
    !has_markers && !text.contains('#')
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
mod tests;
