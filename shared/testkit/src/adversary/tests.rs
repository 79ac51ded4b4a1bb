use super::*;
use crate::memory::{MemoryQueue, MemoryStore, message};

/// Always.
const ALWAYS: u64 = CHANCES;

fn mood(trick: Trick) -> Mood {
    Mood::new(1, &[(trick, ALWAYS)])
}

fn request() -> ReceiveRequest {
    ReceiveRequest {
        max: 10,
        visibility: Duration::from_secs(30),
        wait: Duration::ZERO,
    }
}

async fn received(queue: &impl QueueReceiver) -> Vec<ReceivedMessage> {
    queue.receive(request()).await.unwrap()
}

/// The bodies that a plain receiver finds after a batch was sent under a mood.
async fn sent(mood: &Mood) -> (Vec<bool>, usize) {
    let queue = MemoryQueue::default();
    let adversary = Adversary::new(queue.clone(), "queue", mood);
    let answer = adversary.send_batch(["a", "b", "c"].map(message).to_vec());
    let answers = answer.await.unwrap_or_default();
    let is_ok = answers.iter().map(Result::is_ok).collect();
    (is_ok, queue.messages().len())
}

#[tokio::test]
async fn each_trick_on_a_batch_does_what_its_name_says() {
    assert_eq!(sent(&Mood::new(1, &[])).await, (vec![true; 3], 3));
    assert_eq!(sent(&mood(Trick::Duplicate)).await, (vec![true; 3], 6));
    assert_eq!(sent(&mood(Trick::LoseAnswer)).await, (vec![], 3));
    assert_eq!(sent(&mood(Trick::Throttle)).await, (vec![], 0));
    let (answers, there) = sent(&mood(Trick::PartialBatch)).await;
    assert!(
        answers.contains(&false) && answers.len() == 3,
        "{answers:?}"
    );
    assert!(there <= 3, "{there}");
}

#[tokio::test]
async fn message_that_returns_early_is_received_twice() {
    let queue = MemoryQueue::default();
    queue
        .send_batch(vec![message("a")])
        .await
        .unwrap()
        .remove(0)
        .unwrap();
    let adversary = Adversary::new(queue.clone(), "", &mood(Trick::ReturnEarly));
    let first = received(&adversary).await;
    let second = received(&queue).await;
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_eq!((first[0].receive_count, second[0].receive_count), (1, 2));
}

#[tokio::test]
async fn settled_message_comes_back_after_its_timeout() {
    let queue = MemoryQueue::default();
    queue
        .send_batch(vec![message("a")])
        .await
        .unwrap()
        .remove(0)
        .unwrap();
    let adversary = Adversary::new(queue.clone(), "", &mood(Trick::Resurrect));
    let first = received(&adversary).await;
    adversary.acknowledge(&first[0].receipt).await.unwrap();
    assert_eq!(received(&queue).await.len(), 0);
    queue.advance(Duration::from_secs(30));
    assert_eq!(received(&queue).await.len(), 1);
}

#[tokio::test]
async fn counts_lag_by_one_look() {
    let queue = MemoryQueue::default();
    let adversary = Adversary::new(queue.clone(), "", &mood(Trick::LagCounts));
    let visible = async || adversary.counts().await.unwrap().visible;
    assert_eq!(visible().await, 0);
    queue
        .send_batch(vec![message("a")])
        .await
        .unwrap()
        .remove(0)
        .unwrap();
    assert_eq!((visible().await, visible().await), (0, 1));
}

/// The result of a conditional put under a mood, and whether it happened.
async fn put(mood: &Mood) -> (Option<ErrorKind>, bool) {
    let store = MemoryStore::default();
    let adversary = Adversary::new(store.clone(), "store", mood);
    let put = adversary.put("k", Bytes::from("v"), PutCondition::IfAbsent);
    let kind = put.await.err().map(|error| error.kind);
    (kind, !store.keys("").is_empty())
}

#[tokio::test]
async fn each_trick_on_a_conditional_put_does_what_its_name_says() {
    let failed = ErrorKind::PreconditionFailed;
    assert_eq!(put(&Mood::new(1, &[])).await, (None, true));
    assert_eq!(put(&mood(Trick::FalseConflict)).await, (Some(failed), true));
    let conflict = put(&mood(Trick::Conflict)).await;
    assert_eq!(conflict, (Some(ErrorKind::Other), false));
    let lost = put(&mood(Trick::LoseAnswer)).await;
    assert_eq!(lost, (Some(ErrorKind::TimedOut), true));
}

/// Moods that are switched off play nothing, and still count what they played.
#[tokio::test]
async fn switched_off_mood_plays_no_tricks_and_keeps_its_count() {
    let mood = mood(Trick::Throttle);
    let store = Adversary::new(MemoryStore::default(), "", &mood);
    assert!(store.get("k").await.is_err());
    mood.switch(false);
    assert!(store.get("k").await.is_ok());
    assert_eq!(mood.played(Trick::Throttle), 1);
}
