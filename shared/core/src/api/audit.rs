//! The audit trail as users see it: an entry for each change, with its author, its origin, and the
//! differences.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{IsoTimestamp, MemberChange};
use crate::api::SubscriptionAction;
use crate::model::word::display_the_word;
use crate::model::zero::is_zero;
use crate::model::{
    AUDIT_ENTRY_CHANGES_BYTES_MAX, AUDIT_TEXT_CHARS_MAX, KeyDigest, SubscriptionName, Timestamp,
    TopicName,
};

/// The address at the other end of a request's connection, as the server that took it knows it. It
/// travels among the extensions of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerAddress(pub IpAddr);

/// The maker of a change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum AuditActor {
    /// Who has the admin key of this tag.
    AdminKey,
    /// The endpoint of a subscription, with the code that it was given.
    Endpoint,
    /// This program by itself.
    Posthaste,
    /// Whoever showed a key that opens nothing, or an actor that only a newer posthaste knows.
    #[default]
    #[serde(other)]
    Unknown,
}

/// The way by which a change came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum AuditDoor {
    /// The HTTP API.
    Api,
    /// The command line, as the request's `User-Agent` says.
    Cli,
    /// The console.
    Console,
    /// A way that only a newer posthaste knows.
    #[serde(other)]
    Unknown,
}

/// The operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum AuditAction {
    /// A topic was created or replaced.
    #[serde(rename = "topic.put")]
    PutTopic,
    /// A topic was deleted.
    #[serde(rename = "topic.delete")]
    DeleteTopic,
    /// The secrets of one topic, or of the topics on one page of a list, were shown.
    #[serde(rename = "topic.read-secrets")]
    ReadSecrets,
    /// A publish key was made or replaced.
    #[serde(rename = "key.regenerate")]
    RegenerateKey,
    /// A publish key was taken away.
    #[serde(rename = "key.delete")]
    DeleteKey,
    /// A subscription was created or replaced.
    #[serde(rename = "subscription.put")]
    PutSubscription,
    /// A subscription was deleted.
    #[serde(rename = "subscription.delete")]
    DeleteSubscription,
    /// A signing secret was rotated.
    #[serde(rename = "subscription.rotate-secret")]
    RotateSecret,
    /// The endpoint was asked for its consent again.
    #[serde(rename = "subscription.validate")]
    Validate,
    /// Events were made to wait.
    #[serde(rename = "subscription.pause")]
    Pause,
    /// A pause was ended.
    #[serde(rename = "subscription.resume")]
    Resume,
    /// A subscription was enabled.
    #[serde(rename = "subscription.enable")]
    Enable,
    /// A subscription was disabled: by an operator, or because its endpoint is gone.
    #[serde(rename = "subscription.disable")]
    Disable,
    /// Holds were ended, and what waited was released.
    #[serde(rename = "subscription.force")]
    Force,
    /// A test event was sent.
    #[serde(rename = "subscription.test")]
    Test,
    /// An endpoint consented by calling back.
    #[serde(rename = "subscription.consent")]
    Consent,
    /// An endpoint that was asked for its consent answered.
    #[serde(rename = "subscription.handshake")]
    Handshake,
    /// A replay was begun.
    #[serde(rename = "replay.begin")]
    BeginReplay,
    /// A replay was cancelled.
    #[serde(rename = "replay.cancel")]
    CancelReplay,
    /// An event was sent again.
    #[serde(rename = "event.resend")]
    Resend,
    /// A scheduled event was taken back.
    #[serde(rename = "event.cancel")]
    CancelEvent,
    /// Dead letters were resolved.
    #[serde(rename = "dead-letters.resolve")]
    ResolveDeadLetters,
    /// Dead letters were deleted.
    #[serde(rename = "dead-letters.delete")]
    DeleteDeadLetters,
    /// Work that resolves or deletes dead letters was cancelled.
    #[serde(rename = "dead-letters.cancel")]
    CancelDeadLetters,
    /// Dead letters of another installation were put in.
    #[serde(rename = "dead-letters.import")]
    ImportDeadLetters,
    /// A backup was taken, with all secrets in it.
    #[serde(rename = "backup.take")]
    TakeBackup,
    /// Somebody signed in to the console.
    #[serde(rename = "console.sign-in")]
    SignIn,
    /// A session of the console was ended: by its visitor, by another, or by posthaste, because too
    /// many were open.
    #[serde(rename = "console.sign-out")]
    SignOut,
    /// Keys and codes were shown that open nothing: one entry an hour and door, with their number.
    #[serde(rename = "key.refused")]
    RefusedKeys,
    /// An operation that only a newer posthaste knows.
    #[serde(rename = "unknown", other)]
    Unknown,
}

