//! Signing secrets as users write them, as they are shown, and what a rotation makes of them.

mod masks;
mod settings;

use std::cmp::Reverse;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use self::masks::{MaskError, resolve_masks};
pub use self::settings::SigningSettings;
use super::{IsoDuration, IsoTimestamp, SecretText};
use crate::model::time::format_duration;
use crate::model::{
    ROTATION_OVERLAP_DEFAULT, ROTATION_OVERLAP_MAX, SIGNING_SECRETS_MAX, SignatureKind, Timestamp,
};

/// The rotation of a secret.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RotateSecret {
    /// How long the present secrets of the same kind go on signing, PT0S to P7D. P1D when left
    /// out. PT0S ends them at once, for a secret that has leaked: receivers that do not know
    /// the new one yet refuse what comes. A secret that an earlier rotation replaced keeps the end
    /// that this one said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<IsoDuration>,
    /// The kind of secret to make. The kind of the first present one when left out, `v1` where
    /// there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<SignatureKind>,
    /// Whether secrets may end sooner than an earlier rotation said: after this overlap, and at
    /// once, the oldest first, if more would sign than may. Without it, that is refused. False when
    /// left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drop: bool,
}

/// A secret that was made by a rotation, in clear: it is never shown again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RotatedSecret {
    /// The new secret, which signs first from now on.
    pub secret: SecretText,
    /// The kind of the new secret.
    pub kind: SignatureKind,
    /// The `whpk_` key that receivers verify with, where the new secret is of `v1a`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_key: Option<String>,
    /// All secrets that sign now, masked, and until when.
    pub signing: SigningSettings,
    /// Secrets that signed until now and sign no more, masked: a receiver that knows none of the
    /// others refuses what comes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<SecretText>,
}

/// Why a secret cannot be rotated.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum RotationError {
    /// An overlap outside its range.
    #[error("expected PT0S to {}, found {}", format_duration(ROTATION_OVERLAP_MAX), format_duration(*.0))]
    Overlap(Duration),
    /// So many secrets sign already that one more is too many.
    #[error("{count} secrets sign already{}; {}",
        .next_end.map(|end| format!(", the first ends at {end}")).unwrap_or_default(), .way_out)]
    Full {
        /// The number of secrets.
        count: usize,
        /// When the first ends, unless all of them are there for good.
        next_end: Option<Timestamp>,
        /// The remedy that makes room.
        way_out: RoomRemedy,
    },
}

/// The remedy that makes room for one more secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoomRemedy {
    /// A rotation that may end a secret sooner than an earlier one said.
    Drop,
    /// An overlap of zero: some are of the kind that is rotated.
    NoOverlap,
    /// A write of the subscription.
    Write,
}

impl fmt::Display for RoomRemedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Drop => {
                "one more would end the oldest sooner than its rotation said: wait for that end, \
                 or let it end now with drop (--drop)"
            }
            Self::NoOverlap => "an overlap of PT0S ends those of the same kind at once",
            Self::Write => "take one out of signing.secrets first",
        })
    }
}

impl SigningSettings {
    /// The kind of secret that a rotation makes.
    pub fn kind_to_make(&self, asked: Option<SignatureKind>) -> SignatureKind {
        let first = self.secrets.iter().flatten().next();
        asked
            .or_else(|| first.map(|first| SignatureKind::for_secret(first.expose())))
            .unwrap_or(SignatureKind::V1)
    }

