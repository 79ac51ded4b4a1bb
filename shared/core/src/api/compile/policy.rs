//! Retries, batching, dead letters and lifetimes: from settings to the rules' values.

use std::time::Duration;

use super::problem::{
    SettingsError, SettingsProblem, count_in, duration_from, duration_in, number_in, settings_error,
};
use crate::api::IsoDuration;
use crate::api::settings::{
    BatchingSettings, DeadLetterSettings, RetryPolicySettings, SubscriptionSettings,
};
use crate::model::{
    ACKNOWLEDGED_EVENTS_MAX, AUTO_DELETE_ON_IDLE_MIN, BatchPolicy, DEAD_LETTER_DELAY_DEFAULT,
    DEAD_LETTER_DELAY_MAX, DEAD_LETTER_GIVE_UP_MIN, DELIVERY_ATTEMPTS_MAX, DeadLetterPolicy,
    EVENT_TIME_TO_LIVE_MINUTES_MAX, EVENTS_PER_BATCH_MAX, PREFERRED_BATCH_KILOBYTES_DEFAULT,
    PREFERRED_BATCH_KILOBYTES_MAX, RECOVERY_RATE_DEFAULT, RECOVERY_WITHIN_DEFAULT,
    RECOVERY_WITHIN_MAX, RECOVERY_WITHIN_MIN, REPLAY_RATE_MAX, RecoveryPolicy, RetryPolicy,
    SCHEDULE_STEP_MAX, SCHEDULE_STEPS_MAX, SQS_RETENTION, SubscriptionLifetime, WaitFloors,
};

pub(super) fn retry_policy(settings: &RetryPolicySettings) -> Result<RetryPolicy, SettingsError> {
    let default = RetryPolicy::default();
    let attempts_max = settings
        .max_delivery_attempts
        .unwrap_or(DELIVERY_ATTEMPTS_MAX);
    number_in(
        "retryPolicy.maxDeliveryAttempts",
        attempts_max,
        1,
        DELIVERY_ATTEMPTS_MAX,
    )?;
    let minutes = settings
        .event_time_to_live_in_minutes
        .unwrap_or(EVENT_TIME_TO_LIVE_MINUTES_MAX);
    number_in(
        "retryPolicy.eventTimeToLiveInMinutes",
        minutes,
        1,
        EVENT_TIME_TO_LIVE_MINUTES_MAX,
    )?;
    let schedule = match &settings.schedule {
        None => default.schedule,
        Some(steps) => {
            count_in("retryPolicy.schedule", steps.len(), 1, SCHEDULE_STEPS_MAX)?;
            for (index, step) in steps.iter().enumerate() {
                let member = format!("retryPolicy.schedule[{index}]");
                duration_in(member, step.0, Duration::ZERO, SCHEDULE_STEP_MAX)?;
            }
            steps.iter().map(|step| step.0).collect()
        }
    };
    let permanent_statuses = match &settings.permanent_statuses {
        None => default.permanent_statuses,
        Some(statuses) => {
            for (index, status) in statuses.iter().enumerate() {
                number_in(
                    format!("retryPolicy.permanentStatuses[{index}]"),
                    *status,
                    300,
                    599,
                )?;
            }
            statuses.iter().copied().collect()
        }
    };
    Ok(RetryPolicy {
        attempts_max,
        time_to_live: Duration::from_secs(u64::from(minutes) * 60),
        schedule,
        wait_floors: wait_floors(settings)?,
        permanent_statuses,
        disable_on_gone: settings.disable_on_gone.unwrap_or(true),
    })
}

fn wait_floors(settings: &RetryPolicySettings) -> Result<WaitFloors, SettingsError> {
    let mut floors = WaitFloors::default();
    for (status, floor) in &settings.wait_floors {
        let member = format!("retryPolicy.waitFloors.{status}");
        duration_in(&*member, floor.0, Duration::ZERO, SCHEDULE_STEP_MAX)?;
        if status == "default" {
            floors.default = floor.0;
            continue;
        }
        let number = status
            .parse()
            .ok()
            .filter(|number| (100..600).contains(number));
        let number: u16 =
            number.ok_or_else(|| settings_error(member, SettingsProblem::NotAStatus))?;
        floors.by_status.insert(number, floor.0);
    }
    Ok(floors)
}

