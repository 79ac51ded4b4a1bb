//! The claim of a selection by one request, and the end of work that a process left.

use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::stored::{FormatError, LetterEnding, layout};
use posthaste_ports::{Clock, ErrorKind, Object, ObjectStore, Ports, PutCondition};
use posthaste_services::update::UPDATE_TRIES_MAX;

use crate::answer::{ApiError, conflict};
use crate::extract::SubscriptionPath;
use crate::manage::Manage;
use crate::unfinished::{LEFT_AFTER, MARKS_MAX};

/// Who works on a selection.
pub(super) enum Claimed {
    /// This request, from where the work says.
    Own(Box<LetterEnding>),
    /// Another one, under this id.
    Others(String),
}

impl<P: Ports> Manage<P> {
    /// Claims the selection of a request. One that says where to go on is let in beside others: a
    /// letter is not ended twice.
    pub(super) async fn claim_ending(&self, asked: LetterEnding) -> Result<Claimed, ApiError> {
        let key = asked.key();
        let (mut mine, mut condition) = (asked.clone(), PutCondition::IfAbsent);
        for _ in 0..UPDATE_TRIES_MAX {
            match self.state.put(&key, mine.render(), condition).await {
                Ok(_) => return Ok(Claimed::Own(Box::new(mine))),
                Err(error) if error.kind == ErrorKind::PreconditionFailed => {}
                Err(error) => return Err(error.into()),
            }
            mine = asked.clone();
            let Some(Object { bytes, etag }) = self.state.get(&key).await? else {
                condition = PutCondition::IfAbsent;
                continue;
            };
            match LetterEnding::parse(&bytes) {
                Ok(open) if asked.after.is_some() => {
                    let id = open.id;
                    return Ok(Claimed::Own(Box::new(LetterEnding { id, ..asked })));
                }
                Ok(open) if !self.is_left(&open) => return Ok(Claimed::Others(open.id)),
                Ok(open) => mine = self.taken_up(open),
                Err(FormatError::Malformed(..)) => {}
                Err(FormatError::Newer(_)) => return Err(newer().into()),
            }
            condition = PutCondition::IfMatch(etag);
        }
        Err(conflict().into())
    }

    /// Finishes what processes left, a few seconds each.
    pub(crate) async fn finish_endings(&self) -> Result<(), ApiError> {
        let listed = self.state.list(layout::ENDING, None, MARKS_MAX).await?;
        for object in listed.objects {
            if let Err(error) = self.finish_ending(&object.key).await {
                let problem = error.0.kind.title();
                tracing::warn!(
                    key = object.key,
                    problem,
                    "dead letters not ended; tried again"
                );
            }
        }
        Ok(())
    }

    async fn finish_ending(&self, key: &str) -> Result<(), ApiError> {
        let Some(Object { bytes, etag }) = self.state.get(key).await? else {
            return Ok(());
        };
        let open = match LetterEnding::parse(&bytes) {
            Ok(open) if self.is_left(&open) => open,
            Ok(_) | Err(FormatError::Newer(_)) => return Ok(()),
            Err(FormatError::Malformed(..)) => return Ok(self.state.delete(key).await?),
        };
        let mut mine = self.taken_up(open);
        let taken = self
            .state
            .put(key, mine.render(), PutCondition::IfMatch(etag))
            .await;
        match taken {
            Err(error) if error.kind == ErrorKind::PreconditionFailed => return Ok(()),
            taken => drop(taken?),
        }
        let path = SubscriptionPath {
            topic: mine.topic.clone(),
            name: mine.subscription.clone(),
        };
        match self.task(&path, &mut mine).await {
            Ok(task) => self.go_on(mine, &task).await.map(drop),
            // The subscription and all its letters are gone.
            Err(error) if error.0.status.as_u16() == 404 => Ok(self.state.delete(key).await?),
            Err(error) => Err(error),
        }
    }

    fn is_left(&self, open: &LetterEnding) -> bool {
        self.clock.now().since(open.worked_at) >= LEFT_AFTER
    }

    fn taken_up(&self, open: LetterEnding) -> LetterEnding {
        LetterEnding {
            worked_at: self.clock.now(),
            ..open
        }
    }
}

fn newer() -> Problem {
    let detail = "the same dead letters are being ended by a newer version";
    Problem::new(ProblemKind::Internal).detail(detail)
}
