//! The overview of what fails: the circuit, the health of subscriptions and what waits, joined.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use futures_util::future::join3;
use futures_util::{StreamExt, stream};
use posthaste_core::api::problem::ProblemKind;
use posthaste_core::api::{FailingPart, FailingView, IsoTimestamp};
use posthaste_core::model::TopicName;
use posthaste_ports::{Clock, Ports};
use posthaste_services::{AllWaiting, LinkHealth, timeout};

use super::known::{Candidates, KnownFailures};
use super::rows::{FailingRows, LoadedTopic, NoticesAddress, RowFilter, RowSource};
use crate::answer::{ApiError, unavailable_problem};
use crate::log_coverage::LogCoverage;
use crate::manage::Manage;
use crate::paging::PageRequest;
use crate::shared_port::SharedPort;
use crate::topic_records::TopicRecords;
use crate::waiting_counts::WaitingCounts;

/// Longest time for each part: a page that an operator looks at in an outage rather says what is
/// missing than that it waits.
const PART_TIME_MAX: Duration = Duration::from_secs(2);

/// Longest time for listing what waits: clearly less than a part may take, so that what was counted
/// until then is shown.
const LISTING_TIME: Duration = Duration::from_secs(1);
const _: () = assert!(LISTING_TIME.as_millis() * 2 <= PART_TIME_MAX.as_millis());

/// Topics that are read at once.
const READS_AT_ONCE: usize = 16;

/// The overview of what fails.
pub(crate) struct FailingOverview<P: Ports> {
    links: SharedPort<P, LinkHealth<P::Store, P::Clock>>,
    clock: P::Clock,
    waiting: WaitingCounts<P>,
    records: TopicRecords<P>,
    coverage: LogCoverage<P>,
    notices_topic: Option<TopicName>,
}

/// Records of topics, by their folded names.
type LoadedTopics = BTreeMap<String, LoadedTopic>;

impl<P: Ports> FromRef<Arc<Manage<P>>> for FailingOverview<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            links: SharedPort::new(manage, |it| &it.links),
            clock: manage.clock.clone(),
            waiting: WaitingCounts::from_ref(manage),
            records: TopicRecords::from_ref(manage),
            coverage: LogCoverage::from_ref(manage),
            notices_topic: manage.settings.notices_topic.clone(),
        }
    }
}

impl<P: Ports> FailingOverview<P> {
    /// One page of what fails. It is refused only where neither the circuit nor the health of
    /// subscriptions is known, so that nothing could be said.
    pub(super) async fn show_page(
        &self,
        filter: &RowFilter,
        page: PageRequest,
    ) -> Result<FailingView, ApiError> {
        let counts = self.waiting.waiting_events();
        let (shards, book, waiting) = join3(
            self.read_in_time(FailingPart::Circuit, self.links.read_all()),
            self.read_in_time(FailingPart::Health, self.links.arrivals().current_book()),
            self.read_in_time(FailingPart::Waiting, counts.count_all_within(LISTING_TIME)),
        )
        .await;
        if shards.is_none() && book.is_none() {
            return Err(unavailable_problem().into());
        }
        let mut left_out = Vec::new();
        let parts = [
            (FailingPart::Circuit, shards.is_some()),
            (FailingPart::Health, book.is_some()),
            (FailingPart::Waiting, waiting.is_some()),
        ];
        for (part, is_read) in parts {
            if !is_read {
                left_out.push(part);
            }
        }
        let known = KnownFailures {
            shards,
            book: book.unwrap_or_default(),
            waiting,
        };
        let now = self.clock.now();
        let health = self.links.settings();
        let settings = &health.arrivals;
        let candidates = known.candidates(now, settings);
        let (topics, is_whole) = self.load_topics(&candidates).await;
        if !is_whole {
            left_out.push(FailingPart::Topics);
        }
        let source = RowSource {
            known: &known,
            now,
            settings,
            notices: NoticesAddress {
                of_all: self.notices_topic.as_ref(),
                are_sent: !health.suppress_state_changes,
            },
        };
        let rows = FailingRows::collect(&source, &candidates, &topics, filter);
        let total = known.waiting.as_ref().map(AllWaiting::total);
        let view = FailingView {
            failing: Vec::new(),
            total: rows.count_all(),
            recovering: rows.count_recovering(),
            stopped: rows.count_stopped(),
            unknown: rows.count_unknown(),
            waiting: total.map(|total| Box::new(total.waiting_view(None))),
            counted_at: IsoTimestamp(now),
            left_out,
            truncated: candidates.is_cut || known.is_count_cut(),
            cursor: None,
        };
        Ok(rows.into_page(view, filter, &page))
    }

    /// The topics of these subscriptions, and whether all could be read in time. A record that is
    /// damaged has been read.
    async fn load_topics(&self, candidates: &Candidates) -> (LoadedTopics, bool) {
        let names = topics_to_read(candidates);
        let wanted = names.len();
        let mut reads = stream::iter(names)
            .map(|(key, topic)| async move { (key, self.load_topic(&topic).await) })
            .buffer_unordered(READS_AT_ONCE);
        let mut topics = LoadedTopics::new();
        let read_all = async {
            while let Some((key, loaded)) = reads.next().await {
                if let Some(loaded) = loaded {
                    topics.insert(key, loaded);
                }
            }
        };
        let _in_time = timeout(&self.clock, PART_TIME_MAX, read_all).await;
        let is_whole = topics.len() == wanted;
        (topics, is_whole)
    }

    /// A topic; `None` if the store does not return it now.
    async fn load_topic(&self, topic: &TopicName) -> Option<LoadedTopic> {
        match self.records.load_record(topic).await {
            Ok(Some(record)) => {
                let is_unrecorded = self.coverage.is_off(Some(&record));
                Some(LoadedTopic::Record {
                    record: Box::new(record),
                    is_unrecorded,
                })
            }
            Ok(None) => Some(LoadedTopic::Gone),
            // It was logged.
            Err(error) if error.0.kind == ProblemKind::Internal => Some(LoadedTopic::Unreadable),
            Err(_) => None,
        }
    }

    /// The output of a part; `None` if it fails or takes too long, which is logged.
    async fn read_in_time<T, E: Error + Send + Sync + 'static>(
        &self,
        part: FailingPart,
        read: impl Future<Output = Result<T, E>>,
    ) -> Option<T> {
        match timeout(&self.clock, PART_TIME_MAX, read).await {
            Some(Ok(output)) => Some(output),
            Some(Err(error)) => {
                let error = &error as &dyn Error;
                tracing::warn!(%part, error, "left out of an answer about what fails");
                None
            }
            None => {
                tracing::warn!(%part, "left out of an answer about what fails: it took too long");
                None
            }
        }
    }
}

/// The topics of these subscriptions, by their folded names: those of rows that are certain first,
/// as there may be no time for all.
fn topics_to_read(candidates: &Candidates) -> Vec<(String, TopicName)> {
    let all = candidates.by_key.values();
    let (certain, others): (Vec<_>, Vec<_>) = all.partition(|candidate| candidate.is_certain);
    let mut seen = BTreeSet::new();
    let mut names = Vec::new();
    for candidate in certain.into_iter().chain(others) {
        let folded = candidate.topic.folded();
        if seen.insert(folded.clone()) {
            names.push((folded, candidate.topic.clone()));
        }
    }
    names
}
