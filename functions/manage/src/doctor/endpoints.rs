//! The endpoints of all subscriptions: which hosts there are, and whether deliveries reach them.
//!
//! A host is looked at once, however many subscriptions it serves. What is looked at is bounded, in
//! number, at once and in time, and whatever is left out is said.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use futures_util::{StreamExt, stream};
use posthaste_core::api::doctor::{CheckResult, CheckView, endpoint_check};
use posthaste_core::model::{Link, with_causes};
use posthaste_core::stored::{TopicRecord, layout};
use posthaste_ports::{Clock, InstallationExaminer, ObjectStore, Ports};
use posthaste_services::{list_objects, timeout_at};

use crate::manage::Manage;
use crate::shared_port::SharedPort;
use crate::topic_records::TopicRecords;

/// Longest time for all endpoints. A request has 25 s, and its answer has to be written.
const ENDPOINTS_TIME_MAX: Duration = Duration::from_secs(20);

/// Longest time for one endpoint: from the name to the end of the TLS handshake. Over the slowest
/// ways on Earth that takes about a second, and a lost packet one or three more (RFC 6298).
const LOOK_TIME_MAX: Duration = Duration::from_secs(5);

/// Most endpoints that are looked at at once. Where a process may open 1024 files, `serve` leaves
/// as many connections to requests of operators.
const LOOKS_AT_ONCE: usize = 8;

/// Most endpoints that are looked at: what fits into the time where each takes 160 ms.
const LOOKS_MAX: usize = 1000;

/// Topics that are read at once.
const READS_AT_ONCE: usize = 16;

/// The hosts that the subscriptions have for endpoints.
#[derive(Debug, Default)]
struct EndpointHosts {
    /// The subscriptions of each host, as `into_record/name`.
    users: BTreeMap<Link, Vec<String>>,
    /// The topics that could not be read, and why.
    unread: Vec<CheckView>,
    /// Whether the time was over before all topics were read.
    is_partial: bool,
}

/// The checks of endpoints.
pub(crate) struct EndpointChecks<P: Ports> {
    examiner: Option<Arc<dyn InstallationExaminer>>,
    state: SharedPort<P, P::Store>,
    clock: P::Clock,
    records: TopicRecords<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for EndpointChecks<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            examiner: manage.examiner.clone(),
            state: SharedPort::new(manage, |it| &it.state),
            clock: manage.clock.clone(),
            records: TopicRecords::from_ref(manage),
        }
    }
}

impl<P: Ports> EndpointChecks<P> {
    /// A check of each host, and of what was left out.
    pub(super) async fn check_endpoints(&self) -> Vec<CheckView> {
        let Some(examiner) = &self.examiner else {
            let found = "this installation has no way to look at endpoints";
            let advice = "`posthaste subscriptions test` makes a request to one";
            return vec![
                CheckView::passed("endpoint", "all", found)
                    .with_result(CheckResult::Unknown, advice),
            ];
        };
        let until = self.clock.monotonic() + ENDPOINTS_TIME_MAX;
        let EndpointHosts {
            users,
            unread,
            is_partial,
        } = self.collect_hosts(until).await;
        let count = users.len();
        let mut checks = self.check_hosts(examiner, users, until).await;
        let left_out = count.saturating_sub(checks.len());
        checks.extend(unread);
        checks.extend(left_out_check(left_out, is_partial));
        if checks.is_empty() {
            checks.push(CheckView::passed(
                "endpoint",
                "all",
                "there are no subscriptions",
            ));
        }
        checks
    }

    /// The hosts of all subscriptions, as far as they are read by `until`.
    async fn collect_hosts(&self, until: Duration) -> EndpointHosts {
        let mut found = EndpointHosts::default();
        let keys = list_objects(&*self.state, layout::TOPICS, None);
        let reads = keys.map(|listed| async move {
            match listed {
                Ok(object) => self.record_or_check(&object.key).await,
                Err(error) => Err(unread_check("the list of topics", with_causes(&error))),
            }
        });
        let mut reads = pin!(reads.buffered(READS_AT_ONCE));
        loop {
            match timeout_at(&self.clock, until, reads.next()).await {
                Some(Some(Ok(record))) => found.add_record(record),
                Some(Some(Err(check))) => found.unread.push(check),
                Some(None) => break,
                None => {
                    found.is_partial = true;
                    break;
                }
            }
        }
        found
    }

    /// The record of a topic, or the check that says why it cannot be read. `None` where the topic
    /// is gone.
    async fn record_or_check(&self, key: &str) -> Result<Option<TopicRecord>, CheckView> {
        let object = self.state.get(key).await;
        let object = object.map_err(|error| unread_topic_check(key, with_causes(&error)))?;
        match self.records.stored_topic(key, object) {
            Ok(place) => Ok(place.into_record().map(|(record, _)| record)),
            Err(problem) => Err(unread_topic_check(key, problem.detail.unwrap_or_default())),
        }
    }

    /// A check of each of these hosts that was looked at by `until`, in their order.
    async fn check_hosts(
        &self,
        examiner: &Arc<dyn InstallationExaminer>,
        users: BTreeMap<Link, Vec<String>>,
        until: Duration,
    ) -> Vec<CheckView> {
        let looks = users.into_iter().take(LOOKS_MAX).enumerate();
        let looks = looks.map(|(at, (link, users))| async move {
            let look = examiner.check_link(link.clone(), LOOK_TIME_MAX).await;
            (at, endpoint_check(&link, &users, &look, self.clock.now()))
        });
        let mut looks = pin!(stream::iter(looks).buffer_unordered(LOOKS_AT_ONCE));
        let mut checks = BTreeMap::new();
        while let Some(Some((at, check))) = timeout_at(&self.clock, until, looks.next()).await {
            checks.insert(at, check);
        }
        checks.into_values().collect()
    }
}

impl EndpointHosts {
    fn add_record(&mut self, record: Option<TopicRecord>) {
        let Some(record) = record else { return };
        for (name, settings) in &record.settings.subscriptions {
            let user = format!("{}/{name}", record.name);
            for link in settings.endpoint.links() {
                self.users.entry(link).or_default().push(user.clone());
            }
        }
    }
}

fn unread_topic_check(key: &str, found: String) -> CheckView {
    unread_check(&format!("topic {}", layout::topic_name(key)), found)
}

fn unread_check(of: &str, found: String) -> CheckView {
    CheckView::passed("endpoint", of, found).with_result(
        CheckResult::Unknown,
        "see the check `store`, and `posthaste topics`, which says what is wrong with a topic",
    )
}

/// The check that says how much was left out.
fn left_out_check(left_out: usize, is_partial: bool) -> Option<CheckView> {
    let secs = ENDPOINTS_TIME_MAX.as_secs();
    let found = match (left_out, is_partial) {
        (0, false) => return None,
        (0, true) => format!("not all topics were read within {secs} s"),
        (some, _) => format!("{some} or more endpoints were not looked at within {secs} s"),
    };
    let advice = "`posthaste subscriptions test` makes a request to one; `posthaste links` shows those that fail";
    Some(
        CheckView::passed("endpoint", "the others", found)
            .with_result(CheckResult::Unknown, advice),
    )
}
