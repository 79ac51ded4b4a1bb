//! A change of the pressure as a notice tells of it. Changes that were not told yet travel in the state
//! itself, so that the poll that saw them and the news of them are one write: neither is there without the
//! other.

use serde::{Deserialize, Serialize};

use super::resource_state::ResourceState;
use super::{Level, Resource, Tier};
use crate::model::Timestamp;

/// Most changes that wait in a state to be told: every resource three times over, and some rest. Every
/// producer's side reads the state, so that it must stay small: a change takes some 400 bytes.
pub const UNTOLD_MAX: usize = 32;

/// One resource's level changed in one poll, or producers began to be refused on its account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PressureChange {
    /// When the poll was.
    pub at: Timestamp,
    /// Which resource.
    pub resource: Resource,
    /// Its level before, as far as it was told.
    pub previous: Level,
    /// Its level now; the same as before if only the refusal began.
    pub current: Level,
    /// Whether producers are refused on its account who were not before.
    pub refusal_began: bool,
    /// The highest level after the poll of all resources whose level has consequences for producers.
    pub overall: Level,
    /// How long acknowledgements wait after the poll, in milliseconds.
    pub tarpit_ms: u64,
    /// The tiers that are refused after the poll, on whose account ever.
    pub refused_tiers: Vec<Tier>,
    /// The resource after the poll; `None` if it could not be read for so long that it is forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<ResourceState>,
}
