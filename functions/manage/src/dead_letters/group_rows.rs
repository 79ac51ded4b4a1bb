//! The groups of dead letters while they are counted, and as rows.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use posthaste_core::api::{
    IsoTimestamp, LetterGroupPage, LetterGroupView, LetterStatusCount, ReplayFailure,
};
use posthaste_core::model::{DeadLetterReason, SubscriptionName, Timestamp};
use posthaste_core::stored::{ResolvedLetters, TopicRecord};

use super::tally::LetterTally;
use super::walk::DatedObject;
use crate::answer::ApiError;

/// Most statuses that a group shows.
const STATUSES_MAX: usize = 5;

/// A group: a subscription by its place among the owners, and a reason by its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct GroupKey {
    owner: usize,
    reason: Option<&'static str>,
}

/// The numbers of a group.
#[derive(Debug)]
struct GroupTotals {
    reason: Option<DeadLetterReason>,
    letters: u64,
    resolved: u64,
    newest_at: Timestamp,
    oldest_at: Timestamp,
    statuses: BTreeMap<u16, u64>,
}

/// The groups while they are counted.
pub(super) struct GroupBuilder {
    /// The prefixes of the subscriptions.
    prefixes: Vec<String>,
    include_resolved: bool,
    groups: BTreeMap<GroupKey, GroupTotals>,
    failures: Vec<ReplayFailure>,
}

/// The records of topics by their folders; `None` of one that is gone.
pub(super) struct ShownNames(pub(super) BTreeMap<String, Result<Option<TopicRecord>, ApiError>>);

impl GroupBuilder {
    pub(super) fn new(prefixes: Vec<String>, include_resolved: bool) -> Self {
        Self {
            prefixes,
            include_resolved,
            groups: BTreeMap::new(),
            failures: Vec::new(),
        }
    }

    /// The number of groups.
    pub(super) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Counts the letters of an object.
    pub(super) fn add_letters(
        &mut self,
        object: &DatedObject,
        letters: &[LetterTally],
        resolved: &ResolvedLetters,
    ) {
        for (index, letter) in letters.iter().enumerate() {
            let is_resolved = resolved.is_resolved(index);
            if is_resolved && !self.include_resolved {
                continue;
            }
            let key = GroupKey {
                owner: object.owner,
                reason: letter.reason.map(DeadLetterReason::as_str),
            };
            let group = self.groups.entry(key).or_insert_with(|| GroupTotals {
                reason: letter.reason,
                letters: 0,
                resolved: 0,
                newest_at: object.written_at,
                oldest_at: object.written_at,
                statuses: BTreeMap::new(),
            });
            group.letters += 1;
            group.resolved += u64::from(is_resolved);
            group.newest_at = group.newest_at.max(object.written_at);
            group.oldest_at = group.oldest_at.min(object.written_at);
            if let Some(status) = letter.status {
                *group.statuses.entry(status).or_default() += 1;
            }
        }
    }

    /// Notes an object that cannot be read, while there is room.
    pub(super) fn add_failure(&mut self, failure: ReplayFailure) {
        failure.show_in(&mut self.failures);
    }

    /// The folders of the topics that have groups.
    pub(super) fn topics(&self) -> BTreeSet<String> {
        let owners = self.groups.keys().map(|key| &self.prefixes[key.owner]);
        owners
            .map(|prefix| split_owner(prefix).0.to_owned())
            .collect()
    }

    /// The groups as rows, the newest first.
    pub(super) fn into_page(self, names: &ShownNames) -> LetterGroupPage {
        let Self {
            prefixes,
            groups,
            failures,
            ..
        } = self;
        let mut rows: Vec<_> = groups
            .into_iter()
            .map(|(key, totals)| totals.into_view(&prefixes[key.owner], names))
            .collect();
        // Stable: of one time, those of the same subscription stand together.
        rows.sort_by_key(|row| Reverse(row.newest_at.0));
        LetterGroupPage {
            groups: rows,
            failures,
            ..LetterGroupPage::default()
        }
    }
}

impl GroupTotals {
    fn into_view(self, prefix: &str, names: &ShownNames) -> LetterGroupView {
        let (topic, subscription) = split_owner(prefix);
        let mut statuses: Vec<_> = self
            .statuses
            .into_iter()
            .map(|(status, letters)| LetterStatusCount { status, letters })
            .collect();
        statuses.sort_by_key(|it| Reverse(it.letters));
        statuses.truncate(STATUSES_MAX);
        let mut view = LetterGroupView {
            topic: topic.to_owned(),
            subscription: subscription.to_owned(),
            reason: self.reason,
            letters: self.letters,
            resolved: self.resolved,
            newest_at: IsoTimestamp(self.newest_at),
            oldest_at: IsoTimestamp(self.oldest_at),
            statuses,
            owner_deleted: false,
        };
        names.write_names(&mut view);
        view
    }
}

impl ShownNames {
    /// Writes the names as they were created, where the topic and the subscription still exist.
    fn write_names(&self, view: &mut LetterGroupView) {
        let record = match self.0.get(&view.topic) {
            Some(Ok(Some(record))) => record,
            Some(Ok(None)) => {
                view.owner_deleted = true;
                return;
            }
            // A topic that is damaged is named as in the key.
            Some(Err(_)) | None => return,
        };
        view.topic = record.name.to_string();
        let name = SubscriptionName::parse(&view.subscription).ok();
        match name.and_then(|name| record.settings.find_subscription(&name)) {
            Some((name, _)) => view.subscription = name.to_string(),
            None => view.owner_deleted = true,
        }
    }
}

/// The folders of the topic and of the subscription in a prefix.
fn split_owner(prefix: &str) -> (&str, &str) {
    let owner = prefix.trim_end_matches('/');
    owner.split_once('/').unwrap_or((owner, ""))
}