    /// The settings after a rotation at `now`: `made` signs first, and what is there of its kind
    /// ends after the overlap, or when an earlier rotation said. Secrets of the other kind stay as
    /// they are: a receiver that verifies them has not been asked to change. Only where it is asked
    /// to `drop` does a secret end sooner than was said: after the overlap, or at once where it is
    /// the oldest of its kind and one too many. An overlap of zero ends all of the kind.
    pub fn after_rotation(
        &self,
        made: &SecretText,
        asked: &RotateSecret,
        now: Timestamp,
    ) -> Result<Self, RotationError> {
        let overlap = asked.overlap.map(|overlap| overlap.0);
        let overlap = overlap.unwrap_or(ROTATION_OVERLAP_DEFAULT);
        if overlap > ROTATION_OVERLAP_MAX {
            return Err(RotationError::Overlap(overlap));
        }
        let kind = SignatureKind::for_secret(made.expose());
        let end = IsoTimestamp(now + overlap);
        let may_end_sooner = asked.drop || overlap.is_zero();
        let mut present = self.clone();
        loop {
            let next = present.behind_new_secret(made.clone(), end, may_end_sooner);
            let next = next.live_at(now);
            // A second rotation beside the first does not get the room that the first one got.
            let max = if present.is_rotating() {
                SIGNING_SECRETS_MAX
            } else {
                next.secrets_max()
            };
            if next.timed_secrets().count() <= max {
                let is_refused = present != *self && !asked.drop;
                return if is_refused {
                    Err(self.full_error(RoomRemedy::Drop))
                } else {
                    Ok(next)
                };
            }
            present = present
                .without_oldest(kind)
                .ok_or_else(|| self.full_error(self.room_remedy(kind)))?;
        }
    }

    /// The secrets that sign here and not in `next`, masked.
    pub(super) fn secrets_ended_in(&self, next: &Self) -> Vec<SecretText> {
        self.timed_secrets()
            .map(|(secret, _)| secret)
            .filter(|secret| next.timed_secrets().all(|(other, _)| other != *secret))
            .map(|secret| secret.masked_as_one_of_several())
            .collect()
    }

    /// These secrets behind `made`, those of its kind until `end`. One that has an end keeps it,
    /// unless it `may_end_sooner`.
    fn behind_new_secret(&self, made: SecretText, end: IsoTimestamp, may_end_sooner: bool) -> Self {
        let kind = SignatureKind::for_secret(made.expose());
        let mut timed = vec![(made, None)];
        for (secret, time) in self.timed_secrets() {
            let time = match time {
                _ if SignatureKind::for_secret(secret.expose()) != kind => time,
                Some(time) if may_end_sooner => Some(time.min(end)),
                Some(time) => Some(time),
                None => Some(end),
            };
            timed.push((secret, time));
        }
        Self::from_timed(timed)
    }

    /// The rest without the secret of this kind that ends first, the last of them where several end
    /// together. `None` if no secret of this kind ends.
    fn without_oldest(&self, kind: SignatureKind) -> Option<Self> {
        let mut timed: Vec<_> = self.timed_secrets().collect();
        let ends = timed
            .iter()
            .enumerate()
            .filter(|(_, (secret, _))| SignatureKind::for_secret(secret.expose()) == kind);
        let ends = ends.filter_map(|(index, (_, end))| Some(((*end)?, Reverse(index))));
        let (_, Reverse(oldest)) = ends.min()?;
        timed.remove(oldest);
        Some(Self::from_timed(timed))
    }

    /// The remedy that makes room if no secret of this kind has an end.
    fn room_remedy(&self, kind: SignatureKind) -> RoomRemedy {
        let mut kinds = self
            .timed_secrets()
            .map(|it| SignatureKind::for_secret(it.0.expose()));
        if kinds.any(|it| it == kind) {
            RoomRemedy::NoOverlap
        } else {
            RoomRemedy::Write
        }
    }

