//! Receipt handles. They name a receive, so that an older one of the same message is known as
//! stale.

use std::fmt;

/// The prefix of SQS's handles.
const START: &str = "AQEB";

/// A handle that was given out, or could have been.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Handle {
    pub(super) queue: String,
    pub(super) message: u64,
    pub(super) receive: u64,
}

impl Handle {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let mut next = || parts.next();
        let start = next()?;
        let queue = next()?;
        let message = next()?;
        let receive = next()?;
        let is_whole = start == START && next().is_none();
        let handle = || {
            Some(Self {
                queue: queue.to_owned(),
                message: message.parse().ok()?,
                receive: receive.parse().ok()?,
            })
        };
        is_whole.then(handle)?
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{START}:{}:{}:{}",
            self.queue, self.message, self.receive
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_written_as_a_handle_is_read_as_one() {
        let handle = Handle {
            queue: "deliveries".to_owned(),
            message: 7,
            receive: 9,
        };
        assert_eq!(Handle::parse(&handle.to_string()), Some(handle));
        for foreign in [
            "",
            "no such receipt",
            "AQEB:q:1",
            "AQEB:q:1:x",
            "AQEB:q:1:2:3",
            "XXXX:q:1:2",
        ] {
            assert_eq!(Handle::parse(foreign), None, "{foreign}");
        }
    }
}
