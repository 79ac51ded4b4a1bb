//! The mode of the delivery log, by topic.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::word::display_the_word;

/// How much the delivery log keeps of a topic's deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryLogMode {
    /// Nothing.
    Off,
    /// Attempts and changes, without the payloads of events.
    Attempts,
    /// Attempts and changes, and the payload of each event once per delivery, so that it can be
    /// sent again.
    #[default]
    Payloads,
}

display_the_word!(DeliveryLogMode);

impl DeliveryLogMode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Off, Self::Attempts, Self::Payloads];

    /// The mode of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.to_string() == name)
    }

    /// Whether attempts and changes are kept.
    pub fn keeps_attempts(self) -> bool {
        self != Self::Off
    }

    /// Whether payloads are kept.
    pub fn keeps_payloads(self) -> bool {
        self == Self::Payloads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_keeps_more_than_the_one_before() {
        let check = |name, expected| {
            let mode = DeliveryLogMode::parse(name);
            assert_eq!(
                mode.map(|mode| (mode.keeps_attempts(), mode.keeps_payloads())),
                expected,
                "{name}"
            );
        };
        check("off", Some((false, false)));
        check("attempts", Some((true, false)));
        check("payloads", Some((true, true)));
        check("Off", None);
        check("", None);
    }
}
