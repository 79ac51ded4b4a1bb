use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker};

use posthaste_ports::{ErrorKind, ObjectStore, PutCondition};
use posthaste_testkit::PortOperation;
use posthaste_testkit::faulty::{CallFault, FaultPlan, PortEffect};
use serde_json::{Value, json};
use tokio::task::unconstrained;

use super::*;
use crate::deadlines::SETTLING_TIME;
use crate::limits::OUR_FAULT_WAIT;
use crate::testing::{START, TestPorts, World, secs, subscription};

const LAST_START: Option<Duration> = Some(secs(60));
/// Those of an invocation that goes on for long.
const DEADLINES: InvocationDeadlines = InvocationDeadlines {
    began: Duration::ZERO,
    end: secs(1000),
};
const KEY: &str = "slots/orders.billing.json";

fn slots(world: &World) -> SlotLimiter<TestPorts> {
    SlotLimiter::new(&world.state, world.clock.clone(), world.entropy.clone())
}

fn bounded(most: u32) -> Arc<Subscription> {
    let url = "https://billing.example.com/hooks";
    subscription(json!({ "endpoint": { "url": url, "maxConcurrentRequests": most } }))
}

fn calls(world: &World) -> (usize, usize) {
    let count = |operation| world.calls.count(operation);
    (count(PortOperation::Get), count(PortOperation::Put))
}

/// The slots that the stored state says to be held.
async fn held(world: &World) -> u64 {
    let Some(object) = world.memory.get(KEY).await.unwrap() else {
        return 0;
    };
    let state: Value = serde_json::from_slice(&object.bytes).unwrap();
    let leases = state["leases"].as_array().unwrap().iter();
    leases.map(|lease| lease["slots"].as_u64().unwrap()).sum()
}

/// Polls until nothing changes without time.
fn poll<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..20 {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return Poll::Ready(output);
        }
    }
    Poll::Pending
}

/// The time until which a request is postponed that waits for a second, and finds no slot.
fn turned_away(world: &World, slots: &SlotLimiter<TestPorts>, own: &Subscription) -> Timestamp {
    let mut permit = Box::pin(slots.wait_for_permit(own, Some(secs(300))));
    let until = world.clock.now() + secs(1);
    loop {
        match poll(permit.as_mut()) {
            Poll::Ready(Err(EntryVerdict::Postponed { not_before })) => return not_before,
            Poll::Ready(other) => panic!("{other:?}"),
            Poll::Pending => assert!(world.clock.now() < until),
        }
        world.clock.advance(Duration::from_millis(10));
    }
}

#[tokio::test]
async fn subscription_without_a_bound_never_touches_the_store() {
    let world = World::new();
    let own = subscription(json!({}));
    let slots = slots(&world);
    let permit = slots.wait_for_permit(&own, LAST_START).await.unwrap();
    slots.renew_lease(&own, &permit, LAST_START).await.unwrap();
    assert!(permit.open_request(&own, START + secs(100_000)).is_some());
    slots.give_back(&own, &DEADLINES).await;
    assert_eq!(world.calls.all().len(), 0);
}

#[tokio::test]
async fn requests_that_wait_together_share_one_lease() {
    let world = World::new();
    let own = bounded(5);
    let slots = slots(&world);
    let permits = (0..3).map(|_| slots.wait_for_permit(&own, LAST_START));
    let permits = futures_util::future::join_all(permits).await;
    assert!(permits.iter().all(Result::is_ok));
    assert_eq!((calls(&world), held(&world).await), ((1, 1), 3));
    drop(permits);
    slots.give_back(&own, &DEADLINES).await;
    assert_eq!((calls(&world), held(&world).await), ((1, 2), 0));
}

#[tokio::test]
async fn waiting_request_gets_the_slot_of_one_that_ended() {
    let world = World::new();
    let own = bounded(1);
    let slots = slots(&world);
    let first = slots.wait_for_permit(&own, LAST_START).await.unwrap();
    let mut second = Box::pin(slots.wait_for_permit(&own, LAST_START));
    assert!(poll(second.as_mut()).is_pending());
    let mut third = Box::pin(slots.wait_for_permit(&own, LAST_START));
    assert!(poll(third.as_mut()).is_pending());
    // Others wait for it, so nothing is given back.
    drop(first);
    slots.give_back(&own, &DEADLINES).await;
    assert!(poll(third.as_mut()).is_pending());
    let Poll::Ready(Ok(second)) = poll(second.as_mut()) else {
        panic!("expected a slot")
    };
    assert!(poll(third.as_mut()).is_pending());
    drop(second);
    assert!(matches!(poll(third.as_mut()), Poll::Ready(Ok(_))));
    assert_eq!(calls(&world), (1, 1));
}

