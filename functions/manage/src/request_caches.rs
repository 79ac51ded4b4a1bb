//! What the requests of a process remember for the next ones, each bounded by itself.

use crate::dead_letters::tally::LetterTallies;
use crate::replays::final_outcomes::FinalOutcomes;
use crate::subscription_index::SubscriptionIndex;

/// What the requests of a process remember for the next ones. Nothing is lost with it.
#[derive(Debug, Default)]
pub struct RequestCaches {
    /// The dead letters that requests have counted.
    pub(crate) letter_tallies: LetterTallies,
    /// The outcomes of replays that they have counted to their ends.
    pub(crate) final_outcomes: FinalOutcomes,
    /// The subscriptions that searches have read.
    pub(crate) subscription_index: SubscriptionIndex,
}
