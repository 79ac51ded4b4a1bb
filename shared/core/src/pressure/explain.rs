//! Words for a producer about the resource that it waits for: how it stands and what ends the wait.

use super::{DueOfSubscription, PressureCause, Resource, ResourceState};

/// Explains what a producer waits for, how it stands, and what ends it: `database-disk is at
/// medium: 96 % of …`. If the producer's topic waits for itself, that names the subscription, and
/// what to do.
pub fn explain_cause(pressing: &PressureCause) -> String {
    match &pressing.subscription {
        Some(subscription) => explain_topic(&pressing.resource, subscription),
        None => explain_resource(&pressing.resource),
    }
}

fn explain_topic(state: &ResourceState, subscription: &DueOfSubscription) -> String {
    let DueOfSubscription { name, due } = subscription;
    let reading = state.reading;
    let normal = state.thresholds.normal;
    let level = state.effective_level();
    let resource = state.resource;
    format!(
        "{resource} of this topic is at {level}: delivering the {due} messages that are due to the \
         subscription {name} would take {reading} s; it ends below {normal} s. Its endpoint must \
         answer faster or take batches, or the subscription be paused; other topics are not slowed"
    )
}

fn explain_resource(state: &ResourceState) -> String {
    let reading = state.reading;
    let normal = state.thresholds.normal;
    let resource = state.resource;
    let level = state.effective_level();
    let words = match resource {
        Resource::SubmissionQueue => format!(
            "{reading} deliveries are due and not sent; it ends below {normal}, \
             once endpoints have taken them"
        ),
        Resource::VersionBuckets => format!(
            "{reading} publishes wait for their commit; it ends below {normal}, \
             once the disk has caught up"
        ),
        Resource::BatchPoints => format!(
            "{reading} batches of events are on their way into a commit; it ends below {normal}, \
             once the disk has caught up"
        ),
        Resource::DatabaseDisk if state.in_flight => format!(
            "{reading} % of the deliveries that may be in flight are; it ends below {normal} %, \
             once endpoints have answered"
        ),
        Resource::DatabaseDisk => short_disk("with the data folder", reading, normal),
        Resource::LogDisk => short_disk("with the journal", reading, normal),
        Resource::ProcessMemory => format!(
            "posthaste takes {reading} % of the machine's memory; it ends below {normal} %, \
             once less is under way, or with more memory"
        ),
        Resource::SystemMemory => format!(
            "{reading} % of the machine's memory is in use; it ends below {normal} %: \
             other programs must give some back, or the machine needs more"
        ),
        Resource::DeadLetterBacklog => format!(
            "{reading} dead letters are due and not stored; it ends below {normal}, \
             once the dead-letter store has taken them"
        ),
        Resource::DrainTime => format!(
            "delivering what is due would take {reading} s; it ends below {normal} s, \
             once endpoints have taken it"
        ),
    };
    format!("{resource} is at {level}: {words}")
}

fn short_disk(which: &str, reading: u64, normal: u64) -> String {
    format!(
        "{reading} % of the disk {which} is used; space must be freed on it: \
         events are taken again below {normal} %"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SubscriptionName;
    use crate::model::Timestamp;
    use crate::pressure::{LevelThresholds, PressureLevel};

    fn pressing(resource: Resource, in_flight: bool) -> PressureCause {
        PressureCause {
            resource: state(resource, in_flight),
            subscription: None,
        }
    }

    fn state(resource: Resource, in_flight: bool) -> ResourceState {
        ResourceState {
            resource,
            level: PressureLevel::Medium,
            since: Timestamp::EPOCH,
            reading: 96,
            read_at: Timestamp::EPOCH,
            thresholds: LevelThresholds::new(93, 95, 97),
            acts: true,
            watched_only: false,
            tarpits: false,
            polls: 1,
            history_depth: None,
            in_flight,
            refused_from: None,
            measures: [].into(),
        }
    }

    #[test]
    fn every_resource_says_how_it_stands_and_what_ends_it() {
        let all = Resource::ALL.map(|resource| explain_cause(&pressing(resource, false)));
        insta::assert_snapshot!(all.join("\n"));
    }

    #[test]
    fn on_aws_no_disk_is_short() {
        let text = explain_cause(&pressing(Resource::DatabaseDisk, true));
        assert!(
            text.contains("in flight") && !text.contains("space"),
            "{text}"
        );
    }

    #[test]
    fn topic_that_waits_for_itself_names_subscription_and_remedy() {
        let slow = PressureCause {
            subscription: Some(DueOfSubscription {
                name: SubscriptionName::parse("billing").unwrap(),
                due: 470,
            }),
            ..pressing(Resource::DrainTime, false)
        };
        assert_eq!(
            explain_cause(&slow),
            "drain-time of this topic is at medium: delivering the 470 messages that are due to \
             the subscription billing would take 96 s; it ends below 93 s. Its endpoint must \
             answer faster or take batches, or the subscription be paused; other topics are not \
             slowed"
        );
    }
}
