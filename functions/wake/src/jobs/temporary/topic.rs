//! The sweep of one topic.
//!
//! A subscription that is idle by its notes stays as long as an event waits for it in the object
//! store. The sweep changes a record after a second look at what is to go, and on condition that no
//! other worker changed it since it was read: an entity that is used or written meanwhile stays.

use std::pin::pin;
use std::time::Duration;

use futures_util::TryStreamExt;
use posthaste_core::api::{AuditAction, AuditEntry, SubscriptionSettings};
use posthaste_core::model::idle::is_idle_since;
use posthaste_core::model::{SubscriptionName, Timestamp, TopicName};
use posthaste_core::stored::{TopicRecord, TopicRecordError, layout, record_changes};
use posthaste_ports::{Clock, ETag, ErrorKind, ObjectStore, PortError, Ports, PutCondition};
use posthaste_services::activity::{ActivityError, last_activity};
use posthaste_services::audit::{
    begin_change, changes_without, end_change, note_expired, outcome_of, own_entry,
};
use posthaste_services::topics::delete_topic;
use posthaste_services::{LeftWork, list_objects};

use super::waiting::WaitingSearch;

/// Age from which a mark counts as left. manage writes it first, and then what it is for: a request
/// ends before.
const MARK_STANDS: Duration = Duration::from_mins(1);

/// The reason that the audit trail has.
const IDLE: &str = "it was idle";

