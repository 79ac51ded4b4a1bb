//! Signing secrets: how many, of which form, and until when.

use super::problem::{Problem, SettingsError, count_in, error};
use crate::api::{IsoTimestamp, SecretText, SigningSettings};
use crate::attempt::SigningSecret;

/// Checks the secrets. Those that have ended are kept: an attempt's own time decides, not the time of this
/// look.
pub(super) fn signing(settings: &SigningSettings) -> Result<Vec<SigningSecret>, SettingsError> {
    let count = settings.secrets.as_ref().map_or(0, Vec::len);
    count_in("signing.secrets", count, 0, settings.secrets_max())?;
    let parse = |(index, (text, end)): (usize, (SecretText, Option<IsoTimestamp>))| {
        let member = format!("signing.secrets[{index}]");
        if text.is_masked() {
            return Err(error(&member, Problem::NothingMasked));
        }
        let secret = SigningSecret::parse(text.expose()).map_err(|e| error(&member, Problem::Secret(e)))?;
        Ok(secret.until(end.map(|end| end.0)))
    };
    settings.timed().enumerate().map(parse).collect()
}
