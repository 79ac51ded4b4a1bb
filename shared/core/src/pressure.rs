//! Back pressure: the watched resources, the effect of each level on producers, and how one poll
//! follows from the one before. Pure: readings and times are arguments; it samples and refuses
//! nothing itself.
//!
//! [`rows_of_profile`] is the one table; [`evaluate_pressure`] is the monitor's decision, [`admit_producer`] the producer
//! side's, [`ReliefTimes`] what is done for the process itself.

mod admit;
mod advise;
mod backlog_rate;
mod drain;
mod evaluate;
mod exchange;
mod explain;
mod formula;
mod keys;
mod readings;
mod relief;
mod resource;
mod rule;
mod self_limited;
mod settings;
mod state;
mod table;
mod topic_changes;
mod topics;
mod transition;

pub use admit::{
    Admission, DueOfSubscription, PressureCause, REFUSED_RETRY_AFTER, ReplayWait, admit_producer,
    admit_to, pressure_cause, pressure_header, replay_wait,
};
pub use advise::{ADVISED_PLACES_MAX, AdvisedPlaces};
pub use drain::{
    CURRENT_MAX, DrainCount, DrainLook, DrainReport, DrainedMessages, OwnWait, REPORT_INTERVAL,
    REPORT_WINDOW_MAX, REPORTED_TOPICS_MAX, REPORTED_WAIT_MIN, ReportedDrain, ReportedTopic,
    SubscriptionDrain,
};
pub use evaluate::{evaluate_pressure, evaluate_topics, next_level};
pub use exchange::{ExchangeError, ExchangeSettings};
pub use explain::explain_cause;
pub use readings::{ByteUsage, DatabaseSpace, DrainRate, ResourceReadings};
pub use relief::{DueRelief, RELIEF_EVERY, ReliefTimes};
pub use resource::{PressureLevel, PressureProfile, Resource};
pub use rule::{SettingBound, SettingsError};
pub use self_limited::{DrainSplit, DueOfGroup, SlowSubscription, SubscriptionDrains};
pub use settings::{
    BatchPointSettings, DiskConstants, PressureSettings, SUBSCRIPTION_DISK_PERCENT, TARPIT_LIMIT,
    TarpitSettings, ThresholdSettings,
};
pub use state::{
    ChangedTopic, PressureChange, PressureState, ResourceState, STATE_FORGOTTEN_AFTER,
    STATE_STALE_AFTER_AWS, STATE_STALE_AFTER_POLLS, SlowLaneState, TOPICS_MAX, TopicPressure,
    UNTOLD_MAX,
};
pub use table::{
    LevelActions, LevelThresholds, PressureMeasure, ResourceRow, ThresholdRule, rows_of_profile,
};
pub use topics::{SlowTopic, TopicDrain};
pub use transition::{
    DISK_CRITICALLY_LOW, LevelTransition, MEMORY_CRITICALLY_LOW, PRESSURE_FELL, PRESSURE_ROSE,
    carry_changes,
};

#[cfg(test)]
mod tests;
