//! Held deliveries: a run looks at every folder once, and goes on with those that may send. It
//! works in passes: in each pass every folder in turn sends some deliveries, then there is a pause,
//! so that a backlog neither fills the queue nor keeps one subscription's deliveries from
//! another's. Half of the room in a pass is for what an operator has forced. The next run finds
//! what this one leaves.

mod folders;
mod passes;
mod permissions;
mod run;
mod turns;

use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::release::folder::rotate_folders;
use posthaste_core::release::speed::release_speed;
use posthaste_core::release::{OF_ONE_MAX, ReleaseAmount, ReleaseSpeed, RunAccount};
use posthaste_ports::{Clock, Ports};

use crate::ports::WakePorts;
use crate::run::WakeRun;
use run::HeldRun;

/// The time between two passes, in which deliver takes what the last one sent.
const PASS_PAUSE: Duration = Duration::from_secs(1);

/// Divisor of a pass's room that gives the part of forced deliveries, rounded up.
const FORCED_PART: usize = 2;

/// Releases what is held, in folders after the key `held_to`, and what is forced, as far as a run
/// may go. `has_moved` tells that parked deliveries were moved to an earlier minute, which a walk
/// may have left behind.
pub(crate) async fn release_held<'a, P: Ports>(
    run: WakeRun<'a, P>,
    held_to: Option<String>,
    has_moved: bool,
    account: &'a Mutex<RunAccount>,
) -> HeldRun<'a, P> {
    let mut held = HeldRun::new(run, held_to, account);
    if run
        .in_time(release_all(&mut held, has_moved))
        .await
        .is_none()
    {
        tracing::error!("held deliveries not released to the end in time, the next run goes on");
    }
    held
}

async fn release_all<P: Ports>(held: &mut HeldRun<'_, P>, has_moved: bool) {
    held.forced.load_requests(has_moved).await;
    held.folders = folders::find_next(held.run, &mut held.held_to).await;
    release_in_passes(held).await;
    held.forced.store_progress().await;
}

/// Releases in passes, while there is time and room, and the queue takes it. Under pressure what
/// has expired goes first, and no pass follows once the run's part was sent.
async fn release_in_passes<P: Ports>(held: &mut HeldRun<'_, P>) {
    let WakePorts {
        pressure, clock, ..
    } = held.run.ports;
    let mut has_begun = false;
    let mut has_slowed = false;
    while held.has_more() {
        if !held.run.may_begin() {
            return;
        }
        let state = pressure.state().await;
        let speed = release_speed(state.as_deref());
        if !std::mem::replace(&mut has_begun, true) {
            rotate_folders(
                &mut held.folders,
                speed.turn_in_minute(clock.now().minute_rounded_down()),
            );
        }
        let is_slowed = speed != ReleaseSpeed::Full && !std::mem::replace(&mut has_slowed, true);
        if is_slowed && !passes::release_expired(held).await {
            return;
        }
        let room = held.room_in_pass(speed, state.as_deref());
        if !run_pass(held, room).await {
            return;
        }
        if held.has_more()
            && (held.left_in_run().is_nothing() || !wait_for_next_pass(held.run).await)
        {
            return;
        }
    }
}

/// One pass. Half of its room is for what is forced; where there is one object for all, the two
/// take turns. Answers whether to go on.
async fn run_pass<P: Ports>(held: &mut HeldRun<'_, P>, room: ReleaseAmount) -> bool {
    if held.speed == ReleaseSpeed::OneObject
        && !ReleaseSpeed::forced_first(held.run.ports.clock.now().minute_rounded_down())
    {
        return passes::give_turns(held, room).await
            && release_forced(held, held.left_in_run()).await.is_some();
    }
    let is_alone = held.folders.is_empty();
    let part = if is_alone {
        room.deliveries
    } else {
        room.deliveries.div_ceil(FORCED_PART)
    };
    let part = ReleaseAmount {
        deliveries: part.min(OF_ONE_MAX),
        ..room
    };
    let Some(released) = release_forced(held, part).await else {
        return false;
    };
    passes::give_turns(held, room.minus(released)).await
}

/// Releases forced deliveries. Answers how much, or `None` if the queue does not take them.
async fn release_forced<P: Ports>(
    held: &mut HeldRun<'_, P>,
    max: ReleaseAmount,
) -> Option<ReleaseAmount> {
    let released = held.forced.release_up_to(max).await;
    held.count_released(released);
    (!released.is_refused).then_some(released.amount())
}