display_the_word!(AuditActor, AuditDoor, AuditAction, AuditOutcome);

impl From<SubscriptionAction> for AuditAction {
    fn from(action: SubscriptionAction) -> Self {
        match action {
            SubscriptionAction::Validate => Self::Validate,
            SubscriptionAction::Pause => Self::Pause,
            SubscriptionAction::Resume => Self::Resume,
            SubscriptionAction::Enable => Self::Enable,
            SubscriptionAction::Disable => Self::Disable,
            SubscriptionAction::Force => Self::Force,
        }
    }
}

/// The end of a change, as far as the trail knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum AuditOutcome {
    /// It was begun. Whether it was made is not known: the process ended, or the store failed,
    /// before the end could be written down.
    Begun,
    /// It was made.
    Done,
    /// It was begun and not made: another change came before it, or nothing was there to be
    /// changed any more.
    Refused,
    /// It ended with an error: it may have been made, wholly or in part.
    Failed,
    /// An outcome that only a newer posthaste knows.
    #[serde(other)]
    Unknown,
}

/// The caller that asks for a change, with its address and door.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditCaller {
    /// The user or program that asks.
    pub actor: AuditActor,
    /// The tag of the key that was shown.
    pub key: Option<String>,
    /// The way by which the request came.
    pub via: Option<AuditDoor>,
    /// The address of the other end of the connection.
    pub address: Option<IpAddr>,
    /// The tag of the session of the console.
    pub session: Option<String>,
}

impl AuditCaller {
    /// This program itself.
    pub fn posthaste_itself() -> Self {
        Self {
            actor: AuditActor::Posthaste,
            ..Self::default()
        }
    }

    /// The caller that has the admin key of this digest.
    pub fn with_admin_key(key: &KeyDigest, via: AuditDoor, peer: Option<PeerAddress>) -> Self {
        Self {
            actor: AuditActor::AdminKey,
            key: Some(key.tag()),
            via: Some(via),
            address: peer.map(|PeerAddress(address)| address),
            session: None,
        }
    }

    /// The same in the session of the console that has this tag.
    #[must_use]
    pub fn in_session(self, tag: String) -> Self {
        Self {
            session: Some(tag),
            ..self
        }
    }

    /// Whoever is at this address, without a key that opens something.
    pub fn without_key(via: AuditDoor, peer: Option<PeerAddress>) -> Self {
        Self {
            via: Some(via),
            address: peer.map(|PeerAddress(address)| address),
            ..Self::default()
        }
    }
}

