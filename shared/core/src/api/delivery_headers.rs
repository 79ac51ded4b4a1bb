//! Custom headers as users write them, show them and write them back.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::SecretText;

/// A header that is added to every request: with a `value`, or with a value of the event
/// (`fromEvent`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct DeliveryHeaderSettings {
    /// The name of the header, of letters, digits, `-` and `_`, in any case; each name once. Names
    /// that posthaste or HTTP itself sets are refused: `content-*`, `webhook-*`, `aeg-*`,
    /// `ce-*`, `proxy-*`, `posthaste-*`, `host`, `date`, `user-agent`, `origin`,
    /// `traceparent`, `expect`, `accept-encoding` and the hop-by-hop ones.
    #[schema(example = "X-Tenant")]
    pub name: String,
    /// The value, 1 to 4096 bytes of printable ASCII.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "acme")]
    pub value: Option<SecretText>,
    /// Whether the value is masked wherever it is shown. A masked value written back keeps the one
    /// that is there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_secret: bool,
    /// The place of the value in the event as it is sent: a JSON pointer (RFC 6901). A string is
    /// sent as it is, a number or a boolean as it is written; without one of these, or with
    /// one that no header can hold, the request goes without the header. For requests of one
    /// event only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "/data/id")]
    pub from_event: Option<String>,
}

impl DeliveryHeaderSettings {
    /// The header as it may be shown.
    pub fn masked(&self) -> Self {
        let masked = self
            .value
            .as_ref()
            .filter(|_| self.is_secret)
            .map(SecretText::masked);
        Self {
            value: masked.or_else(|| self.value.clone()),
            ..self.clone()
        }
    }

    /// The header to store: a masked secret stands for the one of the same name that is there. One
    /// without such a secret stays masked, and compiling names it. A secret can only be kept as
    /// a secret.
    pub fn resolve_mask(&self, present: &[Self]) -> Self {
        let is_masked = self.is_secret && self.value.as_ref().is_some_and(SecretText::is_masked);
        let kept = present
            .iter()
            .find(|one| one.is_secret && one.name.eq_ignore_ascii_case(&self.name));
        match kept {
            Some(kept) if is_masked => Self {
                value: kept.value.clone(),
                ..self.clone()
            },
            Some(_) | None => self.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::MASKED;

    fn header(name: &str, value: &str, is_secret: bool) -> DeliveryHeaderSettings {
        let value = Some(SecretText::new(value));
        DeliveryHeaderSettings {
            name: name.to_owned(),
            value,
            is_secret,
            from_event: None,
        }
    }

    #[test]
    fn only_secrets_are_masked() {
        assert_eq!(header("a", "s", true).masked(), header("a", MASKED, true));
        assert_eq!(header("a", "s", false).masked(), header("a", "s", false));
    }

    #[test]
    fn a_masked_secret_stands_for_the_one_of_its_name() {
        let present = [header("A", "first", true), header("b", "open", false)];
        let check = |written: DeliveryHeaderSettings, expected| {
            assert_eq!(
                written.resolve_mask(&present).value.unwrap().expose(),
                expected,
                "{}",
                written.name
            );
        };
        check(header("a", MASKED, true), "first");
        check(header("a", "new", true), "new");
        check(header("a", MASKED, false), MASKED);
        check(header("b", MASKED, true), MASKED);
        check(header("c", MASKED, true), MASKED);
    }

    #[test]
    fn debug_shows_no_value() {
        assert!(!format!("{:?}", header("a", "s3cret", true)).contains("s3cret"));
    }
}
