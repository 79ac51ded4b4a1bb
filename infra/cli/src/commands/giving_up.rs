//! Commands that give up the events that wait: `subscriptions disable` and `delete`,
//! `topics delete`, and `apply --prune`. They say how many wait, and ask first.

use std::io;
use std::ops::Add;

use posthaste_core::api::{SubscriptionPage, SubscriptionSettings};
use serde::Serialize;
use ureq::http::Method;

use super::replays::count_with_noun;
use super::session::AdminSession;
use crate::cli::{ConfirmedArg, SubscriptionArgs};
use crate::client::ClientError;
use crate::error::{CommandError, CommandFailure};
use crate::output::CommandReply;
use crate::terminal::{ask_yes_or_no, can_ask_user};

/// The events that wait, as far as they are known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WaitingTotal {
    count: u64,
    /// Whether there may be more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    at_least: bool,
}

/// Why a command did nothing.
#[derive(Debug, thiserror::Error)]
enum NotDone {
    #[error("to {action} gives up {loss}; nothing was done")]
    NotAsked { action: String, loss: String },
    #[error("nothing was done")]
    No,
    #[error("failed to ask")]
    Ask(#[source] io::Error),
}

impl CommandFailure for NotDone {
    fn exit_code(&self) -> Option<u8> {
        matches!(self, Self::NotAsked { .. }).then_some(2)
    }

    fn hint(&self) -> Option<String> {
        let is_not_asked = matches!(self, Self::NotAsked { .. });
        is_not_asked.then(|| "--yes, if that is meant".to_owned())
    }
}

impl WaitingTotal {
    /// The events that wait for these subscriptions.
    fn sum_of(subscriptions: &[SubscriptionSettings]) -> Self {
        let views = subscriptions.iter().map(|it| it.waiting.as_deref());
        views.fold(Self::default(), |sum, view| {
            sum + Self {
                count: view.map_or(0, |view| view.count),
                at_least: view.is_none_or(|view| view.at_least),
            }
        })
    }

    /// The events that wait for a subscription.
    pub(super) fn for_subscription(
        session: &AdminSession,
        SubscriptionArgs { topic, name }: &SubscriptionArgs,
        confirmed: ConfirmedArg,
    ) -> Result<Self, ClientError> {
        let path = ["topics", topic, "subscriptions", name];
        let shown = session
            .request_json(Method::GET, &path)
            .map(|shown| vec![shown]);
        Self::sum_if_known(shown, confirmed)
    }

    /// The events that wait for the subscriptions of a topic.
    pub(super) fn for_topic(
        session: &AdminSession,
        topic: &str,
        confirmed: ConfirmedArg,
    ) -> Result<Self, ClientError> {
        let shown = session.read_list(
            &["topics", topic, "subscriptions"],
            |page: SubscriptionPage| (page.subscriptions, page.cursor),
        );
        Self::sum_if_known(shown, confirmed)
    }

    /// A topic whose record is damaged cannot be shown, but it can be deleted. What is confirmed is
    /// done whether or not the events can be counted.
    fn sum_if_known(
        shown: Result<Vec<SubscriptionSettings>, ClientError>,
        confirmed: ConfirmedArg,
    ) -> Result<Self, ClientError> {
        match shown {
            Ok(shown) => Ok(Self::sum_of(&shown)),
            Err(error) if confirmed.yes || is_damaged(&error) => Ok(Self {
                count: 0,
                at_least: true,
            }),
            Err(error) => Err(error),
        }
    }

    /// Makes sure that these events are to be given up, where there are any: by `--yes`, or by the
    /// answer of a person.
    pub(super) fn confirm_giving_up(
        self,
        action: &str,
        is_confirmed: bool,
    ) -> Result<(), CommandError> {
        let is_known_as_none = self.count == 0 && !self.at_least;
        if is_confirmed || is_known_as_none {
            return Ok(());
        }
        LossText(self.in_words()).ask_to_confirm(action)
    }