/// Why a topic was not swept; the next run looks again.
#[derive(Debug, thiserror::Error)]
pub(super) enum SweepError {
    #[error("failed to read or write the topic's record")]
    Store(#[source] PortError),
    #[error("failed to understand the topic's record")]
    Record(#[source] TopicRecordError),
    #[error("failed to learn when something last happened")]
    Activity(#[source] ActivityError),
    #[error("failed to learn whether something waits")]
    Waiting(#[source] PortError),
}

/// The entities of a topic that are to go.
#[derive(Debug, PartialEq, Eq)]
enum DoomedEntities {
    Nothing,
    Topic,
    Subscriptions(Vec<SubscriptionName>),
}

/// Topics and subscriptions that a sweep deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SweptCounts {
    pub(crate) topics: usize,
    pub(crate) subscriptions: usize,
}

/// Sweeps topics, one at a time.
pub(super) struct TopicSweep<'a, P: Ports> {
    pub(super) store: &'a P::Store,
    pub(super) clock: &'a P::Clock,
    pub(super) entropy: &'a P::Entropy,
    pub(super) waiting: WaitingSearch<'a, P>,
    /// The end of the last outage.
    pub(super) awake_since: Option<Timestamp>,
    /// The rule by which work counts as left by its process.
    pub(super) left: LeftWork,
}

impl<P: Ports> TopicSweep<'_, P> {
    /// Deletes the topic, or subscriptions of it, if they are to go by now. Tidies up after a topic
    /// that is gone, unless its mark is so young that what it is for may yet be written.
    pub(super) async fn sweep_topic(
        &self,
        topic: &TopicName,
        marked_at: Timestamp,
    ) -> Result<SweptCounts, SweepError> {
        let now = self.clock.now();
        let is_left = self.left.counts_as_left(marked_at, now, MARK_STANDS);
        let Some((record, etag)) = self.read_record(topic).await? else {
            return self.forget_topic(topic, is_left).await;
        };
        let is_left_deleted = record
            .deleted_at
            .is_some_and(|deleted_at| self.left.is_left_by_dead_process(deleted_at));
        if record.is_abandoned(now) || is_left_deleted {
            return self.finish_deletion(record, etag, now).await;
        }
        if record.deleted_at.is_some() {
            return Ok(SweptCounts::default());
        }
        if !record.is_temporary() {
            return self.forget_topic(topic, is_left).await;
        }
        let doomed = self.find_doomed(&record, now).await?;
        // What was used between the first look and this one stays.
        if doomed == DoomedEntities::Nothing || self.find_doomed(&record, now).await? != doomed {
            return Ok(SweptCounts::default());
        }
        match self.delete_doomed(record, etag, doomed, now).await {
            // It was written meanwhile: the next run sees what.
            Err(error) if error.kind == ErrorKind::PreconditionFailed => Ok(SweptCounts::default()),
            result => result.map_err(SweepError::Store),
        }
    }

    async fn read_record(
        &self,
        topic: &TopicName,
    ) -> Result<Option<(TopicRecord, ETag)>, SweepError> {
        let found = self
            .store
            .get(&layout::topic_record_key(topic))
            .await
            .map_err(SweepError::Store)?;
        let Some(object) = found else { return Ok(None) };
        let record = TopicRecord::parse(&object.bytes).map_err(SweepError::Record)?;
        Ok(Some((record, object.etag)))
    }

    /// Removes the object of a topic whose deletion was cut short. The object is marked once more,
    /// because from now on a new topic may be written in its place: the condition lets one of
    /// the two win.
    async fn finish_deletion(
        &self,
        record: TopicRecord,
        etag: ETag,
        now: Timestamp,
    ) -> Result<SweptCounts, SweepError> {
        match delete_topic(self.store, record, etag, now).await {
            Err(error) if error.kind != ErrorKind::PreconditionFailed => {
                Err(SweepError::Store(error))
            }
            Ok(_) | Err(_) => Ok(SweptCounts::default()),
        }
    }

    async fn find_doomed(
        &self,
        record: &TopicRecord,
        now: Timestamp,
    ) -> Result<DoomedEntities, SweepError> {
        if let Some(idle) = record.settings.auto_delete_on_idle {
            let key = layout::topic_activity_key(&record.name);
            if self.is_idle(idle.0, record.updated_at, now)
                && self
                    .last_use(&key)
                    .await?
                    .is_none_or(|last| self.is_idle(idle.0, last, now))
            {
                return Ok(DoomedEntities::Topic);
            }
        }
        let mut names = Vec::new();
        for (name, settings) in &record.settings.subscriptions {
            if self.is_doomed(record, name, settings, now).await? {
                names.push(name.clone());
            }
        }
        Ok(if names.is_empty() {
            DoomedEntities::Nothing
        } else {
            DoomedEntities::Subscriptions(names)
        })
    }

    /// Whether something that was last used at this time has been idle for so long.
    fn is_idle(&self, idle: Duration, last: Timestamp, now: Timestamp) -> bool {
        is_idle_since(idle, last, self.awake_since, now)
    }

    async fn is_doomed(
        &self,
        record: &TopicRecord,
        name: &SubscriptionName,
        settings: &SubscriptionSettings,
        now: Timestamp,
    ) -> Result<bool, SweepError> {
        if settings
            .expiration_time_utc
            .is_some_and(|ends_at| now >= ends_at.0)
        {
            return Ok(true);
        }
        let Some(idle) = settings.auto_delete_on_idle else {
            return Ok(false);
        };
        let status_since = settings
            .status
            .as_ref()
            .map_or(Timestamp::EPOCH, |status| status.since.0);
        if !self.is_idle(idle.0, status_since, now) {
            return Ok(false);
        }
        let key = layout::subscription_activity_key(&record.name, name);
        // A note may have been tidied up while its topic became temporary: that write was a use.
        let last = self.last_use(&key).await?.unwrap_or(record.updated_at);
        if !self.is_idle(idle.0, last, now) {
            return Ok(false);
        }
        let waits = self
            .waiting
            .has_events_for(&record.name, name)
            .await
            .map_err(SweepError::Waiting)?;
        Ok(!waits)
    }

    /// The time at which something last happened, if that was noted.
    async fn last_use(&self, key: &str) -> Result<Option<Timestamp>, SweepError> {
        last_activity(self.store, key)
            .await
            .map_err(SweepError::Activity)
    }

    async fn delete_doomed(
        &self,
        mut record: TopicRecord,
        etag: ETag,
        doomed: DoomedEntities,
        now: Timestamp,
    ) -> Result<SweptCounts, PortError> {
        let names = match doomed {
            DoomedEntities::Nothing => return Ok(SweptCounts::default()),
            DoomedEntities::Topic => {
                self.delete_idle_topic(record, etag, now).await?;
                return Ok(SweptCounts {
                    topics: 1,
                    subscriptions: 0,
                });
            }
            DoomedEntities::Subscriptions(names) => names,
        };
        note_expired(self.store, &record, now).await?;
        let idle = self.begin_idle(&record, &names, now).await?;
        record
            .settings
            .subscriptions
            .retain(|name, _| !names.contains(name));
        record.updated_at = now;
        let topic = &record.name;
        let key = layout::topic_record_key(topic);
        let condition = PutCondition::IfMatch(etag);
        let put = self.store.put(&key, record.render(), condition).await;
        for entry in idle {
            end_change(self.store, entry, outcome_of(&put)).await;
        }
        put?;
        for name in &names {
            let subscription = name;
            tracing::info!(%topic, %subscription, "subscription deleted: its time was over, or it was idle");
            // The note of a subscription that is created again is written again.
            let _ = self
                .store
                .delete(&layout::subscription_activity_key(topic, name))
                .await;
        }
        Ok(SweptCounts {
            topics: 0,
            subscriptions: names.len(),
        })
    }

    async fn delete_idle_topic(
        &self,
        record: TopicRecord,
        etag: ETag,
        now: Timestamp,
    ) -> Result<(), PortError> {
        let topic = record.name.clone();
        let entry = own_entry(self.clock, self.entropy, AuditAction::DeleteTopic)
            .of_topic(&topic)
            .with_detail(IDLE)
            .with_changes(record_changes(Some(&record), None, now));
        begin_change(self.store, &entry).await?;
        let deleted = delete_topic(self.store, record, etag, now).await;
        end_change(self.store, entry, outcome_of(&deleted)).await;
        deleted?;
        tracing::info!(%topic, "topic deleted: it was idle");
        Ok(())
    }

    /// Begins the entries of the audit trail of those subscriptions that go because they are idle.
    async fn begin_idle(
        &self,
        record: &TopicRecord,
        names: &[SubscriptionName],
        now: Timestamp,
    ) -> Result<Vec<AuditEntry>, PortError> {
        let mut left = record.clone();
        left.take_expired(now);
        let mut begun = Vec::new();
        for name in names {
            if !left.settings.subscriptions.contains_key(name) {
                continue;
            }
            let entry = own_entry(self.clock, self.entropy, AuditAction::DeleteSubscription)
                .of_subscription(&record.name, name)
                .with_detail(IDLE)
                .with_changes(changes_without(&left, std::slice::from_ref(name), now));
            begin_change(self.store, &entry).await?;
            begun.push(entry);
        }
        Ok(begun)
    }

    /// Tidies up after a topic that is gone, or not temporary any more. A topic that becomes
    /// temporary or is deleted at this moment had its name written before its record, so the name
    /// is written once more.
    async fn forget_topic(
        &self,
        topic: &TopicName,
        is_left: bool,
    ) -> Result<SweptCounts, SweepError> {
        if !is_left {
            return Ok(SweptCounts::default());
        }
        self.delete_notes(topic).await.map_err(SweepError::Store)?;
        let found = self.read_record(topic).await?;
        if found.is_some_and(|(record, _)| record.is_temporary() || record.deleted_at.is_some()) {
            let name = layout::temporary_mark_key(topic);
            let put = self
                .store
                .put(&name, bytes::Bytes::new(), PutCondition::Always)
                .await;
            put.map_err(SweepError::Store)?;
        }
        Ok(SweptCounts::default())
    }

    /// Deletes the notes of a topic, and its name among the temporary ones.
    async fn delete_notes(&self, topic: &TopicName) -> Result<(), PortError> {
        let prefix = layout::subscription_activities(topic);
        let mut notes = pin!(list_objects(self.store, &prefix, None));
        while let Some(note) = notes.try_next().await? {
            self.store.delete(&note.key).await?;
        }
        self.store
            .delete(&layout::topic_activity_key(topic))
            .await?;
        self.store.delete(&layout::temporary_mark_key(topic)).await
    }
}

#[cfg(test)]
mod tests {
    use posthaste_core::api::AuditOutcome;
    use posthaste_core::stored::ActivityNote;
    use posthaste_testkit::records::{subscription_name, topic_name};
    use posthaste_testkit::{FaultPlan, Faulty, PortOperation};
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{Kit, TestPorts, subscription};

