//! Masked secrets that are written back: which of the present secrets each of them keeps.
//!
//! A mask names its secret, so that secrets may be put in front, taken away or rotated between
//! reading and writing, and none is kept, moved or lost by its place alone.

use super::settings::{SigningSettings, TimedSecret};
use crate::api::{IsoTimestamp, SecretText};
use crate::model::Timestamp;

/// The reason why masked secrets cannot be written.
#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
pub enum MaskError {
    /// A mask of nothing that is there.
    #[error("a masked secret keeps the one that is there, and there is none")]
    Unknown {
        /// The place of the mask.
        index: usize,
    },
    /// A plain mask, where it is unclear which secret it keeps.
    #[error(
        "{present} secrets are there, so (masked) does not say which one is kept: write it as it is shown, \
         (masked:xxxxxxxx)"
    )]
    Plain {
        /// The place of the mask.
        index: usize,
        /// The number of secrets that are there.
        present: usize,
    },
    /// Kept secrets that all end: nothing would sign once the present rotation is over.
    #[error(
        "each secret that is kept ends, as they were rotated: read the present ones, and keep one that does \
            not"
    )]
    AllEnd,
}

impl MaskError {
    /// The member at fault.
    pub fn member(self) -> String {
        match self {
            Self::Unknown { index } | Self::Plain { index, .. } => {
                format!("signing.secrets[{index}]")
            }
            Self::AllEnd => "signing.secrets".to_owned(),
        }
    }
}

/// The settings to store when `settings` are written at `now`, where `present` are the live ones: a
/// mask keeps its secret with its time, and a secret in clear has the time beside it.
pub fn resolve_masks(
    settings: &SigningSettings,
    present: &SigningSettings,
    now: Timestamp,
) -> Result<SigningSettings, MaskError> {
    let Some(written) = &settings.secrets else {
        return Ok(present.clone());
    };
    let mut left: Vec<TimedSecret> = present.timed_secrets().collect();
    if let Some(index) = written.iter().position(SecretText::is_plain_mask) {
        let is_plain = written.len() == left.len() && written.iter().all(SecretText::is_plain_mask);
        return if is_plain {
            Ok(present.clone())
        } else {
            Err(plain_mask_error(index, left.len()))
        };
    }
    let mut resolved = Vec::new();
    for (index, (text, end)) in settings.timed_secrets().enumerate() {
        match left
            .iter()
            .position(|(secret, _)| secret.masked_as_one_of_several() == text)
        {
            Some(found) => resolved.push(left.remove(found)),
            None if has_ended(end, now) => {}
            None if !text.is_masked() => resolved.push((text, end)),
            None => return Err(MaskError::Unknown { index }),
        }
    }
    if !written.is_empty() && resolved.iter().all(|(_, end)| end.is_some()) {
        return Err(MaskError::AllEnd);
    }
    Ok(SigningSettings::from_timed(resolved))
}

fn plain_mask_error(index: usize, present: usize) -> MaskError {
    if present == 0 {
        MaskError::Unknown { index }
    } else {
        MaskError::Plain { index, present }
    }
}

