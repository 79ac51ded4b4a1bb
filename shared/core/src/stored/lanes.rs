//! The targets that are slow, whose deliveries take the slow lane.
//!
//! Key `lanes.json`. Version 1; written by deliver on AWS by conditional put, read by deliver,
//! publish, wake, monitor and manage. It begins anew when it is lost. Release 0.1.0 does not know
//! it. Fixture: `lanes-v1.json`.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::circuit::DeliveryTarget;
use crate::lane::SlowTargets;
use crate::model::{FormatError, StoredFormat, Timestamp};

/// The key of the slow targets' object.
pub const LANES: &str = "lanes.json";

/// The targets as their texts. One that is not understood is left out.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LanesObject {
    slow_until: BTreeMap<String, Timestamp>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    late_at: BTreeMap<String, Timestamp>,
}

const FORMAT: StoredFormat = StoredFormat {
    name: "the targets that are slow",
    newest: 1,
};

impl SlowTargets {
    /// Reads the object.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let object: LanesObject = FORMAT.read(bytes)?;
        Ok(Self {
            slow_until: by_target(object.slow_until),
            late_at: by_target(object.late_at),
        })
    }

    /// Writes the object.
    pub fn render(&self) -> Bytes {
        let object = LanesObject {
            slow_until: by_text(&self.slow_until),
            late_at: by_text(&self.late_at),
        };
        FORMAT.render(&object)
    }
}

fn by_target(texts: BTreeMap<String, Timestamp>) -> BTreeMap<DeliveryTarget, Timestamp> {
    texts
        .into_iter()
        .filter_map(|(text, at)| Some((DeliveryTarget::parse(&text)?, at)))
        .collect()
}

fn by_text(targets: &BTreeMap<DeliveryTarget, Timestamp>) -> BTreeMap<String, Timestamp> {
    targets
        .iter()
        .map(|(target, at)| (target.to_string(), *at))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIXTURE: &str = include_str!("fixtures/lanes-v1.json");

    #[test]
    fn slow_targets_are_written_as_they_always_were_and_read_back() {
        let at = Timestamp::from_millis(1_700_000_000_000);
        let target = |text: &str| DeliveryTarget::parse(text).unwrap();
        let targets = SlowTargets {
            slow_until: BTreeMap::from([
                (target("https://a.example:443"), at),
                (target("https://b.example:443 orders.billing"), at),
            ]),
            late_at: BTreeMap::from([(target("https://c.example:443 orders.crm"), at)]),
        };
        assert_eq!(targets.render(), FIXTURE.trim_end());
        assert_eq!(SlowTargets::parse(FIXTURE.as_bytes()).unwrap(), targets);
    }

    #[test]
    fn unknown_slow_targets_are_left_out() {
        let more = br#"{"v":1,"slowUntil":{"no target":5},"more":true}"#;
        assert_eq!(SlowTargets::parse(more).unwrap(), SlowTargets::default());
        assert!(matches!(
            SlowTargets::parse(br#"{"v":2}"#),
            Err(FormatError::Newer(2))
        ));
        assert!(matches!(
            SlowTargets::parse(b"{}"),
            Err(FormatError::Malformed(..))
        ));
    }
}
