//! The command line of dead letters and their replays.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use posthaste_core::attempt::DeadLetterReason;

use super::examples;

/// `dead-letters`.
#[derive(Debug, Subcommand)]
pub enum DeadLettersCommand {
    /// List a subscription's dead letters.
    #[command(after_help = examples::DEAD_LETTERS)]
    List(DeadLettersListArgs),
    /// Deliver a subscription's dead letters again, to it alone. It begins within a minute.
    #[command(after_help = examples::REPLAY)]
    Replay(ReplayArgs),
    /// Print a dead-letter object as it is stored.
    Show {
        /// The key of the object, as `list` shows it.
        object: String,
    },
}

/// Dead letters of a subscription. An option that is left out restricts nothing.
#[derive(Debug, Args)]
pub struct DeadLettersArgs {
    /// The topic.
    pub topic: String,
    /// The subscription.
    pub subscription: String,
    /// Only those written at or after this time, such as 2026-11-21T10:00:00Z.
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Only those written before this time.
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,
    /// Only those with this reason, such as `MaxDeliveryAttemptsExceeded`.
    #[arg(long, value_parser = reasons())]
    pub reason: Option<String>,
}

/// `dead-letters list`.
#[derive(Debug, Args)]
pub struct DeadLettersListArgs {
    #[command(flatten)]
    pub which: DeadLettersArgs,
    /// The most objects to list.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
}

/// `dead-letters replay`. An option that is left out restricts nothing.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    #[command(flatten)]
    pub which: DeadLettersArgs,
    /// Only events of this type. May be given more than once.
    #[arg(long = "type", value_name = "TYPE")]
    pub types: Vec<String>,
    /// Only this object, by its key as `list` shows it. May be given more than once.
    #[arg(long = "object", value_name = "OBJECT")]
    pub objects: Vec<String>,
    /// Also events that were accepted for an earlier subscription of this name, which was deleted.
    #[arg(long)]
    pub include_former: bool,
    /// Only count what would be delivered.
    #[arg(long)]
    pub dry_run: bool,
    /// Events per second, 1 to 1000 [default: 100].
    #[arg(long, value_name = "N")]
    pub rate: Option<u32>,
    /// Wait until each event is delivered or has failed again, and fail if the replay was cancelled, or an
    /// event could not be queued or failed again. Without a delivery log, wait until everything is queued.
    #[arg(long, conflicts_with = "dry_run")]
    pub wait: bool,
}

/// `replays`.
#[derive(Debug, Subcommand)]
pub enum ReplaysCommand {
    /// List the replays of the last 30 days, the oldest first.
    List,
    /// Show how far a replay has come.
    Show {
        /// The replay's id.
        id: String,
    },
    /// Cancel a replay. Events that are in the queue already, those of a minute at most, are still delivered.
    Cancel {
        /// The replay's id.
        id: String,
    },
}

/// The reasons that a dead letter can have.
fn reasons() -> PossibleValuesParser {
    DeadLetterReason::ALL.map(DeadLetterReason::as_str).into()
}
