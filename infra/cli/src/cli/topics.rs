//! The command line of topics and subscriptions.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use posthaste_core::api::KeyName;

use super::examples;

/// `topics`.
#[derive(Debug, Subcommand)]
pub enum TopicsCommand {
    /// List all topics.
    List,
    /// Show a topic and its subscriptions.
    Show(TopicArg),
    /// Create a topic and print its publish keys. A topic that exists is refused and stays as it is.
    #[command(after_help = examples::CREATE_TOPIC)]
    Create {
        /// The topic.
        topic: String,
        /// Settings of the topic, named as in a file for `apply`. Values are YAML or JSON.
        #[arg(value_name = "MEMBER=VALUE")]
        members: Vec<String>,
    },
    /// Print all topics and their subscriptions as a file for `apply`. Secrets are masked: the
    /// server that has them keeps them when the file is applied, and another one refuses them.
    /// --secrets writes them in clear.
    #[command(after_help = examples::EXPORT)]
    Export {
        /// Only topics whose names begin like this.
        #[arg(long, value_name = "TEXT", default_value = "")]
        prefix: String,
        /// Print signing secrets, secret headers and publish keys in clear, so that `apply` makes
        /// the same topics on another server. The audit trail says who read them.
        #[arg(long)]
        secrets: bool,
    },
    /// Delete a topic and its subscriptions. Events that still wait are dead-lettered: it says how
    /// many, and asks first.
    Delete {
        #[command(flatten)]
        of: TopicArg,
        #[command(flatten)]
        confirmed: ConfirmedArg,
    },
    /// Show a topic's publish keys: key1 and key2, and keys of other tiers if there are any.
    Keys(TopicArg),
    /// Make or replace a publish key; the others stay valid. Under back pressure, producers with a
    /// bulk key are refused first, and those with an internal key last.
    RegenerateKey {
        /// The topic.
        topic: String,
        /// The key.
        // Not `key`: clap names an argument after its field, and the admin key has that name.
        #[arg(value_name = "KEY", value_parser = key_names())]
        name: String,
    },
    /// Delete an internal or bulk key of a topic. Producers that use it are refused.
    DeleteKey {
        /// The topic.
        topic: String,
        /// The key. key1 and key2 cannot be deleted.
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

/// The confirmation of a command that gives up events.
#[derive(Debug, Clone, Copy, Args)]
pub struct ConfirmedArg {
    /// Give up the events that wait without asking. Needed where there is no terminal to ask on,
    /// unless nothing waits.
    #[arg(short, long)]
    pub yes: bool,
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
    /// Create a subscription and print its signing secret, this once. One that exists is refused and
    /// stays as it is.
    #[command(after_help = examples::CREATE_SUBSCRIPTION)]
    Create {
        #[command(flatten)]
        of: SubscriptionArgs,
        /// The URL that gets the events: `endpoint.url`. (`--url` is that of the server.)
        #[arg(long, value_name = "URL")]
        endpoint: Option<String>,
        /// More settings, named as in a file for `apply`. Values are YAML or JSON.
        #[arg(value_name = "MEMBER=VALUE")]
        members: Vec<String>,
    },
    /// Change settings of a subscription. Those that are not named keep their values; null or
    /// nothing takes a value away.
    #[command(after_help = examples::SET)]
    Set {
        #[command(flatten)]
        of: SubscriptionArgs,
        /// Settings, named as in a file for `apply`. Values are YAML or JSON.
        #[arg(value_name = "MEMBER=VALUE", required = true)]
        members: Vec<String>,
    },
    /// Send one event to the endpoint at once, and show the request and its answer. There is no
    /// retry.
    #[command(after_help = examples::TEST)]
    Test {
        #[command(flatten)]
        of: SubscriptionArgs,
        /// A file with an event in the schema that the subscription receives, or - for standard
        /// input [default: a sample].
        #[arg(short, long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Make a new signing secret and print it, this once. The older ones keep signing for the
    /// overlap; at most three sign at once, so a third rotation is refused without --drop.
    #[command(after_help = examples::ROTATE)]
    RotateSecret {
        #[command(flatten)]
        of: SubscriptionArgs,
        /// How long the older secrets of the same kind keep signing, up to P7D (7 days). PT0S ends
        /// them at once [default: P1D].
        #[arg(long, value_name = "DURATION")]
        overlap: Option<String>,
        /// The kind of secret to make: v1 (HMAC) or v1a (ed25519) [default: that of the newest
        /// secret].
        #[arg(long, value_parser = ["v1", "v1a"])]
        kind: Option<String>,
        /// Let older secrets end sooner than their rotations said: after this overlap, and the
        /// oldest at once if more than three would sign.
        #[arg(long)]
        drop: bool,
    },
    /// Delete a subscription. Events that still wait for it are dead-lettered: it says how many,
    /// and asks first.
    Delete {
        #[command(flatten)]
        of: SubscriptionArgs,
        #[command(flatten)]
        confirmed: ConfirmedArg,
    },
    /// Ask a subscription's endpoint again for its consent to events, and print the new state.
    Validate(SubscriptionArgs),
    /// Let the events of an active subscription wait. They expire as they would otherwise.
    Pause(SubscriptionArgs),
    /// Deliver the events of a paused subscription again.
    Resume(SubscriptionArgs),
    /// Deliver the events of a disabled or failed subscription again. If the endpoint must consent,
    /// it is asked.
    Enable(SubscriptionArgs),
    /// Let new events pass by a subscription. Events that still wait for it are dead-lettered: it
    /// says how many, and asks first.
    Disable {
        #[command(flatten)]
        of: SubscriptionArgs,
        #[command(flatten)]
        confirmed: ConfirmedArg,
    },
    /// Deliver the waiting events of an active subscription now, although its endpoint failed.
    Force(SubscriptionArgs),
}

/// The names of a topic's publish keys.
fn key_names() -> PossibleValuesParser {
    KeyName::ALL.map(KeyName::as_str).into()
}
