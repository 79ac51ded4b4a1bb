//! The outcomes of replays that cannot change any more, kept in the process: a list is looked at again
//! and again.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use posthaste_core::api::{ReplayOutcomes, ReplayState, ReplayView};

/// Most replays whose outcomes are kept, some 200 bytes each.
const REPLAYS_MAX: usize = 1_000;

/// Outcomes by the ids of their replays.
#[derive(Debug, Default)]
pub(crate) struct FinalOutcomes(Mutex<BTreeMap<String, ReplayOutcomes>>);

impl FinalOutcomes {
    /// The outcomes of a replay, if they are known and final.
    pub(super) fn find(&self, id: &str) -> Option<ReplayOutcomes> {
        self.0.lock().get(id).cloned()
    }

    /// Keeps outcomes that cannot change any more: those of a replay that has ended, whose events have
    /// all ended. One that was cancelled may have queued more than its record says. Ids begin with a
    /// time, so that the oldest make room.
    pub(super) fn keep_if_final(&self, replay: &ReplayView, outcomes: &ReplayOutcomes) {
        let has_ended = matches!(replay.state, ReplayState::Done | ReplayState::Failed);
        if !has_ended || outcomes.waiting > 0 || outcomes.is_partial {
            return;
        }
        let mut known = self.0.lock();
        known.insert(replay.id.clone(), outcomes.clone());
        if known.len() > REPLAYS_MAX {
            known.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use posthaste_core::api::IsoTimestamp;
    use posthaste_core::model::Timestamp;
    use serde_json::json;

    use super::*;

    fn replay(id: &str, state: ReplayState) -> ReplayView {
        let view = json!({
            "id": id, "topic": "orders", "subscription": "billing", "state": "Done", "objects": 1,
            "found": 2, "queued": 2, "failed": 0, "createdAt": "2026-11-21T10:15:00Z",
            "updatedAt": "2026-11-21T10:15:00Z", "request": {},
        });
        ReplayView {
            state,
            ..serde_json::from_value(view).unwrap()
        }
    }

    fn outcomes(waiting: u64, is_partial: bool) -> ReplayOutcomes {
        ReplayOutcomes {
            delivered: 2 - waiting,
            failed_again: 0,
            waiting,
            complete_until: IsoTimestamp(Timestamp::EPOCH),
            is_partial,
        }
    }

    #[test]
    fn only_outcomes_that_cannot_change_are_kept() {
        let is_kept = |state, outcomes: &ReplayOutcomes| {
            let known = FinalOutcomes::default();
            known.keep_if_final(&replay("a", state), outcomes);
            known.find("a").is_some()
        };
        assert!(is_kept(ReplayState::Done, &outcomes(0, false)));
        assert!(!is_kept(ReplayState::Cancelled, &outcomes(0, false)));
        assert!(!is_kept(ReplayState::Running, &outcomes(0, false)));
        assert!(!is_kept(ReplayState::Done, &outcomes(1, false)));
        assert!(!is_kept(ReplayState::Done, &outcomes(0, true)));
    }

    #[test]
    fn oldest_replays_make_room() {
        let known = FinalOutcomes::default();
        for number in 0..=REPLAYS_MAX {
            let id = format!("{number:05}");
            known.keep_if_final(&replay(&id, ReplayState::Done), &outcomes(0, false));
        }
        assert_eq!(known.find("00000"), None);
        assert!(known.find("00001").is_some());
    }
}