#[tokio::test]
async fn request_that_waited_long_comes_back_behind_those_before_it() {
    let world = World::new();
    let own = bounded(1);
    let slots = slots(&world);
    let first = slots.wait_for_permit(&own, LAST_START).await.unwrap();
    let mut waiting: Vec<_> = (0..3)
        .map(|_| Box::pin(slots.wait_for_permit(&own, LAST_START)))
        .collect();
    for _ in 0..5 {
        assert!(waiting.iter_mut().all(|it| poll(it.as_mut()).is_pending()));
        world.clock.advance(secs(1));
    }
    let mut verdicts = Vec::new();
    for it in &mut waiting {
        let Poll::Ready(Err(verdict)) = poll(it.as_mut()) else {
            panic!("expected a verdict")
        };
        verdicts.push(verdict);
    }
    let at = |after| EntryVerdict::Postponed {
        not_before: START + secs(after),
    };
    assert_eq!(verdicts, [at(6), at(7), at(8)]);
    drop(first);
}

/// A worker that is dead may hold the slots, and the guess of the pace may be wrong.
#[tokio::test]
async fn request_without_a_slot_returns_within_about_two_minutes() {
    /// Of more than one line, at one request a second.
    const REQUESTS: usize = 150;
    let world = World::new();
    let own = bounded(1);
    let first = slots(&world);
    let second = slots(&world);
    let held = first.wait_for_permit(&own, LAST_START).await.unwrap();
    let mut waiting: Vec<_> = (0..REQUESTS)
        .map(|_| Box::pin(unconstrained(second.wait_for_permit(&own, Some(secs(300))))))
        .collect();
    let mut back: Vec<Timestamp> = Vec::new();
    while !waiting.is_empty() {
        waiting.retain_mut(|it| match poll(it.as_mut()) {
            Poll::Ready(Err(EntryVerdict::Postponed { not_before })) => {
                back.push(not_before);
                false
            }
            Poll::Ready(other) => panic!("{other:?}"),
            Poll::Pending => true,
        });
        world.clock.advance(Duration::from_millis(250));
    }
    let now = world.clock.now();
    assert!(now < START + secs(3), "{now:?}");
    // In whole seconds, as queues count.
    let latest = now + secs(2) + LINE_MAX;
    assert!(back.iter().all(|at| now < *at && *at <= latest), "{back:?}");
    // They do not come back all at once.
    let most = back
        .iter()
        .map(|at| back.iter().filter(|other| *other == at).count())
        .max();
    assert_eq!(most, Some(2));
    drop(held);
}

#[tokio::test]
async fn worker_without_a_slot_waits_for_a_second() {
    let world = World::new();
    let own = bounded(1);
    let first = slots(&world);
    let second = slots(&world);
    let held = first.wait_for_permit(&own, LAST_START).await.unwrap();
    assert_eq!(turned_away(&world, &second, &own), START + secs(2));
    let mut waiting = Box::pin(second.wait_for_permit(&own, LAST_START));
    assert!(poll(waiting.as_mut()).is_pending());
    drop(held);
    first.give_back(&own, &DEADLINES).await;
    world.clock.advance(Duration::from_millis(750));
    assert!(matches!(poll(waiting.as_mut()), Poll::Ready(Ok(_))));
}

#[tokio::test]
async fn request_whose_lease_is_over_begins_only_with_another() {
    let world = World::new();
    let own = bounded(1);
    let slots = slots(&world);
    let permit = slots.wait_for_permit(&own, LAST_START).await.unwrap();
    world.clock.advance(secs(20));
    let opened = permit.open_request(&own, world.clock.now());
    drop(opened.expect("it ends with the lease"));
    world.clock.advance(Duration::from_millis(1));
    assert!(permit.open_request(&own, world.clock.now()).is_none());
    slots.renew_lease(&own, &permit, LAST_START).await.unwrap();
    assert!(permit.open_request(&own, world.clock.now()).is_some());
}