fn has_ended(end: Option<IsoTimestamp>, now: Timestamp) -> bool {
    end.is_some_and(|end| end.0 <= now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::time::Duration;

    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
    const END: &str = "2023-11-14T23:13:20.000Z";
    const PLAIN: &str = "(masked)";

    fn settings(secrets: &[&str], ends: &[Option<&str>]) -> SigningSettings {
        let mut value = json!({ "secrets": secrets });
        if !ends.is_empty() {
            value["expiresAt"] = json!(ends);
        }
        serde_json::from_value(value).unwrap()
    }

    fn mask(secret: &str) -> String {
        SecretText::new(secret)
            .masked_as_one_of_several()
            .expose()
            .to_owned()
    }

    fn resolved(written: &SigningSettings, present: &SigningSettings) -> Result<Value, MaskError> {
        resolve_masks(written, present, NOW).map(|settings| serde_json::to_value(settings).unwrap())
    }

    #[expect(clippy::needless_pass_by_value, reason = "made at every call")]
    fn check(written: &[&str], expected: Result<Value, MaskError>) {
        let present = settings(&["whsec_b", "whsec_a"], &[None, Some(END)]);
        assert_eq!(
            resolved(&settings(written, &[]), &present),
            expected,
            "{written:?}"
        );
    }

    /// Settings as they are shown keep every secret and time when they are written back.
    #[test]
    fn masked_secrets_are_accepted_when_written_back() {
        for ends in [[None, Some(END)], [Some(END), None], [None, None]] {
            for secrets in [["whsec_a", "whsk_b"], ["whsec_a", "whsec_a"]] {
                let present = settings(&secrets, &ends);
                assert_eq!(
                    resolve_masks(&present.masked(), &present, NOW)
                        .unwrap()
                        .timed_secrets()
                        .count(),
                    2
                );
            }
            let present = settings(&["whsec_a", "whsk_b"], &ends);
            let expected = SigningSettings::from_timed(present.timed_secrets());
            assert_eq!(
                resolve_masks(&present.masked(), &present, NOW),
                Ok(expected)
            );
        }
        check(
            &[PLAIN, PLAIN],
            Ok(json!({ "secrets": ["whsec_b", "whsec_a"], "expiresAt": [null, END] })),
        );
    }

    #[test]
    fn a_mask_keeps_its_secret_and_time_wherever_it_stands() {
        let a = mask("whsec_a");
        let b = mask("whsec_b");
        check(
            &[&a, &b],
            Ok(json!({ "secrets": ["whsec_a", "whsec_b"], "expiresAt": [END, null] })),
        );
        check(
            &["whsec_new", &b],
            Ok(json!({ "secrets": ["whsec_new", "whsec_b"] })),
        );
        check(
            &["whsec_a", &b],
            Ok(json!({ "secrets": ["whsec_a", "whsec_b"] })),
        );
        check(&[], Ok(json!({ "secrets": [] })));
    }

    #[test]
    fn a_plain_mask_is_taken_only_where_all_are_kept() {
        let plain = |index, present| Err(MaskError::Plain { index, present });
        check(&["whsec_new", PLAIN], plain(1, 2));
        check(&[PLAIN], plain(0, 2));
        check(&[PLAIN, PLAIN, PLAIN], plain(0, 2));
        check(&[&mask("whsec_b"), PLAIN], plain(1, 2));
        let none = SigningSettings::default();
        assert_eq!(
            resolved(&settings(&[PLAIN], &[]), &none),
            Err(MaskError::Unknown { index: 0 })
        );
    }

    #[test]
    fn a_mask_of_a_secret_that_was_rotated_out_keeps_nothing_else() {
        check(&[&mask("whsec_a")], Err(MaskError::AllEnd));
        check(&[&mask("whsec_old")], Err(MaskError::Unknown { index: 0 }));
        check(
            &[&mask("whsec_b"), &mask("whsec_b")],
            Err(MaskError::Unknown { index: 1 }),
        );
        check(&["(masked:)"], Err(MaskError::Unknown { index: 0 }));
    }

    #[test]
    fn secret_in_clear_ends_at_the_time_beside_it() {
        let none = SigningSettings::default();
        let both = settings(&["whsec_b", "whsec_a"], &[None, Some(END)]);
        assert_eq!(resolve_masks(&both, &none, NOW), Ok(both.clone()));
        let end = NOW + Duration::from_mins(1000);
        assert_eq!(
            resolve_masks(&both, &none, end),
            Ok(settings(&["whsec_b"], &[])),
            "one that has ended signs no more"
        );
        let ending = settings(&["whsec_a"], &[Some(END)]);
        assert_eq!(resolve_masks(&ending, &none, NOW), Err(MaskError::AllEnd));
    }

    /// Mask beside the time at which its secret ended keeps nothing.
    #[test]
    fn mask_beside_an_ended_time_keeps_no_secret() {
        let shown = settings(&[&mask("whsec_b"), &mask("whsec_a")], &[None, Some(END)]);
        let left = settings(&["whsec_b"], &[]);
        let later = NOW + Duration::from_hours(1);
        assert_eq!(resolve_masks(&shown, &left, later), Ok(left.clone()));
        assert_eq!(
            resolve_masks(&shown, &left, NOW),
            Err(MaskError::Unknown { index: 1 })
        );
        let gone = settings(&["whsec_c"], &[]);
        assert_eq!(
            resolve_masks(&shown, &gone, later),
            Err(MaskError::Unknown { index: 0 })
        );
        assert_eq!(
            resolve_masks(&settings(&[&mask("whsec_a")], &[Some(END)]), &left, later),
            Err(MaskError::AllEnd)
        );
    }
}
