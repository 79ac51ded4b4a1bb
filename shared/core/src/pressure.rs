//! Back pressure: the watched resources, the effect of each level on producers, and how one poll
//! follows from the one before. Pure: readings and times are arguments; it samples and refuses
//! nothing itself.
//!
//! [`table`] is the one table; [`evaluate`] is the monitor's decision, [`admit`] the producer
//! side's, [`Relief`] what is done for the process itself.

mod admit;
mod advise;
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
mod settings;
mod state;
mod table;
mod transition;

pub use admit::{Admission, REFUSED_RETRY_AFTER, admit, pressing, pressure_header};
pub use advise::{ADVISED_PLACES_MAX, Places};
pub use drain::{
    CURRENT_MAX, DrainReport, Drained, REPORT_INTERVAL, REPORT_WINDOW_MAX, REPORTED_WAIT_MIN,
};
pub use evaluate::{evaluate, next_level};
pub use exchange::{ExchangeError, ExchangeSettings, KeyError};
pub use explain::explain;
pub use readings::{DrainRate, Readings, Space, Usage};
pub use relief::{Due, RELIEF_EVERY, Relief};
pub use resource::{Level, Profile, Resource, Tier};
pub use rule::{Bound, SettingsError};
pub use settings::{
    BatchPointSettings, DiskConstants, PressureSettings, TARPIT_LIMIT, TarpitSettings,
    ThresholdSettings,
};
pub use state::{
    PressureChange, PressureState, ResourceState, STATE_FORGOTTEN_AFTER, STATE_STALE_AFTER_AWS,
    STATE_STALE_AFTER_POLLS, UNTOLD_MAX,
};
pub use table::{Actions, Measure, Row, ThresholdRule, Thresholds, table};
pub use transition::{
    DISK_CRITICALLY_LOW, MEMORY_CRITICALLY_LOW, PRESSURE_FELL, PRESSURE_ROSE, Transition,
};

#[cfg(test)]
mod tests;
