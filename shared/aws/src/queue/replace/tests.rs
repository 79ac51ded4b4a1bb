//! Replacements of many callers over a queue in memory, on a clock that is moved by hand.

use std::collections::BTreeMap;
use std::pin::pin;

use futures_util::FutureExt;
use posthaste_core::model::{SQS_BATCH_ENTRIES_MAX, SQS_MESSAGE_BYTES_MAX};
use proptest::collection::vec;
use proptest::prelude::*;

use super::super::coalesce::{LINGER, REQUESTS_AT_ONCE_MAX};
use super::*;
use world::{Answer, QueueRequest, World, deletes, deliveries};

mod world;

#[tokio::test]
async fn a_lone_replacement_waits_a_moment_then_sends_then_deletes() {
    let world = World::good();
    let mut work = pin!(world.replace(7));
    assert_eq!(work.as_mut().now_or_never(), None);
    world.settle().await;
    assert_eq!(world.asked(), []);
    world.clock.advance(LINGER);
    world.settle().await;
    assert_eq!(world.asked(), [deliveries(&["successor 7"])]);
    world.clock.advance(LINGER);
    world.settle().await;
    assert_eq!(
        world.asked(),
        [deliveries(&["successor 7"]), deletes(&["7"])]
    );
    assert_eq!(work.await, Ok(()));
}

#[tokio::test]
async fn a_full_request_goes_without_waiting() {
    let world = World::good();
    let results = join_all((0..10).map(|n| world.replace(n))).await;
    assert_eq!(results, [Ok(()); 10]);
    assert_eq!(
        (world.shape(), world.clock.monotonic()),
        (vec![10, 10], Duration::ZERO)
    );
}

#[tokio::test]
async fn an_outage_costs_a_fifth_of_a_request_per_attempt() {
    let world = World::good();
    assert_eq!(world.replace_all(64).await, [Ok(()); 64]);
    let mut shape = world.shape();
    shape.sort_unstable();
    assert_eq!(shape, [[4; 2].as_slice(), [10; 12].as_slice()].concat());
}

#[tokio::test]
async fn message_without_successor_is_deleted() {
    let world = World::good();
    assert_eq!(world.passing(world.replace_by(1, vec![])).await, Ok(()));
    assert_eq!(world.asked(), [deletes(&["1"])]);
}

