//! The object store: conditional puts whose answers are lost, buckets that are closed or gone, and
//! long listings.

use bytes::Bytes;
use posthaste_ports::{ETag, ErrorKind, ObjectStore, PortError, PutCondition, RevalidatedObject};
use posthaste_tests_aws::double::{Access, Action, Double, Fault, Refusal};

use super::{ATTEMPTS, World, kind};
use crate::clients::clients;

const PUT: Action = Action::PutObject;

const CONFLICT: Fault = Fault::Refused(Refusal::Conflict);

async fn put(
    world: &World,
    bytes: &'static str,
    condition: PutCondition,
) -> Result<ETag, PortError> {
    world.store.put("k", Bytes::from(bytes), condition).await
}

fn object(double: &Double) -> Option<Bytes> {
    double.object("state", "k")
}

#[tokio::test]
async fn a_conflict_is_tried_again() {
    let world = World::new().await;
    world.double.fail_next(PUT, CONFLICT);
    world.double.fail_next(PUT, CONFLICT);
    put(&world, "ours", PutCondition::IfAbsent).await.unwrap();
    assert_eq!(world.double.journal().count(PUT), 3);
    assert_eq!(object(&world.double), Some(Bytes::from("ours")));
}

#[tokio::test]
async fn conflicts_without_end_are_an_error() {
    let world = World::new().await;
    world.double.fail_always(PUT, CONFLICT);
    assert_eq!(
        kind(put(&world, "ours", PutCondition::IfAbsent).await),
        Some(ErrorKind::Other)
    );
    let attempts = world.double.journal().count(PUT);
    assert!((2..=10).contains(&attempts), "{attempts} attempts");
}

#[tokio::test]
async fn after_a_conflict_somebody_else_may_have_won() {
    let world = World::new().await;
    world.double.put("state", "k", "theirs");
    world.double.fail_next(PUT, CONFLICT);
    let lost = put(&world, "ours", PutCondition::IfAbsent).await;
    assert_eq!(kind(lost), Some(ErrorKind::PreconditionFailed));
    assert_eq!(object(&world.double), Some(Bytes::from("theirs")));
}

