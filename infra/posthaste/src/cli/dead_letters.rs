//! The command line of dead letters.

use clap::{Args, Subcommand};

use super::global::AdminKey;
use super::replay::ReplayArgs;

/// `dead-letters`.
#[derive(Debug, Args)]
pub struct DeadLettersArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: DeadLettersCommand,
    /// The admin key.
    #[command(flatten)]
    pub admin: AdminKey,
}

/// What can be done with dead letters.
#[derive(Debug, Subcommand)]
pub enum DeadLettersCommand {
    /// List a subscription's dead letters.
    List(DeadLettersListArgs),
    /// Deliver a subscription's dead letters again, to it alone. It begins within a minute.
    Replay(ReplayArgs),
    /// Print a dead-letter object as it is stored.
    Show {
        /// The key of the object, as `list` shows it.
        object: String,
    },
}

/// `dead-letters list`.
#[derive(Debug, Args)]
pub struct DeadLettersListArgs {
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
    #[arg(long)]
    pub reason: Option<String>,
    /// At most so many.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
}
