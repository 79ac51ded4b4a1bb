//! The report to the monitor of letters that the bucket refused, which wait to be tried again.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use posthaste_core::stored::refused_letters::refused_letters_key;
use posthaste_ports::{Clock, ObjectStore, Ports, PutCondition};

use crate::deadlines::in_time;
use crate::unwritten::UnwrittenLetters;

/// Tells the monitor of letters that the bucket refused.
pub(crate) struct RefusalReporter<P: Ports> {
    /// The state bucket.
    pub(crate) state: Arc<P::Store>,
    pub(crate) clock: P::Clock,
    /// The name of this process in its reports.
    pub(crate) instance: String,
    pub(crate) unwritten: Arc<UnwrittenLetters>,
}

impl<P: Ports> RefusalReporter<P> {
    pub(crate) fn new(
        state: Arc<P::Store>,
        clock: P::Clock,
        instance: String,
        unwritten: Arc<UnwrittenLetters>,
    ) -> Self {
        Self {
            state,
            clock,
            instance,
            unwritten,
        }
    }

    /// Tells the monitor of refused letters. What cannot be told now is told with the next ones.
    pub(crate) async fn tell_of_refused(&self, deadline: Duration) {
        let Some(letters) = self.unwritten.untold_letters(self.clock.now()) else {
            return;
        };
        let key = refused_letters_key(&self.instance);
        let put = self.state.put(&key, letters.render(), PutCondition::Always);
        if let Err(error) = in_time(&self.clock, deadline, put).await {
            let error = &error as &dyn Error;
            tracing::warn!(error, "refused dead letters not reported to the monitor");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::letter::LoadedLetter;
    use crate::tests::{MemoryPorts, NOW, clock, deadline, finish, letter, port, stored};
    use posthaste_testkit::FaultPlan;
    use posthaste_testkit::memory::MemoryStore;

    #[test]
    fn refused_letters_are_reported_once() {
        let store = MemoryStore::like_s3(7);
        let reporter: RefusalReporter<MemoryPorts> = RefusalReporter {
            state: port(&store, &FaultPlan::none()),
            clock: clock(),
            instance: "one".to_owned(),
            unwritten: Arc::default(),
        };
        finish(reporter.tell_of_refused(deadline()));
        assert!(store.objects_under("").is_empty());
        let refused = LoadedLetter {
            letter: letter("a", vec![stored("payloads/a", 2)]),
            payloads: Vec::new(),
        };
        reporter.unwritten.note_refused(&[refused], NOW);
        finish(reporter.tell_of_refused(deadline()));
        assert_eq!(store.keys(""), [refused_letters_key("one")]);
        assert_eq!(reporter.unwritten.untold_letters(NOW), None);
    }
}
