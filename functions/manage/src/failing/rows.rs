//! The rows of what fails, their order, and a page of them. Pure.

mod subscription;

use std::collections::BTreeMap;

use posthaste_core::api::{FailingState, FailingTarget, FailingView, IsoTimestamp, LinkScope};
use posthaste_core::circuit::{DeliveryTarget, TargetCondition, TargetPhase};
use posthaste_core::model::{ArrivalSettings, SubscriptionName, Timestamp, TopicName};
use posthaste_core::stored::TopicRecord;

use super::known::{Candidates, KnownFailures};
use crate::paging::{PageRequest, encode_cursor};

/// Most rows of one link: an outage of one host must not hide that of another.
const ROWS_OF_LINK_MAX: usize = 5;

/// The data of which rows are made.
pub(super) struct RowSource<'a> {
    pub(super) known: &'a KnownFailures,
    pub(super) now: Timestamp,
    pub(super) settings: &'a ArrivalSettings,
    pub(super) notices: NoticesAddress<'a>,
}

/// The receivers of notices of failures.
pub(super) struct NoticesAddress<'a> {
    /// The topic that gets those of all topics.
    pub(super) of_all: Option<&'a TopicName>,
    /// Whether notices are sent at all.
    pub(super) are_sent: bool,
}

impl NoticesAddress<'_> {
    /// The topics that get the notices of a topic with this setting.
    fn topics(&self, own: Option<&TopicName>) -> Vec<TopicName> {
        if !self.are_sent {
            return Vec::new();
        }
        let is_own = |all: &TopicName| own.is_some_and(|own| own.folded() == all.folded());
        let of_all = self.of_all.filter(|all| !is_own(all));
        own.into_iter().chain(of_all).cloned().collect()
    }
}

/// A topic as it was read.
pub(super) enum LoadedTopic {
    Record {
        record: Box<TopicRecord>,
        /// Whether the delivery log has no records of it, by which what waits could be counted.
        is_unrecorded: bool,
    },
    /// There is no such topic, or not any more.
    Gone,
    /// The record of the topic is damaged.
    Unreadable,
}

/// The rows that an operator asks for.
pub(super) struct RowFilter {
    /// In lower case.
    name: Option<String>,
    state: Option<FailingState>,
}

impl RowFilter {
    /// The rows with this text in a name, in this state. An empty text is in every name.
    pub(super) fn new(name: Option<&str>, state: Option<FailingState>) -> Self {
        let name = name.map(str::trim).filter(|name| !name.is_empty());
        Self {
            name: name.map(str::to_lowercase),
            state,
        }
    }

    fn matches(&self, row: &FailingTarget) -> bool {
        let is_in_state = self.state.is_none_or(|state| state == row.state);
        is_in_state
            && self
                .name
                .as_deref()
                .is_none_or(|name| has_name_with(row, name))
    }
}

/// Whether the name of the link, of the topic or of the subscription has a text in it.
fn has_name_with(row: &FailingTarget, text: &str) -> bool {
    let topic = row.topic.as_ref().map(TopicName::as_str);
    let subscription = row.subscription.as_ref().map(SubscriptionName::as_str);
    [row.link.as_deref(), topic, subscription]
        .into_iter()
        .flatten()
        .any(|name| name.to_lowercase().contains(text))
}

/// A row at its place in the order.
struct PlacedRow {
    place: String,
    row: FailingTarget,
}

/// All rows, in their order.
pub(super) struct FailingRows(Vec<PlacedRow>);

/// Whether a text is the place of a row, as cursors have it.
pub(super) fn is_place(text: &str) -> bool {
    text.starts_with("0:") || text.starts_with("1:")
}

impl FailingRows {
    /// Collects the rows of all subscriptions that fail, and of links of which no subscription is
    /// known to.
    pub(super) fn collect(
        source: &RowSource<'_>,
        candidates: &Candidates,
        topics: &BTreeMap<String, LoadedTopic>,
        filter: &RowFilter,
    ) -> Self {
        let mut rows: Vec<_> = candidates
            .by_key
            .values()
            .filter_map(|candidate| {
                let topic = topics.get(&candidate.topic.folded());
                source.subscription_row(candidate, topic)
            })
            .collect();
        let alone: Vec<_> = source
            .known
            .conditions()
            .filter_map(|(target, condition)| match target {
                DeliveryTarget::Link(link) => Some((link.to_string(), condition)),
                DeliveryTarget::Subscription { .. } => None,
            })
            .filter(|(link, _)| !rows.iter().any(|row| is_failing_on(row, link)))
            .map(|(link, condition)| source.link_row(link, condition))
            .collect();
        rows.extend(alone);
        let mut placed: Vec<_> = rows
            .into_iter()
            .filter(|row| filter.matches(row))
            .map(|row| PlacedRow {
                place: place_of_row(&row),
                row,
            })
            .collect();
        placed.sort_by(|one, other| one.place.cmp(&other.place));
        Self(placed)
    }

