//! The contents of queues, store and bucket, moved from one world to another as they are, or under
//! other versions.

use std::collections::BTreeMap;

use bytes::Bytes;
use posthaste_core::model::Timestamp;
use posthaste_ports::{Clock, ObjectStore, PutCondition, QueueName};
use posthaste_simulation::{World, data_folder};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::MINUTE;

/// The longest that a queue delays a message.
const DELAY_MAX: std::time::Duration = MINUTE.saturating_mul(15);

/// Everything that a program left, by then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Left {
    at: u64,
    deliveries: Vec<String>,
    dead_letters: Vec<String>,
    /// Messages of records of the delivery log, where they were kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    records: Vec<String>,
    objects: BTreeMap<String, String>,
    bucket: BTreeMap<String, String>,
}

impl Left {
    /// Takes it out of a world, once all that is delayed in the queues has come.
    pub(crate) async fn by(world: World) -> Self {
        world.clock.advance(DELAY_MAX);
        let deliveries = taken(&world, QueueName::Deliveries).await;
        let dead_letters = taken(&world, QueueName::DeadLetters).await;
        let mut objects = BTreeMap::new();
        for key in world.all_keys("").await {
            let object = world
                .local
                .state_store()
                .get(&key)
                .await
                .expect("a read")
                .expect("an object");
            objects.insert(key, text(&object.bytes));
        }
        let bucket = world
            .buried()
            .await
            .into_iter()
            .map(|(key, bytes)| (key, text(&bytes)))
            .collect();
        Self {
            at: world.clock.now().as_millis(),
            deliveries,
            dead_letters,
            records: Vec::new(),
            objects,
            bucket,
        }
    }

    /// The same after some texts were replaced in messages and objects.
    pub(crate) fn replaced(mut self, replacements: &[(&str, &str)]) -> Self {
        let objects = self.objects.values_mut();
        for text in self
            .deliveries
            .iter_mut()
            .chain(&mut self.dead_letters)
            .chain(objects)
        {
            for (from, to) in replacements {
                *text = text.replace(from, to);
            }
        }
        self
    }

    /// The text of each message and object of state, with the place where it was.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        let deliveries = self.deliveries.iter().map(|text| ("deliveries", text));
        let dead_letters = self.dead_letters.iter().map(|text| ("dead letters", text));
        let objects = self.objects.iter().map(|(key, text)| (key.as_str(), text));
        let all = deliveries.chain(dead_letters).chain(objects);
        all.map(|(place, text)| (place, text.as_str()))
    }

    /// A world that goes on with it.
    pub(crate) async fn world(&self) -> World {
        let folder = data_folder();
        self.world_over(folder).await
    }

    /// The same in a data folder that has files already.
    pub(crate) async fn world_over(&self, folder: TempDir) -> World {
        let world = World::over(folder, Timestamp::from_millis(self.at));
        for (queue, messages) in [
            (QueueName::Deliveries, &self.deliveries),
            (QueueName::DeadLetters, &self.dead_letters),
            (QueueName::Records, &self.records),
        ] {
            for body in messages {
                world.send(queue, Bytes::from(body.clone())).await;
            }
        }
        for (key, text) in &self.objects {
            world.write_state(key, text.clone()).await;
        }
        for (key, text) in &self.bucket {
            let put = world
                .bucket
                .put(key, Bytes::from(text.clone()), PutCondition::Always)
                .await;
            put.expect("a write");
        }
        world
    }
}

pub(super) async fn taken(world: &World, queue: QueueName) -> Vec<String> {
    let mut bodies = Vec::new();
    while world.visible(queue).await > 0 {
        bodies.extend(
            world
                .receive(queue)
                .await
                .iter()
                .map(|message| text(&message.body)),
        );
    }
    bodies
}

fn text(bytes: &Bytes) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}
