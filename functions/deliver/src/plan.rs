//! Planning: which events travel together in a request, and the order in which requests begin.

use std::sync::Arc;

use indexmap::IndexMap;
use posthaste_core::attempt::{DrawnJitter, PackingLimits};
use posthaste_core::model::{
    Delivery, EventMarks, EventSchema, Hops, Identity, Subscription, SubscriptionName, TopicName,
};
use posthaste_services::catch_panic::catch_panic_now;

use crate::invocation::{DeliveryJob, EntryRef};

/// A problem event travels alone.
const ALONE: PackingLimits = PackingLimits {
    items_max: 1,
    bytes_preferred: usize::MAX,
};

/// A request to be made: events of one subscription and of one kind.
#[derive(Debug)]
pub(crate) struct RequestPlan {
    pub(crate) subscription: Arc<Subscription>,
    pub(crate) kind: RequestKind,
    /// The draw that the requests of one group share.
    pub(crate) jitter: DrawnJitter,
    /// Whether one of its events was tried or waited before: then its endpoint may be failing.
    pub(crate) has_waited: bool,
    pub(crate) entries: Vec<EntryRef>,
}

/// The properties that the events of one request share besides their subscription. The headers show
/// them, or the outcome is judged by them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RequestKind {
    pub(crate) schema: EventSchema,
    /// The hops of the events. Events in a loop are refused for their hops, and their neighbours
    /// must not be refused with them.
    pub(crate) hops: Hops,
    pub(crate) attempts_before: u16,
    pub(crate) name_was_unknown: bool,
    /// Replayed events travel under a header of their own.
    pub(crate) replayed: bool,
    /// The event fails where others succeed: it travels alone, after the rest.
    pub(crate) is_problem: bool,
}

/// The events that may share requests.
#[derive(Debug, PartialEq, Eq, Hash)]
struct RequestGroup<'a> {
    topic: &'a TopicName,
    subscription: &'a SubscriptionName,
    /// The creation of the subscription that the events were accepted for.
    identity: Option<Identity>,
    kind: RequestKind,
}

/// Packs the events that still need an attempt into requests, across messages. The subscription
/// whose message came first is served first.
///
/// A jitter is drawn once for each group, so that events that are parked together are stored
/// together. A group that cannot be packed gets no request, and its messages end without a verdict.
pub(crate) fn plan_requests(
    jobs: &[DeliveryJob],
    is_problem: impl Fn(&Delivery, &Subscription) -> bool,
    mut jitter: impl FnMut() -> DrawnJitter,
) -> Vec<RequestPlan> {
    let mut groups: IndexMap<RequestGroup<'_>, Vec<EntryRef>> = IndexMap::new();
    for (index, job) in jobs.iter().enumerate() {
        let delivery = &job.delivery;
        let subscription = job.subscription.as_ref();
        let is_problem = delivery.attempts > 0
            && subscription.is_some_and(|subscription| is_problem(delivery, subscription));
        for (entry, event) in delivery
            .events
            .iter()
            .enumerate()
            .filter(|(entry, _)| job.is_open(*entry))
        {
            let group = RequestGroup {
                topic: &delivery.topic,
                subscription: &delivery.subscription,
                identity: delivery.identity,
                kind: RequestKind::for_delivery(delivery, &event.marks, is_problem),
            };
            groups
                .entry(group)
                .or_default()
                .push(EntryRef { job: index, entry });
        }
    }
    let packed = groups.into_iter().map(|(group, entries)| {
        catch_panic_now(|| pack_group(jobs, group.kind, &entries, jitter())).unwrap_or_default()
    });
    in_turn(packed.collect())
}

impl RequestKind {
    fn for_delivery(delivery: &Delivery, marks: &EventMarks, is_problem: bool) -> Self {
        Self {
            schema: delivery.schema,
            hops: delivery.hops,
            attempts_before: delivery.attempts,
            name_was_unknown: delivery.last.is_some_and(|last| last.name_was_unknown),
            replayed: marks.replayed,
            is_problem,
        }
    }
}