/// A change: who made it, from where, and what differs since. No secret is in it: secrets are
/// masked, and a mask names one of several by a digest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// The id, which no other entry of the same millisecond has.
    #[schema(example = "6f1c0c9e4d1b4f6e9a3b8a51c2d0e7f4")]
    pub id: String,
    /// The time at which the change was begun. Of refused keys: the beginning of their hour.
    pub at: IsoTimestamp,
    /// Who made the change.
    #[schema(inline)]
    pub actor: AuditActor,
    /// The tag of the key that was shown: the first eight hexadecimal digits of a digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "3f2a91bc")]
    pub key: Option<String>,
    /// The way by which the request came. Left out of what posthaste did by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(inline)]
    pub via: Option<AuditDoor>,
    /// The address of the other end of the connection: the client's, or that of the proxy before
    /// the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "203.0.113.7")]
    pub address: Option<IpAddr>,
    /// The tag of the session of the console that asked, which the entry of its sign-in has too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "1b9d6bcd")]
    pub session: Option<String>,
    /// The operation.
    #[schema(inline)]
    pub action: AuditAction,
    /// The topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "orders")]
    pub topic: Option<TopicName>,
    /// The subscription.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "billing")]
    pub subscription: Option<SubscriptionName>,
    /// The name or id of what else is meant: a publish key, an event, a replay or a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The end of the change.
    #[schema(inline)]
    pub outcome: AuditOutcome,
    /// More about the outcome, or what was asked for where no settings change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The number of keys that were refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The members that differ, with their values before and after. Those of a subscription begin
    /// with `subscriptions.` and its name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<MemberChange>,
    /// The number of other members that differ, for which the entry had no room.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub changes_left_out: u64,
}

impl AuditEntry {
    /// The entry of a change that begins now.
    pub fn new(id: String, at: Timestamp, caller: AuditCaller, action: AuditAction) -> Self {
        let AuditCaller {
            actor,
            key,
            via,
            address,
            session,
        } = caller;
        Self {
            id,
            at: IsoTimestamp(at),
            actor,
            key,
            via,
            address,
            session,
            action,
            topic: None,
            subscription: None,
            target: None,
            outcome: AuditOutcome::Begun,
            detail: None,
            count: None,
            changes: Vec::new(),
            changes_left_out: 0,
        }
    }

    /// The same about a topic.
    #[must_use]
    pub fn of_topic(self, topic: &TopicName) -> Self {
        Self {
            topic: Some(topic.clone()),
            ..self
        }
    }

    /// The same about a subscription.
    #[must_use]
    pub fn of_subscription(self, topic: &TopicName, name: &SubscriptionName) -> Self {
        Self {
            subscription: Some(name.clone()),
            ..self.of_topic(topic)
        }
    }

    /// The same about something else, which has this name or id.
    #[must_use]
    pub fn of_target(self, target: &str) -> Self {
        Self {
            target: Some(truncate_text(target)),
            ..self
        }
    }

    /// The same with a text about it.
    #[must_use]
    pub fn with_detail(self, detail: &str) -> Self {
        Self {
            detail: Some(truncate_text(detail)),
            ..self
        }
    }

    /// The same with the members that differ, as far as there is room for them.
    #[must_use]
    pub fn with_changes(self, changes: Vec<MemberChange>) -> Self {
        let all = changes.len();
        let mut bytes = 0;
        let mut shown = Vec::new();
        for change in changes {
            // A change is plain data with text keys: serialising it cannot fail.
            bytes += serde_json::to_vec(&change).map_or(0, |json| json.len());
            if bytes > AUDIT_ENTRY_CHANGES_BYTES_MAX {
                break;
            }
            shown.push(change);
        }
        let left_out = all - shown.len();
        Self {
            changes: shown,
            changes_left_out: u64::try_from(left_out).unwrap_or(u64::MAX),
            ..self
        }
    }

    /// The same with its end.
    #[must_use]
    pub fn with_outcome(self, outcome: AuditOutcome) -> Self {
        Self { outcome, ..self }
    }

    /// Whether posthaste made the change by itself.
    pub fn is_own(&self) -> bool {
        self.actor == AuditActor::Posthaste
    }
}