#[tokio::test]
async fn a_put_whose_answer_was_lost_knows_its_own_write() {
    let world = World::new().await;
    world.double.fail_next(PUT, Fault::AnswerLost);
    let first = put(&world, "one", PutCondition::IfAbsent).await.unwrap();
    world.double.fail_next(PUT, Fault::AnswerLost);
    let second = put(&world, "two", PutCondition::IfMatch(first))
        .await
        .unwrap();
    assert_eq!(object(&world.double), Some(Bytes::from("two")));
    // The version is the real one: the next writer may go on from it.
    put(&world, "three", PutCondition::IfMatch(second))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_put_whose_request_was_lost_knows_that_somebody_else_wrote() {
    let world = World::new().await;
    world.double.put("state", "k", "theirs");
    world.double.fail_next(PUT, Fault::RequestLost);
    let lost = put(&world, "ours", PutCondition::IfAbsent).await;
    assert_eq!(kind(lost), Some(ErrorKind::PreconditionFailed));
    assert_eq!(object(&world.double), Some(Bytes::from("theirs")));
}

#[tokio::test]
async fn a_put_that_was_answered_is_lost_even_to_the_same_bytes() {
    let world = World::new().await;
    world.double.put("state", "k", "same");
    let lost = put(&world, "same", PutCondition::IfAbsent).await;
    assert_eq!(kind(lost), Some(ErrorKind::PreconditionFailed));
    // Nothing was unclear, so nothing is looked up.
    assert_eq!(world.double.journal().actions(), [PUT]);
}

#[tokio::test]
async fn a_put_over_an_object_that_is_gone_has_lost() {
    let world = World::new().await;
    let etag = put(&world, "one", PutCondition::Always).await.unwrap();
    world.store.delete("k").await.unwrap();
    let lost = put(&world, "two", PutCondition::IfMatch(etag)).await;
    assert_eq!(kind(lost), Some(ErrorKind::PreconditionFailed));
    assert_eq!(object(&world.double), None);
}

#[tokio::test]
async fn a_delete_whose_answer_was_lost_is_done() {
    let world = World::new().await;
    world.double.put("state", "k", "x");
    world
        .double
        .fail_next(Action::DeleteObject, Fault::AnswerLost);
    world.store.delete("k").await.unwrap();
    assert_eq!(object(&world.double), None);
}

#[tokio::test]
async fn half_an_object_is_an_error_and_never_the_object() {
    let world = World::new().await;
    world.double.put("state", "k", "whole");
    world
        .double
        .fail_always(Action::GetObject, Fault::AnswerCut);
    assert!(kind(world.store.get("k").await).is_some());
    world.double.heal();
    world.double.fail_next(Action::GetObject, Fault::AnswerCut);
    if let Ok(read) = world.store.get("k").await {
        assert_eq!(read.unwrap().bytes, "whole");
    }
}

#[tokio::test]
async fn half_a_range_is_read_again_and_never_the_range() {
    let world = World::new().await;
    world.double.put("state", "k", "whole");
    world.double.fail_next(Action::GetObject, Fault::AnswerCut);
    assert_eq!(world.store.get_range("k", 1..5).await.unwrap(), "hole");
    assert_eq!(world.double.take_journal().count(Action::GetObject), 2);
    world
        .double
        .fail_always(Action::GetObject, Fault::AnswerCut);
    assert_eq!(
        kind(world.store.get_range("k", 1..5).await),
        Some(ErrorKind::Other)
    );
}

#[tokio::test]
async fn a_range_that_is_not_there_is_asked_for_once() {
    let world = World::new().await;
    world.double.put("state", "k", "short");
    assert_eq!(
        kind(world.store.get_range("k", 3..9).await),
        Some(ErrorKind::Damaged)
    );
    assert_eq!(
        kind(world.store.get_range("k", 5..9).await),
        Some(ErrorKind::Damaged)
    );
    assert_eq!(
        kind(world.store.get_range("absent", 5..9).await),
        Some(ErrorKind::NotFound)
    );
    let statuses: Vec<_> = world
        .double
        .journal()
        .seen()
        .iter()
        .map(|seen| seen.status)
        .collect();
    assert_eq!(statuses, [206, 416, 404]);
}

#[tokio::test]
async fn refusal_has_its_kind_and_is_tried_again_where_that_may_help() {
    let check = async |refusal, expected, attempts| {
        let world = World::new().await;
        for action in [
            PUT,
            Action::GetObject,
            Action::DeleteObject,
            Action::ListObjects,
        ] {
            world.double.fail_always(action, Fault::Refused(refusal));
        }
        let expected = Some(expected);
        assert_eq!(
            kind(put(&world, "x", PutCondition::Always).await),
            expected,
            "{refusal:?}"
        );
        assert_eq!(kind(world.store.get("k").await), expected, "{refusal:?}");
        let known = ETag("\"x\"".to_owned());
        assert_eq!(
            kind(world.store.get_if_changed("k", &known).await),
            expected,
            "{refusal:?}"
        );
        assert_eq!(
            kind(world.store.get_range("k", 0..1).await),
            expected,
            "{refusal:?}"
        );
        assert_eq!(kind(world.store.delete("k").await), expected, "{refusal:?}");
        assert_eq!(
            kind(world.store.list("", None, 10).await),
            expected,
            "{refusal:?}"
        );
        let journal = world.double.journal();
        for (action, calls) in [
            (PUT, 1),
            (Action::GetObject, 3),
            (Action::DeleteObject, 1),
            (Action::ListObjects, 1),
        ] {
            assert_eq!(
                journal.count(action),
                calls * attempts,
                "{refusal:?} {action:?}"
            );
        }
    };
    check(Refusal::Denied, ErrorKind::Denied, 1).await;
    check(
        Refusal::Throttled,
        ErrorKind::Throttled { retry_after: None },
        ATTEMPTS,
    )
    .await;
    check(Refusal::Unavailable, ErrorKind::Other, ATTEMPTS).await;
    check(Refusal::Broken, ErrorKind::Other, ATTEMPTS).await;
}

#[tokio::test]
async fn a_closed_bucket_is_denied_and_never_empty() {
    let world = World::new().await;
    world.double.bucket("closed", Access::None);
    let store = clients(&world.double.endpoint()).store("closed");
    check_unusable(&store, ErrorKind::Denied).await;
}

#[tokio::test]
async fn an_absent_bucket_is_an_error_and_never_empty() {
    let world = World::new().await;
    let store = clients(&world.double.endpoint()).store("absent");
    check_unusable(&store, ErrorKind::NotFound).await;
}

async fn check_unusable(store: &impl ObjectStore, expected: ErrorKind) {
    let known = ETag("\"x\"".to_owned());
    let expected = Some(expected);
    assert_eq!(kind(store.get("k").await), expected);
    assert_eq!(kind(store.get_if_changed("k", &known).await), expected);
    assert_eq!(kind(store.get_range("k", 0..1).await), expected);
    for condition in [
        PutCondition::Always,
        PutCondition::IfAbsent,
        PutCondition::IfMatch(known),
    ] {
        assert_eq!(
            kind(store.put("k", Bytes::from("x"), condition.clone()).await),
            expected,
            "{condition:?}"
        );
    }
    assert_eq!(kind(store.delete("k").await), expected);
    assert_eq!(kind(store.list("", None, 10).await), expected);
}

#[tokio::test]
async fn absent_object_is_denied_without_the_right_to_list() {
    let world = World::new().await;
    world.double.bucket("state", Access::WithoutList);
    world.double.put("state", "k", "x");
    assert_eq!(world.store.get("k").await.unwrap().unwrap().bytes, "x");
    assert_eq!(
        kind(world.store.get("absent").await),
        Some(ErrorKind::Denied)
    );
}

#[tokio::test]
async fn a_known_version_costs_a_read_without_a_body() {
    let world = World::new().await;
    let etag = put(&world, "one", PutCondition::Always).await.unwrap();
    world.double.take_journal();
    let unchanged = world.store.get_if_changed("k", &etag).await.unwrap();
    assert!(
        matches!(unchanged, RevalidatedObject::Unchanged),
        "{unchanged:?}"
    );
    let statuses: Vec<_> = world
        .double
        .journal()
        .seen()
        .iter()
        .map(|seen| seen.status)
        .collect();
    assert_eq!(statuses, [304]);
}

#[tokio::test]
async fn a_listing_goes_on_past_a_thousand_keys() {
    let world = World::new().await;
    let keys: Vec<_> = (0..2_345)
        .map(|number| format!("parked/{number:04}&<ü +%"))
        .collect();
    for key in &keys {
        world.double.put("state", key, "");
    }
    world.double.put("state", "parkex", "");
    let mut listed = Vec::new();
    let mut after = None;
    loop {
        let page = world
            .store
            .list("parked/", after.as_deref(), 1000)
            .await
            .unwrap();
        listed.extend(page.objects.into_iter().map(|object| object.key));
        after = page.next_after;
        if after.is_none() || listed.len() > keys.len() {
            break;
        }
    }
    assert!(
        listed == keys,
        "{} keys listed of {}",
        listed.len(),
        keys.len()
    );
    assert_eq!(world.double.journal().count(Action::ListObjects), 3);
}
