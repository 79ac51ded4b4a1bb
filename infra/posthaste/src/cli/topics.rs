//! The command line of topics and subscriptions.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use posthaste_core::api::KeyName;

/// `topics`.
#[derive(Debug, Subcommand)]
pub enum TopicsCommand {
    /// List all topics.
    List,
    /// Show a topic and its subscriptions.
    Show(TopicArg),
    /// Delete a topic and its subscriptions. Events that still wait are dead-lettered.
    Delete(TopicArg),
    /// Show a topic's publish keys: key1 and key2, and those of other tiers that were made.
    Keys(TopicArg),
    /// Make a publish key of a topic, or make it anew; the others stay valid. Producers with an internal key
    /// may publish where back pressure refuses others, those with a bulk key are refused first.
    RegenerateKey {
        /// The topic.
        topic: String,
        /// The key.
        // Not `key`: clap names an argument after its field, and the admin key has that name.
        #[arg(value_name = "KEY", value_parser = key_names())]
        name: String,
    },
    /// Take a publish key of another tier away from a topic.
    DeleteKey {
        /// The topic.
        topic: String,
        /// The key. There is no topic without key1 and key2.
        // Not `key`: clap names an argument after its field, and the admin key has that name.
        #[arg(value_name = "KEY", value_parser = key_names())]
        name: String,
    },
}

/// A topic on the command line.
#[derive(Debug, Args)]
pub struct TopicArg {
    /// The topic.
    pub topic: String,
}

/// A subscription on the command line.
#[derive(Debug, Args)]
pub struct SubscriptionArgs {
    /// The topic.
    pub topic: String,
    /// The subscription.
    pub name: String,
}

/// `subscriptions`.
#[derive(Debug, Subcommand)]
pub enum SubscriptionsCommand {
    /// List a topic's subscriptions.
    List(TopicArg),
    /// Show a subscription, its secrets masked.
    Show(SubscriptionArgs),
    /// Send one event to the endpoint at once, and show the request and its answer. Nothing is tried again.
    Test {
        #[command(flatten)]
        of: SubscriptionArgs,
        /// A file with an event in the schema that the subscription receives, or - for standard input
        /// [default: a sample].
        #[arg(short, long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Make a new signing secret and print it, this once. The old ones go on signing for the overlap.
    RotateSecret {
        #[command(flatten)]
        of: SubscriptionArgs,
        /// How long the old secrets of the same kind go on signing, such as PT12H; PT0S ends them at once
        /// [default: P1D, at most P7D].
        #[arg(long, value_name = "DURATION")]
        overlap: Option<String>,
        /// The kind of secret to make: v1 (HMAC) or v1a (ed25519) [default: that of the first present one].
        #[arg(long, value_parser = ["v1", "v1a"])]
        kind: Option<String>,
    },
    /// Delete a subscription. Events that still wait for it are dead-lettered.
    Delete(SubscriptionArgs),
    /// Ask a subscription's endpoint again whether it wants events, and print what came of it.
    Validate(SubscriptionArgs),
    /// Let the events of an active subscription wait. They expire as others do.
    Pause(SubscriptionArgs),
    /// Deliver the events of a paused subscription again.
    Resume(SubscriptionArgs),
    /// Deliver the events of a disabled or failed subscription again; its endpoint is asked, where that is
    /// set.
    Enable(SubscriptionArgs),
    /// Let new events pass by a subscription. Events that still wait for it are dead-lettered.
    Disable(SubscriptionArgs),
    /// Deliver the events of an active subscription now: end the hold of a failing endpoint, and release what
    /// waits.
    Force(SubscriptionArgs),
}

/// The names of a topic's publish keys.
fn key_names() -> PossibleValuesParser {
    KeyName::ALL.map(KeyName::as_str).into()
}