#[tokio::test]
async fn successors_go_to_their_own_queues_and_all_before_the_delete() {
    let world = World::by(|before, asked| {
        assert_eq!(
            matches!(asked, QueueRequest::Delete(_)),
            before == 3,
            "{before}: {asked:?}"
        );
        Answer::Done
    });
    let names = [
        QueueName::Deliveries,
        QueueName::DeadLetters,
        QueueName::Redrive,
    ];
    let successors = names.map(|name| (name, name.to_string())).to_vec();
    assert_eq!(world.passing(world.replace_by(1, successors)).await, Ok(()));
    for name in names {
        assert!(
            world
                .asked()
                .contains(&QueueRequest::Send(name, vec![name.to_string()])),
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_request_holds_at_most_a_mebibyte() {
    let world = World::good();
    let half = "x".repeat(SQS_MESSAGE_BYTES_MAX / 2);
    let bodies = [
        half.clone(),
        half.clone(),
        half,
        "y".to_owned(),
        "x".repeat(SQS_MESSAGE_BYTES_MAX),
    ];
    let replacements = bodies.into_iter().enumerate();
    let replacements =
        replacements.map(|(n, body)| world.replace_by(n, vec![(QueueName::Deliveries, body)]));
    assert_eq!(world.passing(join_all(replacements)).await, [Ok(()); 5]);
    let sends = world
        .asked()
        .into_iter()
        .filter(|asked| matches!(asked, QueueRequest::Send(..)));
    let mut sends: Vec<_> = sends.map(|asked| asked.items().len()).collect();
    sends.sort_unstable();
    assert_eq!(sends, [1, 2, 2]);
}

#[tokio::test]
async fn successor_missing_in_the_response_is_sent_again() {
    let world = World::by(|before, _| {
        if before < 2 {
            Answer::Silent
        } else {
            Answer::Done
        }
    });
    assert_eq!(world.passing(world.replace(1)).await, Ok(()));
    let send = deliveries(&["successor 1"]);
    assert_eq!(
        world.asked(),
        [send.clone(), send.clone(), send, deletes(&["1"])]
    );
    // Two lingers of the first send and of the delete, and before each resend its wait and a
    // linger.
    assert_eq!(world.clock.monotonic(), 4 * LINGER + 3 * RESEND_WAIT);
}

/// A successor that no response names is an error after three sends, and nothing is deleted.
#[tokio::test]
async fn unconfirmed_successor_is_an_error_after_three_sends() {
    let world = World::by(|_, _| Answer::Silent);
    assert_eq!(world.passing(world.replace(1)).await, Err(ErrorKind::Other));
    assert_eq!(
        world.asked(),
        [const { None::<()> }; 3].map(|_| deliveries(&["successor 1"]))
    );
}

#[tokio::test]
async fn an_entry_that_fails_keeps_its_own_message_and_no_other() {
    let check = async |kind, sends| {
        let world = World::by(move |_, asked| match asked {
            QueueRequest::Send(_, bodies) => {
                let failed = bodies.iter().position(|body| body == "successor 1");
                Answer::Items(failed.map(|place| (place, kind)).into_iter().collect())
            }
            QueueRequest::Delete(_) => Answer::Done,
        });
        // A queue that is not there is no message that is gone.
        let expected = match kind {
            ErrorKind::NotFound => ErrorKind::Other,
            kind => kind,
        };
        assert_eq!(world.replace_all(3).await, [Ok(()), Err(expected), Ok(())]);
        let asked = world.asked();
        assert!(asked.contains(&deletes(&["0", "2"])), "{asked:?}");
        let with_it = asked
            .iter()
            .filter(|asked| asked.items().contains(&"successor 1".to_owned()));
        assert_eq!(with_it.count(), sends, "{kind:?}");
    };
    check(ErrorKind::Invalid, 1).await;
    check(ErrorKind::Denied, 1).await;
    check(ErrorKind::NotFound, 1).await;
    check(ErrorKind::Other, 3).await;
    check(ErrorKind::TimedOut, 3).await;
    check(ErrorKind::Throttled { retry_after: None }, 3).await;
}

#[tokio::test]
async fn failed_request_keeps_every_message_and_is_not_repeated() {
    for kind in [
        ErrorKind::TimedOut,
        ErrorKind::Throttled { retry_after: None },
        ErrorKind::Denied,
    ] {
        let world = World::by(move |_, _| Answer::Whole(kind));
        assert_eq!(world.replace_all(10).await, [Err(kind); 10]);
        assert_eq!(world.shape(), [10], "{kind:?}");
    }
}

/// A request that is refused whole is repeated item by item, so that only the offender fails.
#[tokio::test]
async fn refused_request_is_split_so_that_only_the_offender_fails() {
    let world = World::by(|_, asked| {
        let is_refused = asked
            .items()
            .iter()
            .any(|item| item == "successor 1" || item == "2");
        if is_refused {
            Answer::Whole(ErrorKind::Invalid)
        } else {
            Answer::Done
        }
    });
    // The successor of 1 is not sent; 2 is not deleted, which is left to the mapping.
    assert_eq!(
        world.replace_all(4).await,
        [Ok(()), Err(ErrorKind::Invalid), Ok(()), Ok(())]
    );
    assert_eq!(world.shape(), [4, 1, 1, 1, 1, 3, 1, 1, 1]);
}

#[tokio::test]
async fn a_delete_that_fails_is_left_to_the_mapping() {
    for answer in [
        || Answer::Silent,
        || Answer::Whole(ErrorKind::TimedOut),
        || Answer::Panic,
    ] {
        let world = World::by(move |_, asked| match asked {
            QueueRequest::Send(..) => Answer::Done,
            QueueRequest::Delete(_) => answer(),
        });
        assert_eq!(world.passing(world.replace(1)).await, Ok(()));
        assert_eq!(
            world.asked(),
            [deliveries(&["successor 1"]), deletes(&["1"])]
        );
    }
}

#[tokio::test]
async fn a_stale_receipt_is_told_to_its_caller_alone() {
    let world = World::by(|_, asked| match asked {
        QueueRequest::Send(..) => Answer::Done,
        QueueRequest::Delete(_) => Answer::Items(vec![(1, ErrorKind::NotFound)]),
    });
    assert_eq!(
        world.replace_all(3).await,
        [Ok(()), Err(ErrorKind::NotFound), Ok(())]
    );
}

/// A caller that is dropped leaves a whole replacement, and its neighbours alone.
#[tokio::test]
async fn dropped_caller_leaves_its_replacement_and_neighbours_whole() {
    for moments in 0..3 {
        let world = World::good();
        let mut dropped = Box::pin(world.replace(0));
        assert_eq!(dropped.as_mut().now_or_never(), None);
        let mut kept = Box::pin(world.replace(1));
        assert_eq!(kept.as_mut().now_or_never(), None);
        for _ in 0..moments {
            world.settle().await;
            world.clock.advance(LINGER);
        }
        drop(dropped);
        assert_eq!(world.passing(kept).await, Ok(()));
        assert_eq!(
            world.asked(),
            [
                deliveries(&["successor 0", "successor 1"]),
                deletes(&["0", "1"])
            ]
        );
    }
}

#[tokio::test]
async fn a_request_that_panics_is_an_error_and_the_next_one_goes_on() {
    let world = World::by(|before, _| {
        if before == 0 {
            Answer::Panic
        } else {
            Answer::Done
        }
    });
    let results = world.replace_all(10).await;
    // The fate of the items is unknown, so all are sent again.
    assert_eq!(
        (results, world.shape()),
        (vec![Ok(()); 10], vec![10, 10, 10])
    );
}

/// The requests at once are bounded, and items that come meanwhile go together.
#[tokio::test]
async fn requests_at_once_are_bounded_and_later_items_share_requests() {
    let world = World::shut();
    let count = 10 * REQUESTS_AT_ONCE_MAX + 7;
    let mut work = pin!(join_all((0..count).map(|n| world.replace(n))));
    assert_eq!(work.as_mut().now_or_never(), None);
    world.settle().await;
    world.clock.advance(LINGER);
    world.settle().await;
    assert_eq!(world.shape(), [10; REQUESTS_AT_ONCE_MAX]);
    world.gate.add_permits(1000);
    assert_eq!(world.passing(work).await, vec![Ok(()); count]);
    let sends = world
        .asked()
        .into_iter()
        .filter(|asked| matches!(asked, QueueRequest::Send(..)));
    assert_eq!(
        sends.map(|asked| asked.items().len()).collect::<Vec<_>>(),
        [[10; 8].as_slice(), &[7]].concat()
    );
}

#[tokio::test]
async fn a_request_that_hangs_holds_up_nobody_else() {
    let world = World::shut();
    let mut hanging = pin!(world.replace(0));
    assert_eq!(hanging.as_mut().now_or_never(), None);
    world.settle().await;
    world.clock.advance(LINGER);
    world.settle().await;
    let mut other = pin!(world.replace(1));
    assert_eq!(other.as_mut().now_or_never(), None);
    world.settle().await;
    world.clock.advance(LINGER);
    world.settle().await;
    assert_eq!(
        world.asked(),
        [deliveries(&["successor 0"]), deliveries(&["successor 1"])]
    );
}

proptest! {
    // Bodies of megabytes are moved about, in a build without optimisation.
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// In any sizes and at any moments, each successor is sent once, each message is deleted once
    /// and after it, and no request breaks a limit.
    #[test]
    fn everything_is_done_once_and_within_the_limits(
        replacements in vec((0_u64..100, vec(successor_bytes(), 0..4)), 0..40),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (asked, results) = runtime.block_on(replaced(&replacements));
        prop_assert!(results.iter().all(Result::is_ok));
        let mut sent = BTreeMap::<String, usize>::new();
        let mut deleted = 0;
        for asked in &asked {
            prop_assert!((1..=SQS_BATCH_ENTRIES_MAX).contains(&asked.items().len()));
            match asked {
                QueueRequest::Send(_, bodies) => {
                    prop_assert!(bodies.iter().map(String::len).sum::<usize>() <= SQS_MESSAGE_BYTES_MAX);
                    for body in bodies {
                        *sent.entry(body.trim_end().to_owned()).or_default() += 1;
                    }
                }
                QueueRequest::Delete(receipts) => {
                    for receipt in receipts {
                        let successors = replacements[receipt.parse::<usize>().unwrap()].1.len();
                        prop_assert_eq!(sent.get(receipt).copied().unwrap_or_default(), successors);
                        deleted += 1;
                    }
                }
            }
        }
        prop_assert_eq!(deleted, replacements.len());
    }
}

fn successor_bytes() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 1..100_usize, 1 => 1..SQS_MESSAGE_BYTES_MAX]
}

/// Replaces each message at its moment (ms) by successors of these sizes, whose texts begin with
/// its number.
async fn replaced(
    replacements: &[(u64, Vec<usize>)],
) -> (Vec<QueueRequest>, Vec<Result<(), ErrorKind>>) {
    let world = World::good();
    let one = async |(n, (moment, sizes)): (usize, &(u64, Vec<usize>))| {
        world.clock.sleep(Duration::from_millis(*moment)).await;
        let body = |size: &usize| {
            let number = n.to_string();
            let padding = " ".repeat(size.saturating_sub(number.len()));
            (QueueName::Deliveries, number + &padding)
        };
        world.replace_by(n, sizes.iter().map(body).collect()).await
    };
    let results = world
        .passing(join_all(replacements.iter().enumerate().map(one)))
        .await;
    (world.asked(), results)
}
