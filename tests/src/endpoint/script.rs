//! Answers that an endpoint gives, path by path.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::received::Received;
use crate::seen::Seen;

/// An answer with everything in it.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    pub status: u16,
    /// The headers besides `content-length`.
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
}

/// Behaviour of the endpoint once it has read a request.
#[derive(Debug, Clone)]
pub enum Answer {
    /// Answers with a status and no body.
    Status(u16),
    /// Answers with a status and one header more.
    With(u16, &'static str, String),
    /// Answers with the status this function chooses.
    Judge(fn(&Received) -> u16),
    /// Answers with what this function makes of the request.
    Reply(fn(&Received) -> Reply),
    /// Answers with a status once [`Endpoint::open`](super::Endpoint::open) was called.
    Held(u16),
    /// Answers with a status and a body that never ends.
    Endless(u16),
    /// Answers with these bytes, and keeps the connection open.
    Raw(&'static str),
    /// Sends interim answers that never end.
    InterimForEver,
    /// Closes the connection without a word.
    Close,
    /// Closes the connection in the middle of the head.
    CloseInHead,
    /// Answers with something that is not HTTP.
    Garbage,
    /// Answers with a status where the request is the first of its connection, and reads on and
    /// says nothing otherwise: as if a balancer had forgotten the connection.
    OncePerConnection(u16),
    /// Reads on and says nothing.
    Never,
}

/// Chooses the answer to a request, and may rest before.
pub(super) struct Choose(pub(super) Box<dyn Fn(&Received) -> Answer + Send + Sync>);

impl fmt::Debug for Choose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Choose")
    }
}

/// State that the connections of an endpoint share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    scripts: Mutex<HashMap<String, Script>>,
    choose: Option<Choose>,
    pub(super) received: Seen<Received>,
    pub(super) opened: Seen<()>,
}

#[derive(Debug)]
struct Script {
    answers: Vec<Answer>,
    next: usize,
}

impl Shared {
    pub(super) fn choosing(choose: Choose) -> Self {
        Self {
            choose: Some(choose),
            ..Self::default()
        }
    }

    /// The answer to a request, which is remembered unless the answers are chosen.
    pub(super) fn receive(&self, request: &Received) -> Answer {
        if let Some(Choose(choose)) = &self.choose {
            return choose(request);
        }
        let answer = self.answer(&request.path);
        self.received.push(request.clone());
        answer
    }

    /// Scripts a path: one answer per request, and the last one for all that follow.
    pub(super) fn script(&self, path: &str, answers: impl IntoIterator<Item = Answer>) {
        let answers: Vec<_> = answers.into_iter().collect();
        assert!(!answers.is_empty(), "a script has an answer");
        self.scripts()
            .insert(path.to_owned(), Script { answers, next: 0 });
    }

    fn scripts(&self) -> MutexGuard<'_, HashMap<String, Script>> {
        self.scripts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next answer of a path.
    fn answer(&self, path: &str) -> Answer {
        let mut scripts = self.scripts();
        let Some(script) = scripts.get_mut(path) else {
            return Answer::Status(204);
        };
        let at = script.next.min(script.answers.len() - 1);
        script.next += 1;
        script.answers[at].clone()
    }
}
