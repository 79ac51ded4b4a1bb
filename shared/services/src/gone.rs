//! Disables a subscription whose endpoint responded with 410 Gone, as a mark asks, and sends the
//! notice. The mark stays until both are done, so that a cut after any step is finished by the next
//! call.

use parking_lot::Mutex;
use posthaste_core::api::notice::Notice;
use posthaste_core::api::{AuditAction, AuditCaller, AuditEntry, AuditOutcome};
use posthaste_core::model::FormatError;
use posthaste_core::stored::{
    GoneMark, GoneStep, TopicRecord, TopicRecordError, layout, record_changes,
};
use posthaste_ports::{Clock, Entropy, ObjectStore, PortError, QueueSender, StoredObject};

use crate::audit::{begin_change, end_change};
use crate::{NoticeError, Notifier, ObjectEdit, UpdateError, update_object_with};

/// Reasons for which a mark was not carried out this time.
#[derive(Debug, thiserror::Error)]
pub enum GoneError {
    /// The topic's record could not be changed.
    #[error("failed to change the topic's record")]
    Record(#[from] UpdateError<EditError>),
    /// The notice could not be sent.
    #[error("failed to send the notice")]
    Notice(#[from] NoticeError),
    /// The mark could not be deleted.
    #[error("failed to delete the mark")]
    Mark(#[source] PortError),
}

/// Reasons for which a record was not changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// A newer program wrote the record.
    #[error(transparent)]
    Newer(TopicRecordError),
    /// The change could not be written down.
    #[error("failed to write the change down in the audit trail")]
    Audit(#[source] PortError),
}

/// The part of a step that is done after the record was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GoneFollowUp {
    Disabled,
    Before,
    Nothing,
}

/// Carries a mark out: writes the record of its topic if the subscription still stands, sends the
/// notice, and deletes the mark. A mark whose topic's record a newer program wrote is left to that
/// program.
pub async fn disable_gone<S, Q, C, E>(
    state: &S,
    notifier: &Notifier<'_, Q, S, C, E>,
    mark: &GoneMark,
) -> Result<(), GoneError>
where
    S: ObjectStore,
    Q: QueueSender,
    C: Clock,
    E: Entropy,
{
    let key = layout::topic_record_key(&mark.topic);
    // Boxed, here and below: the compiler finds the layout of the SDK's futures too deep otherwise.
    let begun = Mutex::new(None);
    let update = update_object_with(state, &key, |object| async {
        let (step, entry) = edit_record(mark, object).map_err(EditError::Newer)?;
        if let Some(entry) = entry {
            let written = begin_change(state, &entry).await;
            written.map_err(EditError::Audit)?;
            *begun.lock() = Some(entry);
        }
        Ok(step)
    });
    let written = Box::pin(update).await;
    if let Some(entry) = begun.into_inner() {
        end_change(state, entry, audit_outcome(&written)).await;
    }
    let written = written?;
    if written.answer == GoneFollowUp::Disabled {
        tracing::warn!(
            topic = %mark.topic, subscription = %mark.subscription,
            "subscription disabled: its endpoint is gone"
        );
    }
    if written.answer != GoneFollowUp::Nothing {
        let notice = Notice::Disabled(mark.to_notice());
        Box::pin(notifier.send_about_topic(&mark.topic, &[notice])).await?;
    }
    let key = layout::gone_mark_key(&mark.topic, &mark.subscription);
    Box::pin(state.delete(&key)).await.map_err(GoneError::Mark)
}

fn audit_outcome<T>(written: &Result<T, UpdateError<EditError>>) -> AuditOutcome {
    match written {
        Ok(_) => AuditOutcome::Done,
        Err(UpdateError::Edit(_) | UpdateError::Contended) => AuditOutcome::Refused,
        Err(UpdateError::Read(_) | UpdateError::Write(_)) => AuditOutcome::Failed,
    }
}

/// The edit of the record, and the entry of the audit trail if the record changes. Each try of the
/// same mark has the same entry.
fn edit_record(
    mark: &GoneMark,
    object: Option<StoredObject>,
) -> Result<(ObjectEdit<GoneFollowUp>, Option<AuditEntry>), TopicRecordError> {
    let nothing = (ObjectEdit::Keep(GoneFollowUp::Nothing), None);
    let Some(object) = object else {
        return Ok(nothing);
    };
    let record = match TopicRecord::parse(&object.bytes) {
        Err(error @ TopicRecordError::Format(FormatError::Newer(_))) => return Err(error),
        Err(error) => {
            // The next 410 leaves a mark again.
            let error = &error as &dyn std::error::Error;
            tracing::error!(
                topic = %mark.topic, subscription = %mark.subscription, error,
                "subscription not disabled: its topic's record cannot be read"
            );
            return Ok(nothing);
        }
        Ok(record) if record.deleted_at.is_some() => return Ok(nothing),
        Ok(record) => record,
    };
    Ok(match mark.next_step(record.clone()) {
        GoneStep::Disable(after) => {
            let changes = record_changes(Some(&record), Some(&after), mark.at);
            let id = layout::gone_id(&mark.subscription);
            let entry = AuditEntry::new(
                id,
                mark.at,
                AuditCaller::posthaste_itself(),
                AuditAction::Disable,
            )
            .of_subscription(&mark.topic, &mark.subscription)
            .with_detail(mark.to_notice().reason)
            .with_changes(changes);
            (
                ObjectEdit::Write(after.render(), GoneFollowUp::Disabled),
                Some(entry),
            )
        }
        GoneStep::Announce => (ObjectEdit::Keep(GoneFollowUp::Before), None),
        GoneStep::Drop => nothing,
    })
}

#[cfg(test)]
mod tests {
    use posthaste_core::model::{Identity, SubscriptionName, Timestamp, TopicName};
    use posthaste_core::stored::delivery::parse_delivery;
    use posthaste_ports::PutCondition;
    use posthaste_testkit::faulty::at_every_effect;
    use posthaste_testkit::memory::{MemoryQueue, MemoryStore};
    use posthaste_testkit::{FaultPlan, Faulty, ManualClock, SeededEntropy};
    use serde_json::{Value, json};
    use std::time::Duration;

    use super::*;
    use crate::{FanOut, TopicRegistry};

    const AT: Timestamp = Timestamp::from_millis(1_700_000_000_000);
    const URL: &str = "https://billing.example.com/hooks";

    struct World {
        store: MemoryStore,
        queue: MemoryQueue,
    }

    fn topic(name: &str, settings: &Value) -> Value {
        json!({
            "v": 1, "name": name, "key1": "a", "key2": "b", "createdAt": AT, "updatedAt": AT,
            "settings": settings,
        })
    }

    impl World {
        fn new() -> Self {
            let store = MemoryStore::default();
            let endpoint = |url: &str| json!({ "endpoint": { "url": url } });
            let orders =
                json!({ "noticesTopic": "ops", "subscriptions": { "billing": endpoint(URL) } });
            let ops =
                json!({ "subscriptions": { "pager": endpoint("https://pager.example.com/") } });
            store.write("topics/orders.json", topic("orders", &orders).to_string());
            store.write("topics/ops.json", topic("ops", &ops).to_string());
            let queue = MemoryQueue::default();
            Self { store, queue }
        }

        fn mark(&self) -> GoneMark {
            let mark = GoneMark {
                topic: TopicName::parse("orders").unwrap(),
                subscription: SubscriptionName::parse("billing").unwrap(),
                identity: None::<Identity>,
                url: URL.to_owned(),
                at: AT,
            };
            let key = layout::gone_mark_key(&mark.topic, &mark.subscription);
            self.store.write(&key, mark.render());
            mark
        }

        /// Carries the mark out over a store and a queue that fail by this plan.
        async fn carry_out(&self, mark: &GoneMark, plan: &FaultPlan) -> Result<(), GoneError> {
            let store = Faulty::new(self.store.clone(), "state", plan);
            let queue = Faulty::new(self.queue.clone(), "queue", plan);
            let clock = ManualClock::new(AT);
            let entropy = SeededEntropy::new(1);
            let registry = TopicRegistry::new(store.clone(), clock.clone(), Duration::ZERO);
            let notifier = Notifier {
                registry: &registry,
                fan_out: FanOut {
                    deliveries: &queue,
                    slow: None,
                    payloads: &store,
                    clock: &clock,
                    entropy: &entropy,
                },
            };
            disable_gone(&store, &notifier, mark).await
        }

        fn state(&self) -> Value {
            let record = &self.store.objects_under("topics/orders.json")[0].1;
            let record: Value = serde_json::from_slice(record).unwrap();
            record["settings"]["subscriptions"]["billing"]["status"]["state"].clone()
        }

        /// The entries of the audit trail.
        fn trail(&self) -> Vec<AuditEntry> {
            let found = self.store.objects_under(layout::AUDIT);
            let parsed = found.iter().map(|(_, bytes)| AuditEntry::parse(bytes));
            parsed.collect::<Result<_, _>>().unwrap()
        }

        fn notices(&self) -> usize {
            let messages = self.queue.messages();
            let told = messages.iter().map(|it| parse_delivery(&it.body).unwrap());
            told.filter(|it| it.topic.as_str() == "ops").count()
        }
    }

    #[tokio::test]
    async fn subscription_is_disabled_and_announced_once() {
        let world = World::new();
        let mark = world.mark();
        for _ in 0..2 {
            world.carry_out(&mark, &FaultPlan::none()).await.unwrap();
            let left = world.store.keys(layout::DISABLED);
            assert_eq!((world.state(), left), (json!("Disabled"), vec![]));
        }
        let trail = world.trail();
        assert_eq!(trail.len(), 1, "{trail:?}");
        let entry = &trail[0];
        assert!(entry.is_own());
        assert_eq!(
            (entry.action, entry.outcome),
            (AuditAction::Disable, AuditOutcome::Done)
        );
        let state = &entry.changes.last().unwrap();
        assert_eq!(
            state.to_string(),
            "subscriptions.billing.status.state: (default) → Disabled"
        );
        // The second time the mark was still known: nothing shows that the notice was sent.
        assert_eq!(world.notices(), 2);
    }

    /// After a cut at any effect, the next call finishes what is left.
    #[tokio::test]
    async fn mark_is_carried_out_after_a_fault_at_every_effect() {
        at_every_effect(async |plan, place| {
            let world = World::new();
            let mark = world.mark();
            if world.carry_out(&mark, plan).await.is_err() {
                world.carry_out(&mark, &FaultPlan::none()).await.unwrap();
            }
            assert_eq!(world.state(), "Disabled", "{place}");
            assert!(world.notices() >= 1, "{place}");
            assert_eq!(world.store.keys(layout::DISABLED).len(), 0, "{place}");
            assert_eq!(world.trail().len(), 1, "{place}");
        })
        .await;
    }

    #[tokio::test]
    async fn mark_of_a_topic_that_is_gone_or_broken_is_dropped() {
        for bytes in [None, Some("?")] {
            let world = World::new();
            let mark = world.mark();
            match bytes {
                Some(bytes) => {
                    let put =
                        world
                            .store
                            .put("topics/orders.json", bytes.into(), PutCondition::Always);
                    put.await.unwrap();
                }
                None => world.store.delete("topics/orders.json").await.unwrap(),
            }
            world.carry_out(&mark, &FaultPlan::none()).await.unwrap();
            let left = world.store.keys(layout::DISABLED).len();
            assert_eq!((world.notices(), left), (0, 0), "{bytes:?}");
        }
    }

    #[tokio::test]
    async fn mark_waits_for_the_program_that_can_read_its_topic() {
        let world = World::new();
        let mark = world.mark();
        world.store.write("topics/orders.json", r#"{"v":99}"#);
        assert!(world.carry_out(&mark, &FaultPlan::none()).await.is_err());
        assert_eq!(world.store.keys(layout::DISABLED).len(), 1);
    }
}
