//! The audit trail: an entry is written before its change, and again with its end before the
//! response. So no change is without an entry, and one whose end could not be written says so by
//! its outcome.

use std::error::Error;

use posthaste_core::api::{
    AuditAction, AuditCaller, AuditDoor, AuditEntry, AuditOutcome, MemberChange, PeerAddress,
};
use posthaste_core::model::{SubscriptionName, Timestamp};
use posthaste_core::stored::{TopicRecord, layout, record_changes};
use posthaste_ports::{Clock, Entropy, ErrorKind, ObjectStore, PortError, PutCondition};

use crate::ObjectEdit;
use crate::update::create_or_update;

/// The note of a subscription or topic that was deleted because its time was over.
const TIME_OVER: &str = "its time was over";

/// An entry of what posthaste does by itself.
pub fn own_entry(clock: &impl Clock, entropy: &impl Entropy, action: AuditAction) -> AuditEntry {
    let id = entropy.uuid().simple().to_string();
    AuditEntry::new(id, clock.now(), AuditCaller::posthaste_itself(), action)
}

/// Writes an entry down, before its change: if this fails, the change must not be made.
pub async fn begin_change(store: &impl ObjectStore, entry: &AuditEntry) -> Result<(), PortError> {
    let key = layout::audit_entry_key(entry);
    // Boxed: the compiler finds the layout of the SDK's futures too deep otherwise.
    Box::pin(store.put(&key, entry.render(), PutCondition::Always))
        .await
        .map(drop)
}

/// Writes down how a change ended that was begun with this entry. If that fails, the entry
/// continues to say that the change was begun.
pub async fn end_change(store: &impl ObjectStore, entry: AuditEntry, outcome: AuditOutcome) {
    let entry = entry.with_outcome(outcome);
    if let Err(error) = begin_change(store, &entry).await {
        let action = entry.action.to_string();
        tracing::warn!(
            action, outcome = %entry.outcome, error = &error as &dyn Error,
            "the end of a change is missing in the audit trail"
        );
    }
}

/// The outcome of a change that ended like this.
pub fn outcome_of<T>(result: &Result<T, PortError>) -> AuditOutcome {
    match result {
        Ok(_) => AuditOutcome::Done,
        Err(error) if error.kind == ErrorKind::PreconditionFailed => AuditOutcome::Refused,
        Err(_) => AuditOutcome::Failed,
    }
}

/// Writes down that subscriptions are taken out of a topic's record because their time was over.
/// All processes that do it write the same entries.
pub async fn note_expired(
    store: &impl ObjectStore,
    before: &TopicRecord,
    now: Timestamp,
) -> Result<(), PortError> {
    for (name, settings) in &before.settings.subscriptions {
        let Some(ends_at) = settings.expiration_time_utc.filter(|it| now >= it.0) else {
            continue;
        };
        let id = layout::expired_id(name);
        let action = AuditAction::DeleteSubscription;
        let entry = AuditEntry::new(id, ends_at.0, AuditCaller::posthaste_itself(), action)
            .of_subscription(&before.name, name)
            .with_detail(TIME_OVER)
            .with_changes(changes_without(before, std::slice::from_ref(name), now))
            .with_outcome(AuditOutcome::Done);
        begin_change(store, &entry).await?;
    }
    Ok(())
}

/// The changes of a record that loses these subscriptions.
pub fn changes_without(
    before: &TopicRecord,
    names: &[SubscriptionName],
    now: Timestamp,
) -> Vec<MemberChange> {
    let mut after = before.clone();
    let subscriptions = &mut after.settings.subscriptions;
    subscriptions.retain(|name, _| !names.contains(name));
    record_changes(Some(before), Some(&after), now)
}

/// Adds keys that were refused at a door to the entry of this hour. A failure is logged: the keys
/// open nothing either way.
pub async fn note_refused_keys(
    store: &impl ObjectStore,
    now: Timestamp,
    door: AuditDoor,
    peer: Option<PeerAddress>,
    keys: u64,
) {
    let (id, hour) = layout::refused_keys(door, now);
    let caller = AuditCaller::without_key(door, peer);
    let more = AuditEntry {
        count: Some(keys),
        ..AuditEntry::new(id, hour, caller, AuditAction::RefusedKeys)
    }
    .with_outcome(AuditOutcome::Refused);
    let key = layout::audit_entry_key(&more);
    let update = create_or_update(store, &key, |found| {
        let before = found.and_then(|object| AuditEntry::parse(&object.bytes).ok());
        let entry = before.map_or_else(|| more.clone(), |before| before.with_refused(&more));
        Ok::<_, std::convert::Infallible>(ObjectEdit::Write(entry.render(), ()))
    });
    if let Err(error) = Box::pin(update).await {
        let error = &error as &dyn Error;
        tracing::warn!(keys, error, "refused keys are missing in the audit trail");
    }
}
