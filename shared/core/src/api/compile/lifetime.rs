//! How long a topic or subscription is there. Whether a time is in the future is for whoever knows the time.

use std::time::Duration;

use super::problem::{SettingsError, duration_from};
use crate::api::{IsoDuration, SubscriptionSettings};
use crate::model::{AUTO_DELETE_ON_IDLE_MIN, Lifetime};

/// After how long without activity something goes.
pub(super) fn idle(written: Option<IsoDuration>) -> Result<Option<Duration>, SettingsError> {
    let Some(IsoDuration(idle)) = written else { return Ok(None) };
    duration_from("autoDeleteOnIdle", idle, AUTO_DELETE_ON_IDLE_MIN)?;
    Ok(Some(idle))
}

/// How long a subscription is there, but for what its topic says.
pub(super) fn of(settings: &SubscriptionSettings) -> Result<Lifetime, SettingsError> {
    let ends_at = settings.expiration_time_utc.map(|written| written.0);
    Ok(Lifetime { idle: idle(settings.auto_delete_on_idle)?, topic_idle: None, ends_at })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, is_accepted: bool) {
        let written = IsoDuration::try_from(text.to_owned()).unwrap();
        let compiled = idle(Some(written)).map_err(|error| error.member);
        let expected = if is_accepted { Ok(Some(written.0)) } else { Err("autoDeleteOnIdle".to_owned()) };
        assert_eq!(compiled, expected, "{text}");
    }

    #[test]
    fn five_minutes_is_the_least_idle_time() {
        assert_eq!(idle(None), Ok(None));
        check("PT5M", true);
        check("P365D", true);
        check("PT4M59S", false);
        check("PT0S", false);
    }
}
