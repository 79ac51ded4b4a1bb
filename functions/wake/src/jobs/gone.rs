//! Disables subscriptions whose endpoints answered 410 Gone. deliver leaves a mark, because it has no
//! right to write topics; the next run carries it out.

use std::error::Error;

use posthaste_core::model::FormatError;
use posthaste_core::stored::{GoneMark, layout};
use posthaste_ports::{ObjectStore, PortError, Ports};
use posthaste_services::{GoneError, disable_gone};

use super::ended;
use crate::run::WakeRun;

/// Most marks that are looked at in one run.
const MARKS_MAX: usize = 100;

/// Reasons for which a mark is left to the next run.
#[derive(Debug, thiserror::Error)]
enum MarkError {
    #[error("failed to reach the marks of endpoints that are gone")]
    Store(#[from] PortError),
    #[error("failed to disable a subscription whose endpoint is gone")]
    Gone(#[from] GoneError),
    #[error("failed to understand the mark of an endpoint that is gone")]
    Newer(#[source] FormatError),
}

/// Disables the subscriptions whose endpoints answered 410 since the last run.
pub(crate) async fn disable_gone_subscriptions<P: Ports>(run: WakeRun<'_, P>) {
    ended::run_and_log(
        run,
        "subscriptions whose endpoints are gone",
        carry_out(run),
    )
    .await;
}

/// Carries marks out. One that fails keeps no other.
async fn carry_out<P: Ports>(run: WakeRun<'_, P>) -> Result<(), MarkError> {
    let store = &run.ports.state;
    let mut result = Ok(());
    for listed in store.list(layout::DISABLED, None, MARKS_MAX).await?.objects {
        run.note_work();
        if !run.may_begin() {
            break;
        }
        if let Err(error) = carry_out_mark(run, &listed.key).await {
            result = Err(error);
        }
    }
    result
}

async fn carry_out_mark<P: Ports>(run: WakeRun<'_, P>, key: &str) -> Result<(), MarkError> {
    let store = &run.ports.state;
    let Some(object) = store.get(key).await? else {
        return Ok(());
    };
    let mark = match GoneMark::parse(&object.bytes) {
        Ok(mark) => Some(mark),
        Err(error @ FormatError::Newer(_)) => return Err(MarkError::Newer(error)),
        Err(error) => {
            let error = &error as &dyn Error;
            tracing::error!(%key, error, "mark of an endpoint that is gone not read");
            None
        }
    };
    let Some(mark) = mark else {
        return Ok(store.delete(key).await?);
    };
    // Boxed: the compiler would find the layout of the SDK's futures too deep otherwise.
    Ok(Box::pin(disable_gone(store, &run.ports.notifier(), &mark)).await?)
}

#[cfg(test)]
mod tests {
    use posthaste_ports::Clock;
    use serde_json::json;

    use super::*;
    use crate::testing::{Kit, subscription};

    fn mark(kit: &Kit, subscription: &str) -> String {
        let at = kit.clock.now();
        let mark = json!({
            "v": 1, "topic": "orders", "subscription": subscription, "url": "https://a.example/",
            "at": at,
        });
        mark.to_string()
    }

    async fn state(kit: &Kit, name: &str) -> Option<String> {
        let object = kit.store.get("topics/orders.json").await.unwrap().unwrap();
        let record: serde_json::Value = serde_json::from_slice(&object.bytes).unwrap();
        let status = &record["settings"]["subscriptions"][name]["status"];
        status["state"].as_str().map(str::to_owned)
    }

    #[tokio::test]
    async fn marks_are_carried_out_and_deleted() {
        let kit = Kit::new();
        let both = json!({ "a": subscription(json!({})), "b": subscription(json!({})) });
        kit.topic(json!({ "subscriptions": both }));
        kit.store.write("disabled/orders.a", mark(&kit, "a"));
        disable_gone_subscriptions(kit.run()).await;
        let states = [state(&kit, "a").await, state(&kit, "b").await];
        assert_eq!(states, ["Disabled", "Active"].map(|it| Some(it.to_owned())));
        assert_eq!(kit.store.keys(layout::DISABLED), [""; 0]);
    }

    #[tokio::test]
    async fn mark_that_cannot_be_read_keeps_no_other() {
        let kit = Kit::new();
        kit.topic(json!({ "subscriptions": { "c": subscription(json!({})) } }));
        kit.store.write("disabled/orders.a", "?");
        kit.store.write("disabled/orders.b", r#"{"v":2}"#);
        kit.store.write("disabled/orders.c", mark(&kit, "c"));
        disable_gone_subscriptions(kit.run()).await;
        assert_eq!(state(&kit, "c").await.as_deref(), Some("Disabled"));
        // A newer program wrote this one, and carries it out.
        assert_eq!(kit.store.keys(layout::DISABLED), ["disabled/orders.b"]);
    }
}
