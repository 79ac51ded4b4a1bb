//! Signing secrets as users write them, each with the time at which it ends.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::{IsoTimestamp, SecretText};
use crate::model::{SIGNING_SECRETS_MAX, Timestamp};

/// The signature of requests (Standard Webhooks).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SigningSettings {
    /// `whsec_` secrets, which sign as `v1`, and `whsk_` private keys, which sign as `v1a`; each
    /// of them signs, so that one can be rotated. At most 3. Left out, the present ones stay,
    /// or one is made and shown once, in the answer. They are shown as `(masked:xxxxxxxx)`,
    /// which written back keeps that one, wherever it stands; a plain `(masked)` is taken only
    /// where all of them are and there are as many as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<Vec<SecretText>>,
    /// The time until which each of the secrets signs, as it is shown while one is rotated out;
    /// null: for good. A masked secret keeps the time that it has; one in clear ends at the time
    /// beside it, and is left out if that has passed. A mask whose secret has ended may be written
    /// back beside the time at which it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Option<String>>>)]
    pub expires_at: Option<Vec<Option<IsoTimestamp>>>,
}

/// A secret and until when it signs; `None`: for good.
pub(super) type TimedSecret = (SecretText, Option<IsoTimestamp>);

impl SigningSettings {
    /// Settings of these secrets. The times are left out where none of them ends.
    pub fn from_timed(timed: impl IntoIterator<Item = TimedSecret>) -> Self {
        let (secrets, ends): (Vec<_>, Vec<_>) = timed.into_iter().unzip();
        let expires_at = ends.iter().any(Option::is_some).then_some(ends);
        Self {
            secrets: Some(secrets),
            expires_at,
        }
    }

    /// The secrets, each with its time.
    pub fn timed_secrets(&self) -> impl Iterator<Item = TimedSecret> {
        let times = self.expires_at.as_deref().unwrap_or_default();
        self.secrets
            .iter()
            .flatten()
            .enumerate()
            .map(move |(index, secret)| {
                let time = times.get(index).copied().flatten();
                (secret.clone(), time)
            })
    }

    /// The settings as they may be shown.
    pub fn masked(&self) -> Self {
        let secrets = self.secrets.as_ref().map(|all| {
            all.iter()
                .map(SecretText::masked_as_one_of_several)
                .collect()
        });
        Self {
            secrets,
            expires_at: self.expires_at.clone(),
        }
    }

    /// The settings without the secrets that have ended by `now`.
    pub fn live_at(&self, now: Timestamp) -> Self {
        if self.expires_at.is_none() {
            return self.clone();
        }
        Self::from_timed(
            self.timed_secrets()
                .filter(|(_, end)| end.is_none_or(|end| now < end.0)),
        )
    }

    /// The number of secrets allowed: one more than may be written while one of them ends, so that
    /// a rotation has room beside as many as may be written.
    pub(crate) fn secrets_max(&self) -> usize {
        SIGNING_SECRETS_MAX + usize::from(self.is_rotating())
    }

    /// Whether a secret is being rotated out.
    pub(super) fn is_rotating(&self) -> bool {
        self.timed_secrets().any(|(_, end)| end.is_some())
    }
}
