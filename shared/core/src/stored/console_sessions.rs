//! The open sessions of the console: who is not in this list is not signed in.
//!
//! Key `console-sessions.json`. Version 1; written by the console at each sign-in and sign-out, and
//! when a session is ended by another; read by every process that serves the console, at most once
//! in five seconds while somebody looks; always changed by conditional put. `serve` deletes it when
//! it starts on a copy or a restored backup: sessions that had ended must not come back. A program
//! of before it passes it over. Fixture: `console-sessions-v1.json`.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest, Sha256};

use super::format::versioned_object;
use crate::model::{Timestamp, hex};

/// The key of the object.
pub const CONSOLE_SESSIONS: &str = "console-sessions.json";

/// Most sessions that are open at once, about 40 KB. The object is read as a whole.
pub const OPEN_SESSIONS_MAX: usize = 200;

/// Bytes of a digest that are kept: two of 200 random ids do not meet in them.
const DIGEST_BYTES: usize = 16;

/// Bytes of a session's tag.
const TAG_BYTES: usize = 4;

versioned_object!(ConsoleSessions, 1, "a list of console sessions");

/// The open sessions, in the order in which they began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConsoleSessions {
    /// The sessions.
    #[serde(default)]
    pub sessions: Vec<OpenSession>,
}

/// One browser that is signed in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenSession {
    /// The digest of its id.
    pub id: SessionDigest,
    /// The tag of the key that signed its cookie. With another key the cookie is worth nothing.
    pub key: String,
    /// The sign-in.
    pub began_at: Timestamp,
    /// The time at which it ends by itself.
    pub ends_at: Timestamp,
    /// The other end of the connection of the sign-in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
}

/// The first 16 bytes of the SHA-256 of a session's id. The id itself is in the cookie alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionDigest([u8; DIGEST_BYTES]);

impl SessionDigest {
    /// The digest of the session with this id.
    pub fn for_id(id: &[u8]) -> Self {
        let digest = Sha256::digest(id);
        let mut bytes = [0; DIGEST_BYTES];
        bytes.copy_from_slice(&digest[..DIGEST_BYTES]);
        Self(bytes)
    }

    /// The tag by which pages and the audit trail name the session: eight hexadecimal digits.
    pub fn tag(&self) -> String {
        hex::encode(&self.0[..TAG_BYTES])
    }
}

impl fmt::Display for SessionDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::write(f, self.0)
    }
}

impl Serialize for SessionDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SessionDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = hex::parse(&text);
        bytes
            .map(Self)
            .ok_or_else(|| de::Error::custom("expected 32 hexadecimal digits"))
    }
}

impl ConsoleSessions {
    /// The open session of this digest.
    pub fn find_session(&self, id: SessionDigest) -> Option<&OpenSession> {
        self.sessions.iter().find(|session| session.id == id)
    }

    /// The same without the sessions whose time is over.
    #[must_use]
    pub fn without_ended(mut self, now: Timestamp) -> Self {
        self.sessions.retain(|session| now < session.ends_at);
        self
    }

    /// Adds a session that begins. Returns the oldest ones, for which there is no room any more.
    pub fn add_session(&mut self, session: OpenSession) -> Vec<OpenSession> {
        self.sessions.push(session);
        let too_many = self.sessions.len().saturating_sub(OPEN_SESSIONS_MAX);
        self.sessions.drain(..too_many).collect()
    }

    /// Takes out the sessions that are to end, and returns them.
    pub fn end_sessions(&mut self, is_meant: impl Fn(&OpenSession) -> bool) -> Vec<OpenSession> {
        let (ended, kept) = self.sessions.drain(..).partition(is_meant);
        self.sessions = kept;
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FormatError;

    const FIXTURE: &str = include_str!("fixtures/console-sessions-v1.json");

    fn session(number: usize, ends_at: u64) -> OpenSession {
        OpenSession {
            id: SessionDigest::for_id(&number.to_be_bytes()),
            key: "0a1b2c3d".to_owned(),
            began_at: Timestamp::from_millis(1),
            ends_at: Timestamp::from_millis(ends_at),
            address: None,
        }
    }

    #[test]
    fn sessions_are_read_and_written_as_their_fixture() {
        let read = ConsoleSessions::parse(FIXTURE.as_bytes()).unwrap();
        assert_eq!(read.render(), FIXTURE.trim_end());
        let [first, second] = &read.sessions[..] else {
            panic!("{read:?}");
        };
        assert_eq!(first.id.tag(), "00112233");
        assert_eq!(first.address, Some("203.0.113.7".parse().unwrap()));
        assert_eq!(second.address, None);
    }

    #[test]
    fn newer_version_and_wrong_digest_are_refused() {
        assert!(matches!(
            ConsoleSessions::parse(br#"{"v":2}"#),
            Err(FormatError::Newer(2))
        ));
        for id in ["", "00", "zz112233445566778899aabbccddeeff"] {
            let text = format!(
                r#"{{"v":1,"sessions":[{{"id":"{id}","key":"","beganAt":1,"endsAt":2}}]}}"#
            );
            assert!(ConsoleSessions::parse(text.as_bytes()).is_err(), "{id}");
        }
    }

    #[test]
    fn digest_is_that_of_the_id_and_does_not_show_it() {
        // printf abc | sha256sum
        let digest = SessionDigest::for_id(b"abc");
        assert_eq!(digest.to_string(), "ba7816bf8f01cfea414140de5dae2223");
        assert_eq!(digest.tag(), "ba7816bf");
        assert_ne!(digest, SessionDigest::for_id(b"abd"));
    }

    #[test]
    fn oldest_session_makes_room_for_the_201st() {
        let mut all = ConsoleSessions::default();
        for number in 0..OPEN_SESSIONS_MAX {
            assert_eq!(all.add_session(session(number, 10)), []);
        }
        assert_eq!(
            all.add_session(session(OPEN_SESSIONS_MAX, 10)),
            [session(0, 10)]
        );
        assert_eq!(all.sessions.len(), OPEN_SESSIONS_MAX);
        assert_eq!(all.find_session(session(0, 10).id), None);
        assert!(
            all.find_session(session(OPEN_SESSIONS_MAX, 10).id)
                .is_some()
        );
        assert!(all.render().len() < 40_000, "{}", all.render().len());
    }

    #[test]
    fn session_ends_at_its_time_or_when_it_is_meant() {
        let mut all = ConsoleSessions {
            sessions: vec![session(1, 10), session(2, 11), session(3, 12)],
        }
        .without_ended(Timestamp::from_millis(10));
        assert_eq!(all.sessions, [session(2, 11), session(3, 12)]);
        let id = session(2, 11).id;
        assert_eq!(all.end_sessions(|it| it.id == id), [session(2, 11)]);
        assert_eq!(all.end_sessions(|it| it.id == id), []);
        assert_eq!(all.sessions, [session(3, 12)]);
    }
}