    pub(super) fn count_all(&self) -> u64 {
        self.0.len() as u64
    }

    pub(super) fn count_recovering(&self) -> u64 {
        self.count_rows(|state| state == FailingState::Recovering)
    }

    pub(super) fn count_stopped(&self) -> u64 {
        self.count_rows(FailingState::is_stopped)
    }

    pub(super) fn count_unknown(&self) -> u64 {
        self.count_rows(|state| state == FailingState::Unknown)
    }

    fn count_rows(&self, is_counted: impl Fn(FailingState) -> bool) -> u64 {
        self.0.iter().filter(|it| is_counted(it.row.state)).count() as u64
    }

    /// One page of these rows, in a view that has the counts of all.
    pub(super) fn into_page(
        self,
        view: FailingView,
        filter: &RowFilter,
        page: &PageRequest,
    ) -> FailingView {
        let rows = if filter.name.is_none() {
            fold_links(self.0)
        } else {
            self.0
        };
        let mut rest = rows
            .into_iter()
            .skip_while(|it| page.after.as_ref().is_some_and(|after| it.place <= *after));
        let mut last = None;
        let mut failing = Vec::new();
        for placed in rest.by_ref().take(page.items) {
            last = Some(placed.place);
            failing.push(placed.row);
        }
        let has_more = rest.next().is_some();
        FailingView {
            failing,
            cursor: last.filter(|_| has_more).map(|place| encode_cursor(&place)),
            ..view
        }
    }
}

/// The place of a row: those that fail before those that are stopped, by time, then by name. No
/// count is in it, so that a row stays where it is while an operator reaches for its button.
fn place_of_row(row: &FailingTarget) -> String {
    let is_stopped = u8::from(row.state.is_stopped());
    let since = row.since.map_or(u64::MAX, |since| since.0.as_millis());
    let name = match (&row.topic, &row.subscription) {
        (Some(topic), Some(name)) => format!("{}.{}", topic.folded_text(), name.folded_text()),
        _ => row.link.clone().unwrap_or_default(),
    };
    format!("{is_stopped}:{since:020}:{name}")
}

/// Leaves the first rows of each link, of which the last says how many more there are.
fn fold_links(rows: Vec<PlacedRow>) -> Vec<PlacedRow> {
    let mut counts = BTreeMap::<(bool, String), usize>::new();
    let mut shown = Vec::<PlacedRow>::new();
    let mut lasts = BTreeMap::<(bool, String), usize>::new();
    for placed in rows {
        let Some(link) = placed.row.link.clone() else {
            shown.push(placed);
            continue;
        };
        let group = (placed.row.state.is_stopped(), link);
        let count = counts.entry(group.clone()).or_default();
        *count += 1;
        if *count <= ROWS_OF_LINK_MAX {
            lasts.insert(group, shown.len());
            shown.push(placed);
        } else if let Some(last) = lasts.get(&group) {
            shown[*last].row.others += 1;
        }
    }
    shown
}

/// Whether a row is of a subscription that fails on this link. One that may be stopped does not
/// tell of its link.
fn is_failing_on(row: &FailingTarget, link: &str) -> bool {
    let is_known = row.state != FailingState::Unknown;
    is_known && !row.state.is_stopped() && row.link.as_deref() == Some(link)
}

impl RowSource<'_> {
    /// The row of a whole link.
    fn link_row(&self, link: String, condition: &TargetCondition) -> FailingTarget {
        let state = match condition.phase {
            TargetPhase::Glitch if condition.is_pause() => FailingState::AskedToWait,
            TargetPhase::Glitch => FailingState::Failing,
            TargetPhase::Retry => FailingState::Down,
            TargetPhase::Recovering => FailingState::Recovering,
        };
        let incident = self.known.link_incident(&link);
        let notices_topics = self.notices.topics(None);
        FailingTarget {
            scope: LinkScope::Link,
            link: Some(link),
            topic: None,
            subscription: None,
            state,
            reason: None,
            since: Some(IsoTimestamp(condition.failing_since)),
            last_failure_at: None,
            last_outcome: Some(condition.last.outcome),
            last_http_status_code: condition.last.status,
            hour: None,
            waiting: None,
            missed: 0,
            next_attempt_at: condition.next_probe().map(IsoTimestamp),
            told: told_of(incident.map(|incident| incident.told), &notices_topics),
            notices_topics,
            others: 0,
        }
    }
}

/// Whether the notice of an incident was sent to these topics.
fn told_of(incident: Option<bool>, topics: &[TopicName]) -> Option<bool> {
    incident.filter(|_| !topics.is_empty())
}