pub(super) fn compile_batching(
    settings: Option<BatchingSettings>,
) -> Result<BatchPolicy, SettingsError> {
    let Some(settings) = settings else {
        return Ok(BatchPolicy::default());
    };
    let events = settings.max_events_per_batch.unwrap_or(1);
    number_in(
        "batching.maxEventsPerBatch",
        events,
        1,
        EVENTS_PER_BATCH_MAX,
    )?;
    let kilobytes = settings
        .preferred_batch_size_in_kilobytes
        .unwrap_or(PREFERRED_BATCH_KILOBYTES_DEFAULT);
    number_in(
        "batching.preferredBatchSizeInKilobytes",
        kilobytes,
        1,
        PREFERRED_BATCH_KILOBYTES_MAX,
    )?;
    let enabled = settings
        .max_events_per_batch
        .or(settings.preferred_batch_size_in_kilobytes)
        .is_some();
    let partial_acknowledgement = settings.partial_acknowledgement.unwrap_or(false);
    if partial_acknowledgement && !enabled {
        return Err(settings_error(
            "batching.partialAcknowledgement",
            SettingsProblem::NotBatched,
        ));
    }
    if partial_acknowledgement && events > ACKNOWLEDGED_EVENTS_MAX {
        return Err(settings_error(
            "batching.maxEventsPerBatch",
            SettingsProblem::AcknowledgedEvents(events),
        ));
    }
    Ok(BatchPolicy {
        enabled,
        events_max: events as usize,
        bytes_preferred: kilobytes as usize * 1024,
        partial_acknowledgement,
    })
}

pub(super) fn dead_letter_policy(
    settings: &DeadLetterSettings,
) -> Result<DeadLetterPolicy, SettingsError> {
    let delay = settings
        .delay
        .map_or(DEAD_LETTER_DELAY_DEFAULT, |written| written.0);
    duration_in(
        "deadLetter.delay",
        delay,
        Duration::ZERO,
        DEAD_LETTER_DELAY_MAX,
    )?;
    let give_up_after = settings.give_up_after.map(|written| written.0);
    if let Some(limit) = give_up_after {
        duration_in(
            "deadLetter.giveUpAfter",
            limit,
            DEAD_LETTER_GIVE_UP_MIN,
            SQS_RETENTION,
        )?;
    }
    Ok(DeadLetterPolicy {
        enabled: settings.enabled.unwrap_or(true),
        on_expiry: settings.on_expiry.unwrap_or(true),
        delay,
        give_up_after,
    })
}

/// The recovery of a subscription, without what its topic says about times to live.
pub(super) fn compile_recovery(
    settings: &SubscriptionSettings,
) -> Result<RecoveryPolicy, SettingsError> {
    let written = settings.recovery.unwrap_or_default();
    let keeps_letters = settings.dead_letter.enabled.unwrap_or(true);
    if written.enabled == Some(true) && !keeps_letters {
        return Err(settings_error(
            "recovery.enabled",
            SettingsProblem::NothingToRecover,
        ));
    }
    let minutes = settings.retry_policy.event_time_to_live_in_minutes;
    let lives_for_a_day = minutes.is_none_or(|it| it >= EVENT_TIME_TO_LIVE_MINUTES_MAX);
    let within = written
        .within
        .map_or(RECOVERY_WITHIN_DEFAULT, |within| within.0);
    duration_in(
        "recovery.within",
        within,
        RECOVERY_WITHIN_MIN,
        RECOVERY_WITHIN_MAX,
    )?;
    let rate_per_second = written.rate_per_second.unwrap_or(RECOVERY_RATE_DEFAULT);
    number_in(
        "recovery.ratePerSecond",
        rate_per_second,
        1,
        REPLAY_RATE_MAX,
    )?;
    Ok(RecoveryPolicy {
        enabled: written.enabled.unwrap_or(keeps_letters && lives_for_a_day),
        within,
        rate_per_second,
    })
}

/// The time without activity after which a topic or subscription is deleted.
pub(super) fn compile_idle(
    written: Option<IsoDuration>,
) -> Result<Option<Duration>, SettingsError> {
    let Some(IsoDuration(idle)) = written else {
        return Ok(None);
    };
    duration_from("autoDeleteOnIdle", idle, AUTO_DELETE_ON_IDLE_MIN)?;
    Ok(Some(idle))
}

/// The end of a subscription, without the idle time of its topic. The caller, which knows the time,
/// checks that the end lies in the future.
pub(super) fn compile_lifetime(
    settings: &SubscriptionSettings,
) -> Result<SubscriptionLifetime, SettingsError> {
    let ends_at = settings.expiration_time_utc.map(|written| written.0);
    Ok(SubscriptionLifetime {
        idle: compile_idle(settings.auto_delete_on_idle)?,
        topic_idle: None,
        ends_at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, is_accepted: bool) {
        let written = IsoDuration::try_from(text.to_owned()).unwrap();
        let compiled = compile_idle(Some(written)).map_err(|error| error.member);
        let expected = if is_accepted {
            Ok(Some(written.0))
        } else {
            Err("autoDeleteOnIdle".to_owned())
        };
        assert_eq!(compiled, expected, "{text}");
    }

    #[test]
    fn five_minutes_is_the_least_idle_time() {
        assert_eq!(compile_idle(None), Ok(None));
        check("PT5M", true);
        check("P365D", true);
        check("PT4M59S", false);
        check("PT0S", false);
    }
}
