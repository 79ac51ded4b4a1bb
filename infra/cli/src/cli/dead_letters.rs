//! The command line of dead letters and their replays.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use posthaste_core::model::{DeadLetterReason, WrittenTime};

use super::examples;

/// `dead-letters`.
#[derive(Debug, Subcommand)]
pub enum DeadLettersCommand {
    /// List dead letters, the newest first: of a subscription, of a topic, or all of them.
    #[command(after_help = examples::DEAD_LETTERS)]
    List(DeadLettersListArgs),
    /// Deliver a subscription's dead letters again, to it alone. It begins within a minute.
    #[command(after_help = examples::REPLAY)]
    Replay(DeadLettersReplayArgs),
    /// Mark a subscription's dead letters as needing nothing more. Lists and replays leave them out
    /// then.
    #[command(after_help = examples::RESOLVE)]
    Resolve(DeadLetterSelectionArgs),
    /// Delete a subscription's dead letters, for ever. An object is deleted as a whole: where some
    /// of its events are not selected, those that are selected are resolved.
    #[command(after_help = examples::DELETE_DEAD_LETTERS)]
    Delete(DeadLettersDeleteArgs),
    /// Print a dead-letter object as it is stored.
    Show {
        /// The key of the object, as `list` shows it.
        object: String,
    },
    /// List the work that resolves or deletes dead letters, show one, or cancel it.
    Work {
        // `list` when left out.
        #[command(subcommand)]
        command: Option<LetterWorkCommand>,
    },
    /// Write dead letters for another installation, a line of JSON for each. An object goes as a
    /// whole: with all of its dead letters, where one of them is selected.
    #[command(after_help = examples::EXPORT_DEAD_LETTERS)]
    Export(DeadLettersExportArgs),
    /// Put in what another installation exported. Each dead letter keeps its object's key, its
    /// place and its ids. An object that is there already stays as it is.
    #[command(after_help = examples::IMPORT_DEAD_LETTERS)]
    Import(DeadLettersImportArgs),
}

/// Dead letters of a subscription. An option that is left out restricts nothing.
#[derive(Debug, Args)]
pub struct SubscriptionDeadLettersArgs {
    /// The topic.
    pub topic: String,
    /// The subscription.
    pub subscription: String,
    /// Only those written at or after this time, such as 1h (an hour ago), 14:00, yesterday or
    /// 2026-11-21T10:00:00Z, in UTC.
    #[arg(long, visible_alias = "since", value_name = "TIME", value_parser = WrittenTime::parse)]
    pub from: Option<WrittenTime>,
    /// Only those written before this time.
    #[arg(long, value_name = "TIME", value_parser = WrittenTime::parse)]
    pub to: Option<WrittenTime>,
    /// Only those with this reason, such as `MaxDeliveryAttemptsExceeded`.
    #[arg(long, value_parser = dead_letter_reasons())]
    pub reason: Option<String>,
}

/// Dead letters of a list. An option that is left out restricts nothing.
#[derive(Debug, Args)]
pub struct DeadLetterFilterArgs {
    /// The topic. All topics if left out.
    pub topic: Option<String>,
    /// The subscription. All of the topic's if left out.
    pub subscription: Option<String>,
    /// Only those written at or after this time, such as 1h (an hour ago), 14:00, yesterday or
    /// 2026-11-21T10:00:00Z, in UTC.
    #[arg(long, visible_alias = "since", value_name = "TIME", value_parser = WrittenTime::parse)]
    pub from: Option<WrittenTime>,
    /// Only those written before this time.
    #[arg(long, value_name = "TIME", value_parser = WrittenTime::parse)]
    pub to: Option<WrittenTime>,
    /// Only those with this reason, such as `MaxDeliveryAttemptsExceeded`.
    #[arg(long, value_parser = dead_letter_reasons())]
    pub reason: Option<String>,
    /// Only events of this type.
    #[arg(long = "type", value_name = "TYPE")]
    pub event_type: Option<String>,
    /// Also dead letters that are resolved.
    #[arg(long)]
    pub include_resolved: bool,
}