    /// Adds what is given up to the reply of a command, if there is anything.
    pub(super) fn add_to_reply(self, reply: CommandReply) -> CommandReply {
        match (self.count, self.at_least) {
            (0, false) => reply,
            _ => reply.line(format!("{} are given up", self.in_words())),
        }
    }

    /// The events in words.
    pub(super) fn in_words(self) -> String {
        match (self.count, self.at_least) {
            (0, true) => "the events that wait, whose number is not known".to_owned(),
            (count, true) => format!("at least {}", count_with_noun(count, "waiting event")),
            (count, false) => count_with_noun(count, "waiting event"),
        }
    }
}

impl Add for WaitingTotal {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            at_least: self.at_least || other.at_least,
        }
    }
}

/// The things that are gone after a command, in words.
pub(super) struct LossText(String);

impl LossText {
    /// Settings are gone, and the events that wait for them.
    pub(super) fn of_settings(waiting: WaitingTotal) -> Self {
        let settings = "their settings, keys and secrets";
        Self(if waiting == WaitingTotal::default() {
            settings.to_owned()
        } else {
            format!("{settings}, and {}", waiting.in_words())
        })
    }

    /// Makes sure that this is meant, by the answer of a person.
    pub(super) fn ask_to_confirm(self, action: &str) -> Result<(), CommandError> {
        let Self(loss) = self;
        if !can_ask_user() {
            let action = action.to_owned();
            return Err(NotDone::NotAsked { action, loss }.into());
        }
        match ask_yes_or_no(&format!("To {action} gives up {loss}. Go on?")) {
            Ok(true) => Ok(()),
            Ok(false) => Err(NotDone::No.into()),
            Err(error) => Err(NotDone::Ask(error).into()),
        }
    }
}

/// Whether a server refused to show something because it cannot read its record.
fn is_damaged(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused(refusal) if refusal.status == 500)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use ureq::http::HeaderMap;

    use super::*;
    use crate::client::ServerRefusal;

    fn waiting(views: &[Value]) -> WaitingTotal {
        let subscription = |view: &Value| {
            let shown = json!({ "endpoint": { "url": "https://a.example/" }, "waiting": view });
            serde_json::from_value(shown).unwrap()
        };
        WaitingTotal::sum_of(&views.iter().map(subscription).collect::<Vec<_>>())
    }

    #[test]
    fn events_that_wait_are_counted_in_words() {
        let check = |views: &[Value], expected: &str| {
            assert_eq!(waiting(views).in_words(), expected);
        };
        let [one, many] =
            [1, 12].map(|count| json!({ "count": count, "parked": count, "held": 0 }));
        let more = json!({ "count": 1000, "atLeast": true, "parked": 0, "held": 1000 });
        check(std::slice::from_ref(&one), "1 waiting event");
        check(&[one, many.clone()], "13 waiting events");
        check(&[more, many], "at least 1012 waiting events");
        check(
            &[Value::Null],
            "the events that wait, whose number is not known",
        );
    }

    #[test]
    fn events_that_cannot_be_counted_keep_no_confirmed_command() {
        let counted = |status: u16, yes: bool| {
            let refusal = ServerRefusal::from_response(status, &HeaderMap::new(), b"");
            let refused = ClientError::Refused(Box::new(refusal));
            WaitingTotal::sum_if_known(Err(refused), ConfirmedArg { yes }).ok()
        };
        let unknown = Some(WaitingTotal {
            count: 0,
            at_least: true,
        });
        assert_eq!(counted(503, true), unknown);
        assert_eq!(counted(503, false), None);
        assert_eq!(counted(500, false), unknown);
    }

    #[test]
    fn confirmation_is_not_asked_if_given_or_nothing_waits() {
        let none = waiting(&[json!({ "count": 0, "parked": 0, "held": 0 })]);
        assert!(
            none.confirm_giving_up("delete orders/billing", false)
                .is_ok()
        );
        let some = waiting(&[json!({ "count": 3, "parked": 3, "held": 0 })]);
        assert!(
            some.confirm_giving_up("delete orders/billing", true)
                .is_ok()
        );
    }
}