#[tokio::test]
async fn request_whose_slot_went_to_another_worker_is_turned_away() {
    let world = World::new();
    let own = bounded(1);
    let slots = slots(&world);
    let permit = slots.wait_for_permit(&own, LAST_START).await.unwrap();
    world.clock.advance(secs(55));
    let others = self::slots(&world);
    let other = others.wait_for_permit(&own, Some(secs(115))).await.unwrap();
    let verdict = slots
        .renew_lease(&own, &permit, LAST_START)
        .await
        .unwrap_err();
    assert!(
        matches!(verdict, EntryVerdict::Postponed { .. }),
        "{verdict:?}"
    );
    assert!(permit.open_request(&own, world.clock.now()).is_none());
    assert!(other.open_request(&own, world.clock.now()).is_some());
}

/// The state store may be slower than the invocation lasts.
#[tokio::test]
async fn renewal_ends_at_the_last_start() {
    let is_read = |effect: PortEffect<'_>| effect.operation == PortOperation::Get;
    let plan = FaultPlan::nth_of(1, CallFault::HangBefore, is_read);
    let world = World::with(&plan, &FaultPlan::none());
    let own = bounded(1);
    let slots = slots(&world);
    let permit = slots.wait_for_permit(&own, LAST_START).await.unwrap();
    world.clock.advance(secs(21));
    let mut renewed = Box::pin(slots.renew_lease(&own, &permit, LAST_START));
    assert!(poll(renewed.as_mut()).is_pending());
    world.clock.advance(secs(39));
    let ended = poll(renewed.as_mut());
    assert_eq!(ended, Poll::Ready(Err(EntryVerdict::NotStarted)));
}

#[tokio::test]
async fn renewed_lease_of_fewer_slots_turns_the_other_requests_away() {
    let world = World::new();
    let own = bounded(5);
    let slots = slots(&world);
    let permits = (0..5).map(|_| slots.wait_for_permit(&own, LAST_START));
    let permits = futures_util::future::join_all(permits).await;
    let permits: Vec<_> = permits.into_iter().map(Result::unwrap).collect();
    world.clock.advance(secs(55));
    let others = self::slots(&world);
    let last_start = Some(secs(115));
    let taken = (0..4).map(|_| others.wait_for_permit(&own, last_start));
    let taken = futures_util::future::join_all(taken).await;
    assert!(taken.iter().all(Result::is_ok));
    slots
        .renew_lease(&own, &permits[0], last_start)
        .await
        .unwrap();
    let opened = permits[0].open_request(&own, world.clock.now());
    assert!(opened.is_some());
    for permit in &permits[1..] {
        let verdict = slots
            .renew_lease(&own, permit, last_start)
            .await
            .unwrap_err();
        let is_paced = matches!(verdict, EntryVerdict::Postponed { .. });
        assert!(is_paced, "{verdict:?}");
    }
    // Once it has ended, another one may begin.
    drop(opened);
    slots
        .renew_lease(&own, &permits[1], last_start)
        .await
        .unwrap();
}

#[tokio::test]
async fn waiting_request_gets_a_freed_slot_while_the_store_hangs() {
    let is_read = |effect: PortEffect<'_>| effect.operation == PortOperation::Get;
    let plan = FaultPlan::nth_of(2, CallFault::HangBefore, is_read);
    let world = World::with(&plan, &FaultPlan::none());
    let own = bounded(2);
    let others = slots(&world);
    let slots = slots(&world);
    // A worker that has all slots itself need not ask.
    let of_another = others.wait_for_permit(&own, LAST_START).await.unwrap();
    let first = slots.wait_for_permit(&own, LAST_START).await.unwrap();
    let mut second = Box::pin(slots.wait_for_permit(&own, LAST_START));
    assert!(poll(second.as_mut()).is_pending());
    world.clock.advance(secs(1));
    assert!(poll(second.as_mut()).is_pending());
    assert_eq!(plan.faults(), 1);
    drop(first);
    assert!(matches!(poll(second.as_mut()), Poll::Ready(Ok(_))));
    drop(of_another);
}

#[tokio::test]
async fn requests_of_another_bound_do_not_use_the_lease() {
    let world = World::new();
    let own = bounded(3);
    let lowered = bounded(1);
    let slots = slots(&world);
    let permits = (0..3).map(|_| slots.wait_for_permit(&own, LAST_START));
    let permits = futures_util::future::join_all(permits).await;
    let permits: Vec<_> = permits.into_iter().map(Result::unwrap).collect();
    let now = world.clock.now();
    let opened: Vec<_> = permits
        .iter()
        .map(|it| it.open_request(&own, now))
        .collect();
    assert!(opened.iter().all(Option::is_some));
    let mut next = Box::pin(slots.wait_for_permit(&lowered, LAST_START));
    assert!(poll(next.as_mut()).is_pending());
    drop((opened, permits));
    // Now it has a slot of the lowered bound.
    world.clock.advance(secs(1));
    let Poll::Ready(Ok(next)) = poll(next.as_mut()) else {
        panic!("expected a slot")
    };
    assert!(next.open_request(&lowered, world.clock.now()).is_some());
    assert!(next.open_request(&own, world.clock.now()).is_none());
}