    fn full_error(&self, way_out: RoomRemedy) -> RotationError {
        RotationError::Full {
            count: self.timed_secrets().count(),
            next_end: self
                .timed_secrets()
                .filter_map(|(_, end)| end)
                .min()
                .map(|end| end.0),
            way_out,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::settings::TimedSecret;
    use super::*;
    use crate::model::SIGNING_SECRETS_MAX;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
    const HOUR: Duration = Duration::from_hours(1);

    fn settings(value: Value) -> SigningSettings {
        serde_json::from_value(value).unwrap()
    }

    fn rotated(present: Value, made: &str, overlap: Duration) -> Result<Value, RotationError> {
        rotated_as(present, made, &asked(overlap, true))
    }

    fn asked(overlap: Duration, drop: bool) -> RotateSecret {
        RotateSecret {
            overlap: Some(IsoDuration(overlap)),
            kind: None,
            drop,
        }
    }

    fn rotated_as(
        present: Value,
        made: &str,
        asked: &RotateSecret,
    ) -> Result<Value, RotationError> {
        let next = settings(present).after_rotation(&SecretText::new(made), asked, NOW)?;
        Ok(serde_json::to_value(next).unwrap())
    }

    /// Unless it is asked to drop, whatever the overlap is.
    #[test]
    fn rotation_ends_no_secret_sooner_than_an_earlier_one_said() {
        let two = json!({ "secrets": ["whsec_b", "whsec_a"],
            "expiresAt": [null, "2023-11-20T22:00:00.000Z"] });
        let next = rotated_as(two.clone(), "whsec_c", &asked(HOUR, false)).unwrap();
        let ends = json!([null, "2023-11-14T23:13:20.000Z", "2023-11-20T22:00:00.000Z"]);
        assert_eq!(next["expiresAt"], ends);
        let by_default = RotateSecret::default();
        let next = rotated_as(two.clone(), "whsec_c", &by_default).unwrap();
        let ends = json!([null, "2023-11-15T22:13:20.000Z", "2023-11-20T22:00:00.000Z"]);
        assert_eq!(next["expiresAt"], ends);
        let dropped = rotated_as(two.clone(), "whsec_c", &asked(HOUR, true)).unwrap();
        let end = "2023-11-14T23:13:20.000Z";
        assert_eq!(dropped["expiresAt"], json!([null, end, end]));
        let leaked = rotated_as(two, "whsec_c", &asked(Duration::ZERO, false)).unwrap();
        assert_eq!(leaked, json!({ "secrets": ["whsec_c"] }));
    }

    #[test]
    fn third_rotation_is_refused_unless_it_may_drop() {
        let three = json!({ "secrets": ["whsec_c", "whsec_b", "whsec_a"],
            "expiresAt": [null, "2023-11-14T23:00:00.000Z", "2023-11-14T22:30:00.000Z"] });
        let error = rotated_as(three.clone(), "whsec_d", &asked(HOUR, false)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "3 secrets sign already, the first ends at 2023-11-14T22:30:00.000Z; one more would \
             end the oldest sooner than its rotation said: wait for that end, or let it end now \
             with drop (--drop)"
        );
        assert!(rotated_as(three, "whsec_d", &asked(HOUR, true)).is_ok());
    }

    #[test]
    fn new_secret_signs_first_and_the_old_until_overlap_ends() {
        let next = rotated(json!({ "secrets": ["whsec_a"] }), "whsec_b", HOUR).unwrap();
        let times = [Value::Null, json!("2023-11-14T23:13:20.000Z")];
        assert_eq!(
            next,
            json!({ "secrets": ["whsec_b", "whsec_a"], "expiresAt": times })
        );
        let settings = settings(next);
        assert_eq!(
            settings.live_at(NOW + HOUR.checked_sub(Duration::from_millis(1)).unwrap()),
            settings
        );
        let after = serde_json::to_value(settings.live_at(NOW + HOUR)).unwrap();
        assert_eq!(after, json!({ "secrets": ["whsec_b"] }));
    }

    #[test]
    fn a_secret_that_ends_sooner_is_not_kept_longer() {
        let ends = json!(["2023-11-14T22:30:00.000Z"]);
        let next = rotated(
            json!({ "secrets": ["whsec_a"], "expiresAt": ends }),
            "whsec_b",
            HOUR,
        )
        .unwrap();
        assert_eq!(next["expiresAt"], json!([null, "2023-11-14T22:30:00.000Z"]));
    }

    #[test]
    fn secrets_of_the_other_kind_stay() {
        let next = rotated(json!({ "secrets": ["whsec_a", "whsk_a"] }), "whsk_b", HOUR).unwrap();
        assert_eq!(next["secrets"], json!(["whsk_b", "whsec_a", "whsk_a"]));
        assert_eq!(
            next["expiresAt"],
            json!([null, null, "2023-11-14T23:13:20.000Z"])
        );
    }

    #[test]
    fn a_third_rotation_ends_the_oldest_secret_and_keeps_the_others() {
        let three = json!({ "secrets": ["whsec_c", "whsec_b", "whsec_a"],
            "expiresAt": [null, "2023-11-14T23:00:00.000Z", "2023-11-14T22:30:00.000Z"] });
        let next = rotated(three.clone(), "whsec_d", HOUR).unwrap();
        assert_eq!(next["secrets"], json!(["whsec_d", "whsec_c", "whsec_b"]));
        let times = [
            Value::Null,
            json!("2023-11-14T23:13:20.000Z"),
            json!("2023-11-14T23:00:00.000Z"),
        ];
        assert_eq!(next["expiresAt"], json!(times));
        let ended = settings(three.clone()).secrets_ended_in(&settings(next));
        assert_eq!(
            ended,
            [SecretText::new("whsec_a").masked_as_one_of_several()]
        );
        let next = rotated(three, "whsec_d", Duration::ZERO).unwrap();
        assert_eq!(next, json!({ "secrets": ["whsec_d"] }));
    }

    /// Oldest secret is the one that ends first, and among equals the last.
    #[test]
    fn oldest_secret_ends_first_or_is_last_among_equals() {
        let check = |ends: [&str; 2], kept: &str| {
            let present = json!({ "secrets": ["whsec_c", "whsec_b", "whsec_a"],
                "expiresAt": [null, ends[0], ends[1]] });
            let next = rotated(present, "whsec_d", HOUR).unwrap();
            assert_eq!(next["secrets"], json!(["whsec_d", "whsec_c", kept]));
        };
        let sooner = "2023-11-14T22:30:00.000Z";
        let later = "2023-11-14T23:00:00.000Z";
        check([later, sooner], "whsec_b");
        check([sooner, later], "whsec_a");
        check([sooner, sooner], "whsec_b");
    }

    #[test]
    fn a_secret_of_the_other_kind_is_not_ended_for_room() {
        let three = json!({ "secrets": ["whsec_b", "whsec_a", "whsk_a"],
            "expiresAt": [null, "2023-11-14T23:00:00.000Z", null] });
        let next = rotated(three.clone(), "whsec_c", HOUR).unwrap();
        assert_eq!(next["secrets"], json!(["whsec_c", "whsec_b", "whsk_a"]));
        let error = rotated(three.clone(), "whsk_b", HOUR).unwrap_err();
        assert_eq!(
            error.to_string(),
            "3 secrets sign already, the first ends at 2023-11-14T23:00:00.000Z; \
             an overlap of PT0S ends those of the same kind at once"
        );
        let next = rotated(three, "whsk_b", Duration::ZERO).unwrap();
        assert_eq!(next["secrets"], json!(["whsk_b", "whsec_b", "whsec_a"]));
    }

    /// Four secrets of which one ends make room for a first rotation.
    #[test]
    fn first_rotation_of_four_secrets_replaces_the_ending_one() {
        let four = json!({ "secrets": ["whsec_d", "whsec_c", "whsec_b", "whsec_a"],
            "expiresAt": [null, null, null, "2023-11-14T23:00:00.000Z"] });
        let next = rotated(four, "whsec_e", HOUR).unwrap();
        assert_eq!(
            next["secrets"],
            json!(["whsec_e", "whsec_d", "whsec_c", "whsec_b"])
        );
    }

    /// Rotation of three secrets without an end has room for the overlap, but not for another kind.
    #[test]
    fn three_permanent_secrets_can_rotate_with_overlap() {
        let next = rotated(
            json!({ "secrets": ["whsec_a", "whsec_b", "whsk_a"] }),
            "whsec_c",
            HOUR,
        )
        .unwrap();
        assert_eq!(
            next["secrets"],
            json!(["whsec_c", "whsec_a", "whsec_b", "whsk_a"])
        );
        let end = json!("2023-11-14T23:13:20.000Z");
        assert_eq!(next["expiresAt"], json!([null, end, end, null]));
        let again = rotated(next.clone(), "whsec_d", HOUR).unwrap();
        assert_eq!(again["secrets"], json!(["whsec_d", "whsec_c", "whsk_a"]));
        let error = rotated(next, "whsk_b", HOUR).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("4 secrets sign already, the first ends at "),
            "{error}"
        );
    }

    /// Refusal of a secret of the other kind beside three says to take one out first.
    #[test]
    fn first_secret_of_other_kind_beside_three_is_refused() {
        let three = json!({ "secrets": ["whsec_a", "whsec_b", "whsec_c"] });
        for overlap in [HOUR, Duration::ZERO] {
            let error = rotated(three.clone(), "whsk_a", overlap).unwrap_err();
            assert_eq!(
                error.to_string(),
                "3 secrets sign already; take one out of signing.secrets first"
            );
        }
    }

    #[test]
    fn an_overlap_of_more_than_a_week_is_refused() {
        let error = rotated(json!({}), "whsec_a", Duration::from_hours(169)).unwrap_err();
        assert_eq!(error.to_string(), "expected PT0S to P7D, found P7DT1H");
        assert!(rotated(json!({}), "whsec_a", Duration::from_hours(168)).is_ok());
    }

    #[test]
    fn a_rotation_makes_what_is_asked_or_what_is_there() {
        let check = |present: Value, asked, expected| {
            assert_eq!(settings(present).kind_to_make(asked), expected);
        };
        check(json!({}), None, SignatureKind::V1);
        check(
            json!({ "secrets": ["whsk_a", "whsec_a"] }),
            None,
            SignatureKind::V1a,
        );
        check(
            json!({ "secrets": ["whsec_a"] }),
            Some(SignatureKind::V1a),
            SignatureKind::V1a,
        );
    }

    proptest! {
        #[test]
        fn no_rotation_is_refused_exceeds_the_limit_or_leaves_nothing_that_signs(
            overlaps in prop::collection::vec(0_u64..=7 * 24, 0..8),
            hours in prop::collection::vec(0_u64..72, 8),
        ) {
            let (mut settings, mut now) = (SigningSettings::default(), NOW);
            for (index, (overlap, passed)) in overlaps.iter().zip(&hours).enumerate() {
                now = now + Duration::from_hours(*passed);
                settings = settings.live_at(now);
                let made = SecretText::new(format!("whsec_{index}"));
                let before: Vec<_> = settings.timed_secrets().collect();
                let overlap = Duration::from_hours(*overlap);
                let drops = asked(overlap, true);
                let next = settings.after_rotation(&made, &drops, now);
                let timed: Vec<_> = next.iter().flat_map(SigningSettings::timed_secrets).collect();
                let mut lasting = before.iter().filter(|(_, end)| end.is_none());
                let is_kept = |secret: &SecretText| timed.iter().any(|(kept, _)| kept == secret);
                prop_assert!(overlap.is_zero() || lasting.all(|(secret, _)| is_kept(secret)));
                prop_assert!(timed.len() <= SIGNING_SECRETS_MAX && timed[0] == (made.clone(), None));
                prop_assert!(timed[1..].iter().all(|(_, end)| end.is_some_and(|end| end.0 > now)));
                let keeps = settings.after_rotation(&made, &asked(overlap, false), now);
                let kept: Vec<_> = keeps.iter().flat_map(SigningSettings::timed_secrets).collect();
                let lasts = |(secret, end): &TimedSecret| {
                    let found = kept.iter().find(|(kept, _)| kept == secret);
                    found.is_some_and(|(_, after)| end.is_none() || after == end)
                };
                prop_assert!(keeps.is_err() || overlap.is_zero() || before.iter().all(lasts));
                settings = SigningSettings::from_timed(timed);
            }
        }
    }
}