/// A text with its first characters, as far as an entry has room for them.
fn truncate_text(text: &str) -> String {
    match text.char_indices().nth(AUDIT_TEXT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// One page of the audit trail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditPage {
    /// The entries, the newest first.
    pub entries: Vec<AuditEntry>,
    /// Where the next page begins. Left out of the last one. A page may be short, or empty, and yet
    /// not the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry() -> AuditEntry {
        let at = Timestamp::EPOCH;
        let caller = AuditCaller::posthaste_itself();
        AuditEntry::new("1".to_owned(), at, caller, AuditAction::PutTopic)
    }

    fn change(bytes: usize) -> MemberChange {
        MemberChange {
            member: "m".to_owned(),
            before: None,
            after: Some(json!("x".repeat(bytes))),
        }
    }

    #[test]
    fn entry_has_the_first_changes_and_counts_the_others() {
        let quarter = AUDIT_ENTRY_CHANGES_BYTES_MAX / 4;
        let check = |sizes: &[usize], kept: usize| {
            let changes = sizes.iter().map(|size| change(*size)).collect();
            let entry = entry().with_changes(changes);
            let left_out = u64::try_from(sizes.len() - kept).unwrap();
            assert_eq!(
                (entry.changes.len(), entry.changes_left_out),
                (kept, left_out),
                "{sizes:?}"
            );
        };
        check(&[], 0);
        check(&[10, 10, 10], 3);
        check(&[quarter; 4], 3);
        check(&[10, AUDIT_ENTRY_CHANGES_BYTES_MAX, 10], 1);
        check(&[AUDIT_ENTRY_CHANGES_BYTES_MAX], 0);
    }

    #[test]
    fn long_text_of_a_stranger_is_cut_between_characters() {
        let whole = "ü".repeat(AUDIT_TEXT_CHARS_MAX);
        assert_eq!(entry().of_target(&whole).target, Some(whole.clone()));
        let longer = format!("{whole}x");
        let expected = Some(format!("{whole}…"));
        assert_eq!(entry().of_target(&longer).target, expected);
        assert_eq!(entry().with_detail(&longer).detail, expected);
    }

    #[test]
    fn words_of_a_newer_program_are_read() {
        let newer = json!({
            "id": "1", "at": "2026-11-21T10:00:00.000Z", "actor": "robot", "via": "telepathy",
            "action": "planet.move", "outcome": "dreamt", "more": true,
        });
        let entry: AuditEntry = serde_json::from_value(newer).unwrap();
        assert_eq!(
            (entry.actor, entry.via, entry.action, entry.outcome),
            (
                AuditActor::Unknown,
                Some(AuditDoor::Unknown),
                AuditAction::Unknown,
                AuditOutcome::Unknown
            )
        );
    }

    #[test]
    fn caller_has_the_tag_of_the_key_and_never_the_key() {
        let key = "an-admin-key-of-some-length";
        let peer = PeerAddress("203.0.113.7".parse().unwrap());
        let caller =
            AuditCaller::with_admin_key(&KeyDigest::for_key(key), AuditDoor::Cli, Some(peer));
        let tag = caller.key.clone().unwrap();
        assert!(tag.len() == 8 && !key.contains(&tag));
        assert_ne!(tag, KeyDigest::for_key("another-admin-key").tag());
        let entry = AuditEntry::new("1".to_owned(), Timestamp::EPOCH, caller, AuditAction::Test);
        let json = serde_json::to_string(&entry).unwrap();
        assert!(
            json.contains("203.0.113.7") && !json.contains(key),
            "{json}"
        );
    }

    #[test]
    fn entry_names_the_session_if_there_is_one() {
        let without = serde_json::to_value(entry()).unwrap();
        assert_eq!(without.get("session"), None);
        let caller = AuditCaller::default().in_session("1b9d6bcd".to_owned());
        let id = "1".to_owned();
        let entry = AuditEntry::new(id, Timestamp::EPOCH, caller, AuditAction::SignOut);
        let json = serde_json::to_value(entry).unwrap();
        assert_eq!(json["session"], "1b9d6bcd");
        assert_eq!(json["action"], "console.sign-out");
        let read: AuditEntry = serde_json::from_value(json).unwrap();
        assert_eq!(read.session.as_deref(), Some("1b9d6bcd"));
        assert_eq!(read.action, AuditAction::SignOut);
    }
}