#[tokio::test]
async fn unused_slots_go_back_a_second_later_while_others_are_open() {
    let world = World::new();
    let own = bounded(5);
    let slots = slots(&world);
    let permits = (0..5).map(|_| slots.wait_for_permit(&own, LAST_START));
    let mut permits = futures_util::future::join_all(permits).await;
    permits.truncate(1);
    let mut returned = Box::pin(slots.give_back(&own, &DEADLINES));
    assert!(poll(returned.as_mut()).is_pending());
    assert_eq!(held(&world).await, 5);
    world.clock.advance(secs(1));
    assert!(poll(returned.as_mut()).is_ready());
    assert_eq!(held(&world).await, 1);
    // The last one ends, and waits for nothing.
    permits.clear();
    slots.give_back(&own, &DEADLINES).await;
    assert_eq!(held(&world).await, 0);
}

#[tokio::test]
async fn slots_of_a_lease_whose_answer_was_lost_are_given_back() {
    // The second call: a read comes first.
    let plan = FaultPlan::nth(1, CallFault::After(ErrorKind::TimedOut));
    let world = World::with(&plan, &FaultPlan::none());
    let own = bounded(5);
    let slots = slots(&world);
    let verdict = slots.wait_for_permit(&own, LAST_START).await.unwrap_err();
    let not_before = START + OUR_FAULT_WAIT;
    assert_eq!(verdict, EntryVerdict::Postponed { not_before });
    assert_eq!(held(&world).await, 1);
    slots.give_back(&own, &DEADLINES).await;
    assert_eq!(held(&world).await, 0);
}

/// Fifty workers may write one state.
#[tokio::test]
async fn slots_are_given_back_however_often_others_are_ahead() {
    let puts = AtomicUsize::new(0);
    let plan = FaultPlan::by(move |effect| {
        let is_lost =
            effect.operation == PortOperation::Put && (1..=8).contains(&puts.fetch_add(1, Relaxed));
        is_lost.then_some(CallFault::Before(ErrorKind::PreconditionFailed))
    });
    let world = World::with(&plan, &FaultPlan::none());
    let own = bounded(5);
    let slots = slots(&world);
    drop(slots.wait_for_permit(&own, LAST_START).await.unwrap());
    let mut returned = Box::pin(slots.give_back(&own, &DEADLINES));
    while poll(returned.as_mut()).is_pending() {
        world.clock.advance_to_next().expect("it waits for a while");
    }
    assert_eq!((plan.faults(), held(&world).await), (8, 0));
}

/// Counts warnings.
struct Warnings(Arc<AtomicUsize>);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let is_warning = *event.metadata().level() == tracing::Level::WARN;
        self.0.fetch_add(usize::from(is_warning), Relaxed);
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn store_that_hangs_ends_giving_back_after_two_seconds() {
    let warnings = Arc::<AtomicUsize>::default();
    let _guard = tracing::subscriber::set_default(Warnings(Arc::clone(&warnings)));
    let plan = FaultPlan::nth(2, CallFault::HangBefore);
    let world = World::with(&plan, &FaultPlan::none());
    let own = bounded(5);
    let slots = slots(&world);
    drop(slots.wait_for_permit(&own, LAST_START).await.unwrap());
    let mut returned = Box::pin(slots.give_back(&own, &DEADLINES));
    assert!(poll(returned.as_mut()).is_pending());
    world.clock.advance(secs(2));
    assert!(poll(returned.as_mut()).is_ready());
    assert_eq!((held(&world).await, warnings.load(Relaxed)), (1, 1));
}

/// The writes that must be durable come after it.
#[tokio::test]
async fn after_the_last_attempt_slots_are_given_back_without_a_wait() {
    let world = World::new();
    let own = bounded(5);
    let slots = slots(&world);
    let permits = (0..5).map(|_| slots.wait_for_permit(&own, LAST_START));
    let mut permits = futures_util::future::join_all(permits).await;
    permits.truncate(1);
    let half = Duration::from_millis(500);
    let deadlines = InvocationDeadlines {
        began: Duration::ZERO,
        end: SETTLING_TIME + half,
    };
    let mut returned = Box::pin(slots.give_back(&own, &deadlines));
    assert!(poll(returned.as_mut()).is_pending());
    world.clock.advance(half);
    assert!(poll(returned.as_mut()).is_ready());
    assert_eq!(held(&world).await, 1);
}

