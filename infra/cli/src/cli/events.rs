//! The command line of the delivery log: events and attempts.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use posthaste_core::delivery_log::LogResult;
use posthaste_core::model::WrittenTime;

use super::dead_letters::{ReplayRunArgs, dead_letter_reasons};
use super::examples;

/// `events`.
#[derive(Debug, Subcommand)]
pub enum EventsCommand {
    /// Show what became of an event: each delivery, its attempts, and what comes next. Without a
    /// topic, events of every topic are found, also by a webhook-id or by the key of a dead letter.
    #[command(after_help = examples::EVENTS_SHOW, allow_missing_positional = true)]
    Show(EventsShowArgs),
    /// List what became of a topic's events, the newest first: each attempt, and each change
    /// without one.
    #[command(after_help = examples::EVENTS_LIST)]
    List(EventsListArgs),
    /// Deliver the events of a time to a subscription again: those that failed, those that were
    /// delivered, or all. It begins within a minute.
    #[command(after_help = examples::EVENTS_REPLAY)]
    Replay(EventsReplayArgs),
    /// Deliver one event to a subscription again, at once, whatever became of it.
    #[command(after_help = examples::EVENTS_RESEND)]
    Resend(EventsResendArgs),
    /// Take an event back that was published for later and is not released yet, for all
    /// subscriptions.
    #[command(after_help = examples::EVENTS_CANCEL)]
    Cancel(EventsCancelArgs),
}

/// `events show`.
#[derive(Debug, Args)]
pub struct EventsShowArgs {
    /// The topic. Without it, every topic is searched.
    pub topic: Option<String>,
    /// The event's id; without a topic also the webhook-id of a request, or the key of a dead
    /// letter. Put `--` before one that begins with a hyphen.
    pub id: String,
    /// Only records of this time or later, such as 1h (an hour ago), 14:00, yesterday or
    /// 2026-11-21T10:00:00Z, in UTC. It makes the answer faster.
    #[arg(long, visible_alias = "since", value_name = "TIME", value_parser = WrittenTime::parse)]
    pub from: Option<WrittenTime>,
    /// Only records before this time.
    #[arg(long, value_name = "TIME", value_parser = WrittenTime::parse)]
    pub to: Option<WrittenTime>,
    /// Show the event itself too, where the log has it.
    #[arg(long)]
    pub payload: bool,
}

/// `events list`.
#[derive(Debug, Args)]
pub struct EventsListArgs {
    /// The topic.
    pub topic: String,
    /// Only this subscription.
    #[arg(long, value_name = "NAME")]
    pub subscription: Option<String>,
    #[command(flatten)]
    pub which: RecordFilterArgs,
}

/// `events resend`.
#[derive(Debug, Args)]
pub struct EventsResendArgs {
    /// The topic.
    pub topic: String,
    /// The subscription.
    pub subscription: String,
    /// The event's id. Put `--` before one that begins with a hyphen.
    pub id: String,
    /// The delivery, as `events show` names it. Needed where a producer gave the id to several
    /// events.
    // Not `--key`: that is the admin key.
    #[arg(long, value_name = "KEY")]
    pub delivery: Option<String>,
    /// Give the event a new `webhook-id`, so that a receiver takes again what it has seen.
    #[arg(long)]
    pub new_id: bool,
}

/// `events cancel`.
#[derive(Debug, Args)]
pub struct EventsCancelArgs {
    /// The topic.
    pub topic: String,
    /// The event's id. Put `--` before one that begins with a hyphen.
    pub id: String,
}

/// `events replay`. An option that is left out restricts nothing.
#[derive(Debug, Args)]
pub struct EventsReplayArgs {
    /// The topic.
    pub topic: String,
    /// The subscription.
    pub subscription: String,
    /// Only events whose delivery ended at or after this time, such as 1h (an hour ago), 14:00,
    /// yesterday or 2026-11-21T10:00:00Z, in UTC.
    #[arg(long, visible_alias = "since", value_name = "TIME", value_parser = WrittenTime::parse)]
    pub from: Option<WrittenTime>,
    /// Only events whose delivery ended before this time.
    #[arg(long, value_name = "TIME", value_parser = WrittenTime::parse)]
    pub to: Option<WrittenTime>,
    /// Only events whose delivery ended like this.
    #[arg(long, value_name = "RESULT", value_parser = ["delivered", "failed", "dead-lettered", "dropped"])]
    pub result: Option<String>,
    /// Only events that were given up for this reason.
    #[arg(long, value_parser = dead_letter_reasons())]
    pub reason: Option<String>,
    /// Only events whose last attempt had this status, such as 503, or one of this class, such as
    /// 5xx.
    #[arg(long, value_name = "STATUS")]
    pub status: Option<String>,
    /// Only events of this type. May be given more than once.
    #[arg(long = "type", value_name = "TYPE")]
    pub types: Vec<String>,
    /// Also events that were accepted for an earlier subscription of this name, which was deleted.
    #[arg(long)]
    pub include_former: bool,
    /// Only count: nothing is done.
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub run: ReplayRunArgs,
}

/// `attempts`.
#[derive(Debug, Subcommand)]
pub enum AttemptsCommand {
    /// List the attempts of a subscription, the newest first, or print them as they are made.
    #[command(after_help = examples::ATTEMPTS)]
    List(AttemptsListArgs),
}

/// `attempts list`.
#[derive(Debug, Args)]
pub struct AttemptsListArgs {
    /// The topic.
    pub topic: String,
    /// The subscription.
    pub subscription: String,
    #[command(flatten)]
    pub which: RecordFilterArgs,
    /// Print the newest attempts, the oldest of them first, and then each new one, until Ctrl-C.
    /// With --json each is a line.
    #[arg(long, conflicts_with = "to")]
    pub follow: bool,
}

/// Records of the delivery log. An option that is left out restricts nothing.
#[derive(Debug, Clone, Default, Args)]
pub struct RecordFilterArgs {
    /// Only records with this result.
    #[arg(long, value_name = "RESULT", value_parser = log_results())]
    pub result: Option<String>,
    /// Only events of this type.
    #[arg(long = "type", value_name = "TYPE")]
    pub event_type: Option<String>,
    /// Only answers with this status, such as 503, or of this class, such as 5xx.
    #[arg(long, value_name = "STATUS")]
    pub status: Option<String>,
    /// Only the request with this `webhook-id`.
    #[arg(long, value_name = "ID")]
    pub webhook_id: Option<String>,
    /// Only records of this time or later, such as 1h (an hour ago), 14:00, yesterday or
    /// 2026-11-21T10:00:00Z, in UTC.
    #[arg(long, visible_alias = "since", value_name = "TIME", value_parser = WrittenTime::parse)]
    pub from: Option<WrittenTime>,
    /// Only records before this time.
    #[arg(long, value_name = "TIME", value_parser = WrittenTime::parse)]
    pub to: Option<WrittenTime>,
    /// The most records to list [default: 100, with --follow 10].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: Option<u32>,
    /// List all that the log has.
    #[arg(long, conflicts_with = "limit")]
    pub all: bool,
}

/// The results that a record can have.
fn log_results() -> PossibleValuesParser {
    LogResult::ALL
        .iter()
        .map(|result| result.as_str())
        .collect::<Vec<_>>()
        .into()
}