    const NAME: &str = "temporary/orders";
    const MINUTE: Duration = Duration::from_mins(1);

    /// Sweeps the topic `orders`; answers the topics and subscriptions that were deleted.
    async fn sweep(kit: &Kit) -> (usize, usize) {
        sweep_marked(kit, Timestamp::EPOCH).await
    }

    /// The same where the topic was marked at this time.
    async fn sweep_marked(kit: &Kit, marked_at: Timestamp) -> (usize, usize) {
        let store = &kit.ports.state;
        let clock = &kit.clock;
        let waiting = WaitingSearch::new(store, None);
        let sweep = TopicSweep::<TestPorts> {
            store,
            clock,
            entropy: &kit.ports.entropy,
            waiting,
            awake_since: None,
            left: LeftWork::Old,
        };
        let SweptCounts {
            topics,
            subscriptions,
        } = sweep
            .sweep_topic(&topic_name("orders"), marked_at)
            .await
            .unwrap();
        (topics, subscriptions)
    }

    fn with(settings: Value) -> Value {
        json!({ "subscriptions": { "billing": subscription(settings) } })
    }

    /// Idle or expired entities go ten minutes later, unless they are used or an event waits.
    #[tokio::test]
    async fn idle_or_expired_entities_go_unless_used_or_waited_for() {
        let check = async |settings: &Value, used: Option<String>, expected| {
            let kit = Kit::new();
            kit.topic(settings.clone());
            kit.clock.advance(10 * MINUTE);
            if let Some(key) = &used {
                kit.store
                    .write(key, ActivityNote::new(kit.clock.now()).render());
            }
            assert_eq!(sweep(&kit).await, expected, "{settings} {used:?}");
        };
        let topic = topic_name("orders");
        let name = subscription_name("billing");
        let idle = json!({ "autoDeleteOnIdle": "PT8M" });
        check(&idle, None, (1, 0)).await;
        check(&idle, Some(layout::topic_activity_key(&topic)), (0, 0)).await;
        check(&json!({ "autoDeleteOnIdle": "PT20M" }), None, (0, 0)).await;
        check(&with(idle.clone()), None, (0, 1)).await;
        check(
            &with(idle.clone()),
            Some(layout::subscription_activity_key(&topic, &name)),
            (0, 0),
        )
        .await;
        check(
            &with(idle),
            Some(format!("{}x.json", layout::held_of(&topic, &name))),
            (0, 0),
        )
        .await;
        check(
            &with(json!({ "expirationTimeUtc": "2026-03-07T04:15:00Z" })),
            None,
            (0, 1),
        )
        .await;
        check(
            &with(json!({ "expirationTimeUtc": "2026-03-07T04:16:00Z" })),
            None,
            (0, 0),
        )
        .await;
    }

