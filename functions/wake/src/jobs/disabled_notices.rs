//! Notices that an operator disabled a subscription. manage leaves a mark before it
//! writes the record; the next run sends the notice and then deletes the mark, so that the notice is sent
//! at least once.

use std::error::Error;
use std::time::Duration;

use posthaste_core::api::StatusState;
use posthaste_core::api::notice::Notice;
use posthaste_core::stored::{DisabledMark, TopicRecord, layout};
use posthaste_ports::{Clock, ObjectStore, PortError, Ports};
use posthaste_services::NoticeError;

use super::ended;
use crate::run::WakeRun;

/// The time within which the write follows that a mark was left for. A request of manage ends
/// before.
const WRITE_FOLLOWS_WITHIN: Duration = Duration::from_mins(1);

/// Most marks that are looked at in one run.
const MARKS_MAX: usize = 100;

/// Why notices are not sent in this run.
#[derive(Debug, thiserror::Error)]
enum NotifyError {
    #[error("failed to reach the marks of disabled subscriptions")]
    Store(#[from] PortError),
    #[error("failed to send the notice")]
    Notice(#[from] NoticeError),
}

/// Sends the notices of the subscriptions that operators disabled since the last run.
pub(crate) async fn send_disabled_notices<P: Ports>(run: WakeRun<'_, P>) {
    ended::run_and_log(run, "notices of disabled subscriptions", send_notices(run)).await;
}

async fn send_notices<P: Ports>(run: WakeRun<'_, P>) -> Result<(), NotifyError> {
    let store = &run.ports.state;
    for listed in store.list(layout::TELLING, None, MARKS_MAX).await?.objects {
        run.note_work();
        if !run.may_begin() {
            break;
        }
        let key = &listed.key;
        let Some(object) = store.get(key).await? else {
            continue;
        };
        match DisabledMark::parse(&object.bytes) {
            Ok(mark) if !is_written(run, &mark).await? => {
                let now = run.ports.clock.now();
                if !run
                    .left
                    .counts_as_left(mark.since, now, WRITE_FOLLOWS_WITHIN)
                {
                    continue;
                }
            }
            Ok(mark) => {
                let notice = Notice::Disabled(mark.notice());
                // Boxed: the compiler would find the layout of the SDK's futures too deep
                // otherwise.
                Box::pin(
                    run.ports
                        .notifier()
                        .send_about_topic(&mark.topic, &[notice]),
                )
                .await?;
            }
            Err(error) => {
                let error = &error as &dyn Error;
                tracing::error!(%key, error, "mark of a disabled subscription not read, no notice sent");
            }
        }
        store.delete(key).await?;
    }
    Ok(())
}

/// Whether the write that a mark was left for has happened, as far as the record says: the
/// subscription is disabled since then, or the topic is gone. A later write says nothing, because it
/// may have been first, and the one with the mark refused.
async fn is_written<P: Ports>(run: WakeRun<'_, P>, mark: &DisabledMark) -> Result<bool, PortError> {
    let key = layout::topic_record_key(&mark.topic);
    let Some(object) = run.ports.state.get(&key).await? else {
        return Ok(true);
    };
    // Of a record that cannot be read, nothing says that it was not.
    let Ok(record) = TopicRecord::parse(&object.bytes) else {
        return Ok(true);
    };
    let found = record.settings.find_subscription(&mark.subscription);
    let status = found.and_then(|(_, settings)| settings.status.as_ref());
    Ok(record.deleted_at.is_some()
        || status.is_some_and(|status| {
            status.state == StatusState::Disabled && status.since.0 == mark.since
        }))
}

#[cfg(test)]
mod tests {
    use posthaste_testkit::records::{subscription_name, topic_name};
    use serde_json::json;

    use super::*;
    use crate::testing::{Kit, subscription};

    /// The record was written after the mark, and not by its request.
    #[tokio::test]
    async fn later_write_of_the_topic_makes_no_disabled_notice() {
        let kit = Kit::new();
        let mark = DisabledMark {
            topic: topic_name("orders"),
            subscription: subscription_name("billing"),
            reason: "by operator".to_owned(),
            since: kit.clock.now(),
        };
        let key = layout::disabled_notice_key(&mark.topic, &mark.subscription);
        kit.store.write(&key, mark.render());
        kit.clock.advance(Duration::from_secs(1));
        kit.topic(json!({ "subscriptions": { "billing": subscription(json!({})) } }));
        let written = is_written(kit.run(), &mark).await.unwrap();
        send_disabled_notices(kit.run()).await;
        assert_eq!((written, kit.store.keys(layout::TELLING).len()), (false, 1));
        kit.clock.advance(WRITE_FOLLOWS_WITHIN);
        send_disabled_notices(kit.run()).await;
        assert_eq!(kit.store.keys(layout::TELLING), Vec::<String>::new());
    }

    #[tokio::test]
    async fn a_mark_that_cannot_be_read_is_deleted_and_keeps_no_other() {
        let kit = Kit::new();
        for n in 0..3 {
            kit.store.write(&format!("telling/orders.s{n}"), "?");
        }
        send_disabled_notices(kit.run()).await;
        assert_eq!(kit.store.keys(layout::TELLING), Vec::<String>::new());
    }
}