/// Waits for the next pass. Answers whether there is time for one.
async fn wait_for_next_pass<P: Ports>(run: WakeRun<'_, P>) -> bool {
    let clock = &run.ports.clock;
    if clock.monotonic() + PASS_PAUSE >= run.begin {
        return false;
    }
    clock.sleep(PASS_PAUSE).await;
    run.may_begin()
}

#[cfg(test)]
mod tests {
    use posthaste_core::pressure::{
        PressureSettings, PressureState, ResourceReadings, evaluate_pressure,
    };
    use posthaste_core::stored::parked::render_parked;
    use posthaste_core::stored::{PRESSURE_KEY, layout};
    use posthaste_ports::{OutgoingMessage, QueueSender};
    use posthaste_testkit::records::{subscription_name, topic_name};
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{Kit, messages, subscription};

    /// Holds deliveries of a subscription of `orders` in one object.
    fn hold(kit: &Kit, name: &str, deliveries: usize) {
        let expires_at = kit.clock.now() + Duration::from_hours(1);
        let key = layout::held_key(
            &topic_name("orders"),
            &subscription_name(name),
            expires_at,
            "x",
        );
        kit.store
            .write(&key, render_parked(&messages(name, deliveries)));
    }

    /// A run from the first folder: the deliveries that were sent, and the objects that are left
    /// for the next.
    async fn run(kit: &Kit) -> (usize, usize) {
        let account = Mutex::default();
        let held = release_held(kit.run(), None, false, &account).await;
        assert_eq!(held.sent, kit.queue.take_bodies().len());
        (held.sent, held.left)
    }

    #[tokio::test]
    async fn held_deliveries_go_as_the_subscription_state_allows() {
        let check = async |state: Option<&str>, expected: usize| {
            let kit = Kit::new();
            let status =
                |state| json!({ "status": { "state": state, "since": "1970-01-01T00:00:00Z" } });
            let subscriptions: serde_json::Map<String, Value> = state
                .into_iter()
                .map(|state| ("a".to_owned(), subscription(status(state))))
                .collect();
            kit.topic(json!({ "subscriptions": subscriptions }));
            hold(&kit, "a", 3);
            assert_eq!(run(&kit).await, (expected, 0), "{state:?}");
            assert_eq!(
                kit.store.keys(layout::HELD).is_empty(),
                expected > 0,
                "{state:?}"
            );
        };
        check(Some("Active"), 3).await;
        check(Some("Paused"), 0).await;
        // deliver dead-letters the deliveries of these two.
        check(Some("Disabled"), 3).await;
        check(None, 3).await;
    }

    /// The queue leaves a subscription out that waits for itself, so its own backlog counts here.
    #[tokio::test]
    async fn subscription_with_a_backlog_in_the_queue_keeps_its_held_ones() {
        let check = async |due: usize, expected: usize| {
            let kit = Kit::new();
            kit.topic(json!({ "subscriptions": { "a": subscription(json!({})) } }));
            let now = kit.clock.now();
            let settings = PressureSettings::default();
            let readings = ResourceReadings {
                visible: Some(0),
                ..ResourceReadings::default()
            };
            let (state, _) =
                evaluate_pressure(&PressureState::normal(now), &readings, &settings, now);
            let text = bytes::Bytes::from(state.render());
            kit.store.write(PRESSURE_KEY, text);
            hold(&kit, "a", 30);
            for _ in 0..due {
                let message = OutgoingMessage {
                    body: "{}".into(),
                    group: Some("orders.a".to_owned()),
                    delay: Duration::ZERO,
                };
                kit.queue.send_batch(vec![message]).await.unwrap();
            }
            let account = Mutex::default();
            let mut held = HeldRun::new(kit.run(), None, &account);
            held.folders = folders::find_next(held.run, &mut held.held_to).await;
            let state = kit.ports.pressure.state().await;
            let room = held.room_in_pass(ReleaseSpeed::Full, state.as_deref());
            assert!(passes::give_turns(&mut held, room).await);
            assert_eq!(held.sent, expected, "{due}");
        };
        check(0, 30).await;
        check(980, 20).await;
        check(1000, 1).await;
    }

    #[tokio::test]
    async fn a_process_that_is_about_to_end_releases_nothing() {
        let kit = Kit::new();
        hold(&kit, "a", 3);
        kit.stop();
        assert_eq!(run(&kit).await, (0, 0));
    }

    #[tokio::test]
    async fn a_queue_that_takes_nothing_ends_the_run() {
        let kit = Kit::refusing(|_| true);
        hold(&kit, "a", 1);
        assert_eq!(run(&kit).await, (0, 1));
        assert_eq!(kit.store.keys(layout::HELD).len(), 1);
    }
}