    /// A deleted topic or subscription has one entry of the audit trail, with the reason and what
    /// it was.
    #[tokio::test]
    async fn deleted_entity_has_an_audit_entry_of_posthaste() {
        let check = async |settings: Value, action, detail, at: &str| {
            let kit = Kit::new();
            kit.topic(settings);
            kit.clock.advance(10 * MINUTE);
            assert_ne!(sweep(&kit).await, (0, 0));
            let found = kit.store.objects_under(layout::AUDIT);
            assert_eq!(found.len(), 1, "{found:?}");
            let entry = AuditEntry::parse(&found[0].1).unwrap();
            assert!(entry.is_own() && !entry.changes.is_empty(), "{entry:?}");
            assert_eq!(
                (entry.action, entry.outcome, entry.detail.as_deref()),
                (action, AuditOutcome::Done, Some(detail))
            );
            assert_eq!(entry.at.0.to_string(), at);
        };
        let idle = json!({ "autoDeleteOnIdle": "PT8M" });
        let now = "2026-03-07T04:15:00.000Z";
        check(idle.clone(), AuditAction::DeleteTopic, IDLE, now).await;
        let of_subscription = AuditAction::DeleteSubscription;
        check(with(idle), of_subscription, IDLE, now).await;
        let over = json!({ "expirationTimeUtc": "2026-03-07T04:12:00Z" });
        let then = "2026-03-07T04:12:00.000Z";
        check(with(over), of_subscription, "its time was over", then).await;
    }

