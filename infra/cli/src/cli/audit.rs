//! The command line of the audit trail.

use clap::Args;
use posthaste_core::model::WrittenTime;

/// `audit`. An option that is left out restricts nothing.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// Only changes of this topic and its subscriptions.
    #[arg(long, value_name = "TOPIC")]
    pub topic: Option<String>,
    /// Only changes of this time or later, such as 1h (an hour ago), 14:00, yesterday or
    /// 2026-11-21T10:00:00Z, in UTC.
    #[arg(long, visible_alias = "since", value_name = "TIME", value_parser = WrittenTime::parse)]
    pub from: Option<WrittenTime>,
    /// Only changes before this time.
    #[arg(long, value_name = "TIME", value_parser = WrittenTime::parse)]
    pub to: Option<WrittenTime>,
    /// The most changes to list.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
}
