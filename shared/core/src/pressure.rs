//! Back pressure: the watched resources, the effect of each level on producers, and how one poll
//! follows from the one before. Pure: readings and times are arguments; it samples and refuses
//! nothing itself.
//!
//! [`table`] is the one table; [`evaluate`] is the monitor's decision, [`admit`] the producer
//! side's, [`Relief`] what is done for the process itself.

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
    Admission, DueOfSubscription, Pressing, REFUSED_RETRY_AFTER, ReplayWait, admit, admit_to,
    pressing, pressure_header, replay_wait,
};
pub use advise::{ADVISED_PLACES_MAX, Places};
pub use drain::{
    CURRENT_MAX, DrainCount, DrainLook, DrainReport, Drained, OwnWait, REPORT_INTERVAL,
    REPORT_WINDOW_MAX, REPORTED_TOPICS_MAX, REPORTED_WAIT_MIN, ReportedDrain, ReportedTopic,
    SubscriptionDrain,
};
pub use evaluate::{evaluate, evaluate_topics, next_level};
pub use exchange::{ExchangeError, ExchangeSettings, KeyError};
pub use explain::explain;
pub use readings::{DrainRate, Readings, Space, Usage};
pub use relief::{Due, RELIEF_EVERY, Relief};
pub use resource::{Level, Profile, Resource, Tier};
pub use rule::{Bound, SettingsError};
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
pub use table::{Actions, Measure, Row, ThresholdRule, Thresholds, table};
pub use topics::{SlowTopic, TopicDrain};
pub use transition::{
    DISK_CRITICALLY_LOW, MEMORY_CRITICALLY_LOW, PRESSURE_FELL, PRESSURE_ROSE, Transition,
};

#[cfg(test)]
mod tests;