    /// The mark of a topic that is gone, or not temporary any more, is deleted with its notes.
    #[tokio::test]
    async fn name_of_a_gone_or_permanent_topic_goes_with_its_notes() {
        for settings in [None, Some(with(json!({})))] {
            let kit = Kit::new();
            kit.store.write(NAME, "");
            let note = layout::subscription_activity_key(
                &topic_name("orders"),
                &subscription_name("billing"),
            );
            kit.store
                .write(&note, ActivityNote::new(kit.clock.now()).render());
            if let Some(settings) = settings {
                kit.topic(settings);
            }
            assert_eq!(sweep(&kit).await, (0, 0));
            assert_eq!(
                (kit.store.keys(NAME).len(), kit.store.keys(&note).len()),
                (0, 0)
            );
        }
    }

    /// manage has marked a topic, and is about to delete it.
    #[tokio::test]
    async fn young_mark_is_kept_for_what_follows_it() {
        let kit = Kit::new();
        kit.topic(with(json!({})));
        kit.store.write(NAME, "");
        let marked_at = kit.clock.now();
        kit.clock
            .advance(MARK_STANDS.saturating_sub(Duration::from_millis(1)));
        sweep_marked(&kit, marked_at).await;
        assert_eq!(kit.store.keys(NAME).len(), 1);
        kit.clock.advance(Duration::from_millis(1));
        sweep_marked(&kit, marked_at).await;
        assert_eq!(kit.store.keys(NAME).len(), 0);
    }

    /// The topic becomes temporary, or is deleted, while its old mark is taken away.
    #[tokio::test]
    async fn name_of_a_topic_that_is_deleted_meanwhile_is_written_again() {
        let kit = Kit::new();
        kit.topic(with(json!({})));
        let key = layout::topic_record_key(&topic_name("orders"));
        let record = kit.store.get(&key).await.unwrap().unwrap();
        let record = TopicRecord::parse(&record.bytes).unwrap();
        let tombstone = record.into_tombstone(kit.clock.now()).render();
        let store = kit.store.clone();
        let plan = FaultPlan::by(move |effect| {
            if effect.operation == PortOperation::Delete && effect.key == NAME {
                store.write(
                    &layout::topic_record_key(&topic_name("orders")),
                    tombstone.clone(),
                );
            }
            None
        });
        let faulty = Faulty::new(kit.store.clone(), "", &plan);
        let store = &faulty;
        let clock = &kit.clock;
        kit.store.write(NAME, "");
        let waiting = WaitingSearch::new(store, None);
        let sweep = TopicSweep::<TestPorts> {
            store,
            clock,
            entropy: &kit.ports.entropy,
            waiting,
            awake_since: None,
            left: LeftWork::Old,
        };
        let topic = topic_name("orders");
        sweep.sweep_topic(&topic, Timestamp::EPOCH).await.unwrap();
        assert_eq!(kit.store.keys(NAME).len(), 1);
    }

    #[tokio::test]
    async fn a_record_that_cannot_be_read_is_left() {
        let kit = Kit::new();
        kit.store.write("topics/orders.json", "{");
        let store = &kit.ports.state;
        let clock = &kit.clock;
        let waiting = WaitingSearch::new(store, None);
        let sweep = TopicSweep::<TestPorts> {
            store,
            clock,
            entropy: &kit.ports.entropy,
            waiting,
            awake_since: None,
            left: LeftWork::Old,
        };
        let swept = sweep
            .sweep_topic(&topic_name("orders"), Timestamp::EPOCH)
            .await;
        assert!(matches!(swept, Err(SweepError::Record(_))), "{swept:?}");
    }
}
