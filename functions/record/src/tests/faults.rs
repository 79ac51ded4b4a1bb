//! A fault at every effect, and a kill at every effect: no record is lost, and readers show each
//! once.

use posthaste_testkit::CallFault;
use posthaste_testkit::faulty::at_every_effect;

use super::*;

/// Longer than a lease.
const LAPSE: Duration = Duration::from_secs(151);

#[tokio::test]
async fn faults_while_writing_or_merging_lose_no_record() {
    at_every_effect(async |plan, place| {
        let kit = Kit::with(plan);
        let all = records(0..40);
        for (n, some) in all.chunks(10).enumerate() {
            kit.handle(&format!("{n}"), some).await;
        }
        kit.close_hour();
        for _ in 0..3 {
            drop(kit.record.merge().await);
            kit.clock.advance(LAPSE);
        }
        plan.switch(false);
        assert_eq!(
            (kit.ids().await, kit.files()),
            (ids_of(&all), [1, 0]),
            "{place}"
        );
    })
    .await;
}

#[tokio::test]
async fn kills_during_a_merge_lose_no_record() {
    for fault in [CallFault::HangBefore, CallFault::HangAfter] {
        for number in 0.. {
            let plan = FaultPlan::nth(number, fault.clone());
            let mut kit = Kit::with(&plan);
            let all = records(0..40);
            all.chunks(10).for_each(|some| drop(kit.put_fresh(7, some)));
            kit.close_hour();
            let is_hit = async {
                while plan.faults() == 0 {
                    tokio::task::yield_now().await;
                }
            };
            let ended = tokio::select! {
                _ = kit.record.merge() => true,
                () = is_hit => false,
            };
            assert_eq!(kit.ids().await, ids_of(&all), "{fault:?} at {number}");
            if ended {
                break;
            }
            kit.clock.advance(LAPSE);
            kit.start_again();
            kit.record.merge().await.unwrap();
            assert_eq!(
                (kit.ids().await, kit.files()),
                (ids_of(&all), [1, 0]),
                "{fault:?} at {number}"
            );
        }
    }
}