/// `dead-letters list`.
#[derive(Debug, Args)]
pub struct DeadLettersListArgs {
    #[command(flatten)]
    pub which: DeadLetterFilterArgs,
    /// The most dead letters to list.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
}

/// `dead-letters export`.
#[derive(Debug, Args)]
pub struct DeadLettersExportArgs {
    #[command(flatten)]
    pub which: DeadLetterFilterArgs,
    /// The folder for the file `dead-letters.jsonl`, or `-` for standard output.
    #[arg(long, value_name = "DIR", default_value = "-")]
    pub output: PathBuf,
}

/// `dead-letters import`.
#[derive(Debug, Args)]
pub struct DeadLettersImportArgs {
    /// The files that `export` wrote. Each is read twice: nothing is put in before all of them are
    /// whole.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Only read the files, and count.
    #[arg(long)]
    pub dry_run: bool,
}

/// The dead letters that a command is for. An option that is left out restricts nothing.
#[derive(Debug, Args)]
pub struct DeadLetterSelectionArgs {
    #[command(flatten)]
    pub which: SubscriptionDeadLettersArgs,
    /// Only events of this type. May be given more than once.
    #[arg(long = "type", value_name = "TYPE")]
    pub types: Vec<String>,
    /// Only this object, by its key as `list` shows it. May be given more than once.
    #[arg(long = "object", value_name = "OBJECT")]
    pub objects: Vec<String>,
    /// Also events that were accepted for an earlier subscription of this name, which was deleted.
    #[arg(long)]
    pub include_former: bool,
    /// Only count: nothing is done.
    #[arg(long)]
    pub dry_run: bool,
}

/// `dead-letters delete`.
#[derive(Debug, Args)]
pub struct DeadLettersDeleteArgs {
    #[command(flatten)]
    pub selected: DeadLetterSelectionArgs,
    /// All of the subscription's dead letters. Needed where no other option selects some.
    #[arg(long, required_unless_present_any = ["from", "to", "reason", "types", "objects"])]
    pub all: bool,
}

/// `dead-letters replay`.
#[derive(Debug, Args)]
pub struct DeadLettersReplayArgs {
    #[command(flatten)]
    pub selected: DeadLetterSelectionArgs,
    #[command(flatten)]
    pub run: ReplayRunArgs,
}

/// The options of every replay.
#[derive(Debug, Args)]
pub struct ReplayRunArgs {
    /// Also dead letters that are resolved: they were delivered again, or `dead-letters resolve`
    /// was told so.
    #[arg(long)]
    pub include_resolved: bool,
    /// Give the events new values of `webhook-id`, so that a receiver takes again what it has seen.
    #[arg(long)]
    pub new_id: bool,
    /// Events per second, 1 to 1000 [default: 100].
    #[arg(long, value_name = "N")]
    pub rate: Option<u32>,
    /// Wait until each event is delivered or has failed again, and fail if the replay was
    /// cancelled, or an event could not be queued or failed again. Without a delivery log,
    /// wait until everything is queued.
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
    /// Cancel a replay. Events that are in the queue already, those of a minute at most, are still
    /// delivered.
    Cancel {
        /// The replay's id.
        id: String,
    },
}

/// `dead-letters work`.
#[derive(Debug, Subcommand)]
pub enum LetterWorkCommand {
    /// List what is under way, and for a day what took more than one request and is done, or was
    /// cancelled. The newest first.
    List {
        /// Only what has not ended.
        #[arg(long)]
        active: bool,
    },
    /// Show how far some work has come, and what is left to do.
    Show {
        /// The id of the work.
        id: String,
    },
    /// Cancel work. What was done by then stays done.
    Cancel {
        /// The id of the work.
        id: String,
    },
}

/// The reasons that a dead letter can have.
pub(super) fn dead_letter_reasons() -> PossibleValuesParser {
    DeadLetterReason::ALL.map(DeadLetterReason::as_str).into()
}