/// The requests of one group.
fn pack_group(
    jobs: &[DeliveryJob],
    kind: RequestKind,
    entries: &[EntryRef],
    jitter: DrawnJitter,
) -> Vec<RequestPlan> {
    let subscription = entries
        .first()
        .and_then(|at| jobs[at.job].subscription.as_ref());
    let Some(subscription) = subscription else {
        return Vec::new();
    };
    let pack = if kind.is_problem {
        ALONE
    } else {
        subscription.batching.request_limits()
    };
    let sizes = entries
        .iter()
        .map(|at| jobs[at.job].delivery.events[at.entry].payload.len());
    let runs = pack.cut_into_runs(sizes).into_iter();
    runs.map(|run| RequestPlan {
        subscription: Arc::clone(subscription),
        kind,
        jitter,
        has_waited: entries[run.clone()]
            .iter()
            .any(|at| jobs[at.job].delivery.has_waited()),
        entries: entries[run].to_vec(),
    })
    .collect()
}

/// The requests of all groups in turn: the first of each, then the second of each. Problem events
/// come after the rest.
fn in_turn(groups: Vec<Vec<RequestPlan>>) -> Vec<RequestPlan> {
    let mut turns: Vec<_> = groups
        .into_iter()
        .flat_map(|group| group.into_iter().enumerate())
        .collect();
    turns.sort_by_key(|(turn, request)| (request.kind.is_problem, *turn));
    turns.into_iter().map(|(_, request)| request).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use posthaste_core::attempt::EntryVerdict;
    use serde_json::json;

    use super::*;
    use crate::testing::{START, delivery, job, subscription, subscription_named};

    /// The events of each request, as `message.event`, where no event has a problem.
    fn planned(jobs: &[DeliveryJob]) -> Vec<Vec<String>> {
        shown(&plan_requests(jobs, |_, _| false, || DrawnJitter::new(0.0)))
    }

    fn shown(requests: &[RequestPlan]) -> Vec<Vec<String>> {
        let name = |at: &EntryRef| format!("{}.{}", at.job, at.entry);
        requests
            .iter()
            .map(|request| request.entries.iter().map(name).collect())
            .collect()
    }

    fn batching(events_max: usize) -> Arc<Subscription> {
        subscription(json!({ "batching": { "maxEventsPerBatch": events_max } }))
    }

    #[test]
    fn without_batching_each_event_travels_alone() {
        let own = subscription(json!({}));
        let jobs = [job(delivery(2), &own), job(delivery(1), &own)];
        assert_eq!(planned(&jobs), [["0.0"], ["0.1"], ["1.0"]]);
    }

    #[test]
    fn messages_of_one_subscription_share_batches() {
        let own = batching(3);
        let jobs = [job(delivery(2), &own), job(delivery(2), &own)];
        assert_eq!(planned(&jobs), [vec!["0.0", "0.1", "1.0"], vec!["1.1"]]);
    }

    #[test]
    fn events_of_different_kinds_travel_apart() {
        let own = batching(10);
        let tried = Delivery {
            attempts: 1,
            ..delivery(1)
        };
        let hops = Delivery {
            hops: Hops::default().next(),
            ..delivery(1)
        };
        let mut replayed = delivery(2);
        replayed.events[1].marks.replayed = true;
        let jobs = [delivery(1), tried, hops, replayed].map(|delivery| job(delivery, &own));
        assert_eq!(
            planned(&jobs),
            [vec!["0.0", "3.0"], vec!["1.0"], vec!["2.0"], vec!["3.1"]]
        );
    }

    #[test]
    fn events_that_keep_their_webhook_ids_share_batches() {
        let mut kept = delivery(3);
        for event in &mut kept.events[..2] {
            event.marks.webhook_id = Some("msg_a-0".to_owned());
        }
        assert_eq!(
            planned(&[job(kept, &batching(10))]),
            [["0.0", "0.1", "0.2"]]
        );
    }

    #[test]
    fn another_creation_of_the_subscription_travels_apart() {
        let own = batching(10);
        let id =
            posthaste_core::model::CreationId::new([1; posthaste_core::model::CREATION_ID_BYTES]);
        let newer = Delivery {
            identity: Some(Identity {
                topic: id,
                subscription: id,
            }),
            ..delivery(1)
        };
        let jobs = [job(delivery(1), &own), job(newer, &own)];
        assert_eq!(planned(&jobs), [["0.0"], ["1.0"]]);
    }

    #[test]
    fn subscriptions_take_turns_and_the_one_that_came_first_begins() {
        let a = subscription_named("a", json!({}));
        let b = subscription_named("b", json!({}));
        let of = |subscription: &Arc<Subscription>, events| {
            job(
                Delivery {
                    subscription: subscription.name.clone(),
                    ..delivery(events)
                },
                subscription,
            )
        };
        let jobs = [of(&b, 3), of(&a, 2)];
        assert_eq!(
            planned(&jobs),
            [["0.0"], ["1.0"], ["0.1"], ["1.1"], ["0.2"]]
        );
    }

    #[test]
    fn problem_events_travel_alone_after_the_rest() {
        let own = batching(10);
        let tried = || Delivery {
            attempts: 3,
            ..delivery(2)
        };
        let jobs = [job(tried(), &own), job(delivery(2), &own)];
        let requests = plan_requests(
            &jobs,
            |delivery, _| delivery.attempts == 3,
            || DrawnJitter::new(0.0),
        );
        assert_eq!(
            shown(&requests),
            [vec!["1.0", "1.1"], vec!["0.0"], vec!["0.1"]]
        );
        assert_eq!(
            requests
                .iter()
                .map(|it| it.kind.is_problem)
                .collect::<Vec<_>>(),
            [false, true, true]
        );
    }

    #[test]
    fn untried_events_are_not_checked_for_problems() {
        let jobs = [job(delivery(1), &batching(10))];
        let requests = plan_requests(&jobs, |_, _| panic!("asked"), || DrawnJitter::new(0.0));
        assert_eq!(requests.len(), 1);
    }

    #[test]
    fn judged_events_are_left_out() {
        let own = batching(10);
        let jobs = [job(delivery(3), &own)];
        jobs[0].note_verdict(1, EntryVerdict::Held);
        assert_eq!(planned(&jobs), [["0.0", "0.2"]]);
    }

    #[test]
    fn a_request_has_waited_if_one_of_its_events_has() {
        let own = batching(2);
        let later = Delivery {
            not_before: START + Duration::from_secs(1),
            ..delivery(1)
        };
        let jobs = [job(delivery(3), &own), job(later, &own)];
        let requests = plan_requests(&jobs, |_, _| false, || DrawnJitter::new(0.0));
        assert_eq!(
            requests.iter().map(|it| it.has_waited).collect::<Vec<_>>(),
            [false, true]
        );
    }

    #[test]
    fn a_jitter_is_drawn_once_for_each_group() {
        let own = subscription(json!({}));
        let drawn = Cell::new(0);
        let jobs = [
            job(delivery(3), &own),
            job(
                Delivery {
                    attempts: 1,
                    ..delivery(2)
                },
                &own,
            ),
        ];
        let draw = || {
            drawn.set(drawn.get() + 1);
            DrawnJitter::new(0.5)
        };
        assert_eq!(
            (plan_requests(&jobs, |_, _| false, draw).len(), drawn.get()),
            (5, 2)
        );
    }

    #[test]
    fn a_group_that_panics_costs_no_other_its_requests() {
        let own = subscription(json!({}));
        let first = Cell::new(true);
        let jobs = [
            job(delivery(1), &own),
            job(
                Delivery {
                    attempts: 1,
                    ..delivery(1)
                },
                &own,
            ),
        ];
        let draw = || {
            assert!(!first.replace(false), "as the test wants it");
            DrawnJitter::new(0.0)
        };
        assert_eq!(shown(&plan_requests(&jobs, |_, _| false, draw)), [["1.0"]]);
    }
}