#[tokio::test]
async fn giving_back_leaves_the_time_that_is_for_the_queue() {
    let plan = FaultPlan::nth(2, CallFault::HangBefore);
    let world = World::with(&plan, &FaultPlan::none());
    let own = bounded(5);
    let slots = slots(&world);
    drop(slots.wait_for_permit(&own, LAST_START).await.unwrap());
    world
        .clock
        .advance(DEADLINES.storing_end().saturating_sub(secs(1)));
    let mut returned = Box::pin(slots.give_back(&own, &DEADLINES));
    assert!(poll(returned.as_mut()).is_pending());
    world.clock.advance(secs(1));
    assert!(poll(returned.as_mut()).is_ready());
}

#[tokio::test]
async fn past_its_last_start_a_request_is_not_started() {
    let world = World::new();
    let own = bounded(1);
    world.clock.advance(secs(61));
    for last_start in [LAST_START, None] {
        let verdict = slots(&world)
            .wait_for_permit(&own, last_start)
            .await
            .unwrap_err();
        assert_eq!(verdict, EntryVerdict::NotStarted);
    }
    assert_eq!(world.calls.all().len(), 0);
}

/// Another request of the worker gives slots back before the answer to the lease comes: the stored
/// state may say fewer slots than the lease.
#[test]
fn lease_that_is_answered_after_a_return_does_not_count() {
    let limiter = Arc::new(SubscriptionSlots::new("a".to_owned()));
    let wanted = request_bound(&bounded(2)).unwrap();
    let nothing = KnownSlotState::new(None, START);
    let waiting = limiter.begin_wait();
    let ClaimedSlots::Lease(pending, _) = limiter.claim_slots(wanted, &nothing, START) else {
        panic!("expected a lease")
    };
    drop(waiting);
    let (_, write) = limiter.shrink_lease(&nothing, START).expect("a write");
    limiter.note_given_back(write);
    assert!(!limiter.has_unused());
    limiter.note_lease(pending);
    assert!(!limiter.can_serve(wanted, START));
    assert!(limiter.has_unused(), "the state is looked at again");
}

/// The put of a request that was dropped may still be under way, behind the one that gives back.
#[tokio::test]
async fn lease_that_is_still_under_way_loses_against_a_return() {
    let plan = FaultPlan::nth(1, CallFault::HangBefore);
    let world = World::with(&plan, &FaultPlan::none());
    let own = bounded(5);
    let slots = slots(&world);
    let mut dropped = Box::pin(slots.wait_for_permit(&own, LAST_START));
    assert!(poll(dropped.as_mut()).is_pending());
    drop(dropped);
    slots.give_back(&own, &DEADLINES).await;
    let late = world.memory.put(KEY, "{}".into(), PutCondition::IfAbsent);
    assert_eq!(late.await.unwrap_err().kind, ErrorKind::PreconditionFailed);
    // It does so once.
    let before = calls(&world);
    slots.give_back(&own, &DEADLINES).await;
    assert_eq!((calls(&world), held(&world).await), (before, 0));
}

#[test]
fn lease_that_another_worker_was_ahead_of_causes_no_write() {
    let limiter = Arc::new(SubscriptionSlots::new("a".to_owned()));
    let wanted = request_bound(&bounded(2)).unwrap();
    let nothing = KnownSlotState::new(None, START);
    let waiting = limiter.begin_wait();
    let ClaimedSlots::Lease(pending, _) = limiter.claim_slots(wanted, &nothing, START) else {
        panic!("expected a lease")
    };
    drop(waiting);
    limiter.note_write_ended(pending.write);
    assert_eq!(limiter.shrink_lease(&nothing, START), None);
    assert!(!limiter.has_unused());
}

#[tokio::test]
async fn damaged_state_counts_as_taken_until_it_is_written_anew() {
    let world = World::new();
    let own = bounded(1);
    let damaged = world.memory.put(KEY, "{".into(), PutCondition::Always);
    damaged.await.unwrap();
    let slots = slots(&world);
    turned_away(&world, &slots, &own);
    assert_eq!(held(&world).await, 1000);
    world.clock.advance(secs(84));
    assert!(slots.wait_for_permit(&own, Some(secs(145))).await.is_ok());
}
