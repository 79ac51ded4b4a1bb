//! Contents of the world's queues and buckets.

use bytes::Bytes;
use posthaste_core::stored::{ReplayRecord, ResolvedLetters, layout};
use posthaste_ports::{Clock, ObjectStore, PutCondition, QueueName, QueueReceiver};
use posthaste_services::signal_wake;
use serde_json::Value;

use super::World;
use crate::names::{subscription_name, topic_name};

impl World {
    /// The number of messages of a queue that are due and not in flight.
    pub async fn visible(&self, queue: QueueName) -> u64 {
        self.calls
            .unnoted(self.local.queue(queue).counts())
            .await
            .expect("counts")
            .visible
    }

    /// The number of messages of a queue that are not due yet.
    pub async fn delayed(&self, queue: QueueName) -> u64 {
        self.local
            .queue(queue)
            .counts()
            .await
            .expect("counts")
            .delayed
    }

    /// The dead-letter objects, by key.
    pub async fn buried(&self) -> Vec<(String, Bytes)> {
        self.in_bucket(|key| !key.starts_with(layout::RESOLVED))
            .await
    }

    /// The lists of resolved dead letters, by key.
    pub async fn resolved(&self) -> Vec<(String, Bytes)> {
        self.in_bucket(|key| key.starts_with(layout::RESOLVED))
            .await
    }

    /// The dead letters that are not resolved, object by object.
    pub async fn unresolved(&self) -> Vec<Value> {
        let mut unresolved = Vec::new();
        for (key, bytes) in self.buried().await {
            let list = self.bucket.get(&layout::resolved_letters_key(&key)).await;
            let list = list.expect("a read").map(|list| list.bytes);
            let list = list.map(|list| ResolvedLetters::parse(&list).expect("a list"));
            let list = list.unwrap_or_default();
            let letters: Vec<Value> = serde_json::from_slice(&bytes).expect("letters");
            let letters = letters.into_iter().enumerate();
            unresolved.extend(
                letters
                    .filter(|(index, _)| !list.is_resolved(*index))
                    .map(|it| it.1),
            );
        }
        unresolved
    }

    async fn in_bucket(&self, is_asked_for: impl Fn(&str) -> bool) -> Vec<(String, Bytes)> {
        let mut objects = Vec::new();
        let mut after = None;
        loop {
            let page = self.bucket.list("", after.as_deref(), 1000).await;
            let page = page.expect("a listing");
            let metas = page.objects.into_iter();
            for meta in metas.filter(|meta| is_asked_for(&meta.key)) {
                let object = self.bucket.get(&meta.key).await.expect("a read");
                objects.push((meta.key, object.expect("an object").bytes));
            }
            after = page.next_after;
            if after.is_none() {
                return objects;
            }
        }
    }

    /// Writes an object into the state bucket.
    pub async fn write_state(&self, key: &str, text: String) {
        let put = self
            .local
            .state_store()
            .put(key, Bytes::from(text), PutCondition::Always)
            .await;
        put.expect("a write");
    }

    /// Writes an object that is work for wake, as manage does.
    pub async fn ask_wake(&self, key: &str, text: String) {
        signal_wake(&self.local.state_store(), self.clock.now())
            .await
            .expect("a signal");
        self.write_state(key, text).await;
    }

    /// The keys of the notes of late answers.
    pub async fn late_notes(&self) -> Vec<String> {
        let page = self
            .local
            .state_store()
            .list(layout::LATE, None, 1000)
            .await
            .expect("a listing");
        page.objects.into_iter().map(|object| object.key).collect()
    }

    /// Asks for a replay of the subscription's dead letters, as manage does, and answers its id.
    pub async fn replay(&self, request: Value) -> String {
        let request = serde_json::from_value(request).expect("a request to replay");
        let now = self.clock.now();
        let state = self.local.state_store();
        let id = layout::replay_id(now, "0b8b9c5e-6a0c");
        let subscription = (
            subscription_name(),
            &self.record().await.identities_of(&subscription_name()),
        );
        let record = ReplayRecord::new(id.clone(), topic_name(), subscription, request, now);
        self.ask_wake(&layout::replaying_mark_key(&id), String::new())
            .await;
        state
            .put(
                &layout::replay_record_key(&id),
                record.render(),
                PutCondition::Always,
            )
            .await
            .expect("a write");
        id
    }

    /// A replay, as it stands.
    pub async fn replayed(&self, id: &str) -> ReplayRecord {
        let object = self
            .local
            .state_store()
            .get(&layout::replay_record_key(id))
            .await
            .expect("a read");
        ReplayRecord::parse(&object.expect("the replay").bytes).expect("a record")
    }

    /// The markers of the replays that have not ended.
    pub async fn replaying(&self) -> Vec<String> {
        let page = self
            .local
            .state_store()
            .list(layout::REPLAYING, None, 1000)
            .await
            .expect("a listing");
        page.objects.into_iter().map(|object| object.key).collect()
    }

    /// The keys of what is parked.
    pub async fn parked(&self) -> Vec<String> {
        self.keys(layout::PARKED).await
    }

    /// The keys of what is held.
    pub async fn held(&self) -> Vec<String> {
        self.keys(layout::HELD).await
    }

    /// The first keys in the state bucket that begin like this.
    pub async fn keys(&self, prefix: &str) -> Vec<String> {
        let page = self
            .local
            .state_store()
            .list(prefix, None, 1000)
            .await
            .expect("a listing");
        page.objects.into_iter().map(|object| object.key).collect()
    }
}
