//! The headers that identify the sender.

use super::problem::{SettingsError, SettingsProblem, settings_error};
use crate::api::SenderHeaderSettings;
use crate::model::SenderHeaders;

/// Checks them. `place` is where they are in what the user wrote: empty, or with a full stop at its
/// end.
pub fn compile_sender_headers(
    place: &str,
    settings: &SenderHeaderSettings,
) -> Result<SenderHeaders, SettingsError> {
    SenderHeaders::new(settings.prefix.as_deref(), &settings.omit).map_err(|problem| {
        settings_error(
            format!("{place}prefix"),
            SettingsProblem::HeaderPrefix(problem),
        )
    })
}
