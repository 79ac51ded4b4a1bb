//! The program's own count of what it still has to deliver.

use std::collections::BTreeMap;

use posthaste_tests::api::Api;
use serde_json::Value;

use crate::machine::TOPIC;
use crate::moods::subscriptions;

/// Returns what waits, by subscription, as the program says. Subscriptions for which nothing waits
/// are left out.
pub(crate) fn waiting(api: &Api) -> BTreeMap<&'static str, Value> {
    let of = |name| {
        let mut shown = api.show(&format!("/topics/{TOPIC}/subscriptions/{name}"));
        (name, shown["waiting"].take())
    };
    let all = subscriptions().map(of);
    all.filter(|(_, waiting)| waiting["count"] != 0).collect()
}

/// Returns the faults of deliveries without an end: they wait, or they are lost.
pub(crate) fn without_an_end(
    open: &[(&'static str, u32)],
    waiting: &BTreeMap<&'static str, Value>,
) -> Vec<String> {
    let mut faults = Vec::new();
    for name in subscriptions() {
        let open: Vec<u32> = open
            .iter()
            .filter(|(of, _)| *of == name)
            .map(|(_, event)| *event)
            .collect();
        let waiting = waiting.get(name);
        let waits = waiting.map_or(0, |it| it["count"].as_u64().unwrap_or_default());
        let lost = (open.len() as u64).saturating_sub(waits);
        let first = &open[..open.len().min(5)];
        if lost > 0 {
            faults.push(format!(
                "{name}: {lost} of {} without an end wait nowhere, such as {first:?}",
                open.len()
            ));
        }
        if let Some(waiting) = waiting {
            faults.push(format!("{name}: still waiting: {waiting}"));
        }
    }
    faults
}
