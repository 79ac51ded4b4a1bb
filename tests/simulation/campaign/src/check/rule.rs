//! The rules, and what is said of a run that breaks one.

use std::fmt;

/// A rule: the name of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// When all is well, everything comes to rest.
    Rest,
    /// Endpoints get what was published, and what their subscriptions want.
    Wanted,
    /// An accepted event has an end.
    End,
    /// An event has one end, not two.
    OneEnd,
    /// The reason of a dead letter fits what its endpoint did.
    Reason,
    /// An event that its endpoint takes arrives, whatever is in its batch.
    Neighbours,
    /// An endpoint that asked for a pause has it, also from a process that begins in it.
    Paused,
    /// An event that was recovered and failed again is not recovered forever.
    Recovers,
    /// The log tells the end that the endpoint saw.
    Told,
    /// The log has each attempt.
    Attempts,
    /// Nothing is sent before its time.
    Early,
    /// Nothing is sent after its life.
    Expired,
    /// An event that has arrived is not sent again.
    Repeated,
    /// An event has one `webhook-id`.
    WebhookId,
    /// An event is tried no more often than its subscription allows.
    TooOften,
    /// No request begins by settings that were changed.
    Changed,
    /// No request begins for a subscription that was stopped.
    Stopped,
    /// No request begins before its endpoint has consented, where it is asked.
    Consent,
    /// No subscription gets requests faster than its rate.
    Rate,
    /// No subscription has more requests open than it allows.
    AtOnce,
    /// A subscription that is well is not delayed by others.
    Prompt,
    /// An endpoint that takes events all the time is not held back for those that it does not take.
    Steady,
    /// When all is well again, what is published arrives soon.
    Alive,
    /// At the end the API shows that all is well.
    Shown,
    /// Notices tell what happened, and of each event that was given up.
    Notices,
    /// An idle topic or subscription goes by itself, and none that is used, or for which something
    /// waits.
    Idle,
    /// The audit trail has each change, and no other.
    Audit,
    /// Nothing is kept for ever.
    Growth,
}

/// The faults of a run, in words.
#[derive(Debug, Default)]
pub(super) struct Findings(Vec<String>);

impl Findings {
    /// Notes that a rule does not hold.
    pub(super) fn fail(&mut self, rule: Rule, text: impl fmt::Display) {
        self.0.push(format!("{rule:?}: {text}"));
    }

    pub(super) fn into_texts(self) -> Vec<String> {
        self.0
    }
}
