//! The count of parked and held objects against a list of their keys.

use std::collections::BTreeMap;

use bytes::Bytes;
use posthaste_core::api::WaitingCount;
use posthaste_core::model::{SubscriptionName, Timestamp, TopicName};
use posthaste_core::stored::layout;
use posthaste_ports::{ObjectStore, PutCondition};
use proptest::prelude::*;

use super::device::Device;
use super::{clock, open_with};
use crate::{EmbeddedStore, LocalOptions};
use posthaste_testkit::ManualClock;

#[derive(Debug, Clone)]
enum Step {
    Put {
        key: String,
        condition: PutCondition,
    },
    Delete {
        key: String,
    },
    Restart,
}

fn key() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["billing", "crm", "erp"]);
    let id = prop::sample::select(vec![
        "x",
        "x.3.1700000000",
        "y.200.1600000000",
        "z.1.1700000001",
    ]);
    (name, id, any::<bool>(), 0_u64..3).prop_map(|(name, id, is_held, minute)| {
        let topic = TopicName::parse("orders").unwrap();
        let name = SubscriptionName::parse(name).unwrap();
        let at = Timestamp::from_millis(1_800_000_000_000 + minute * 60_000);
        if is_held {
            layout::held_key(&topic, &name, at, id)
        } else {
            layout::parked_key(at, &topic, &name, id)
        }
    })
}

fn step() -> impl Strategy<Value = Step> {
    let condition = prop_oneof![
        3 => Just(PutCondition::Always),
        1 => Just(PutCondition::IfAbsent),
    ];
    prop_oneof![
        6 => (key(), condition).prop_map(|(key, condition)| Step::Put { key, condition }),
        4 => key().prop_map(|key| Step::Delete { key }),
        1 => Just(Step::Restart),
    ]
}

/// The counts that a list of all keys gives.
async fn listed(local: &EmbeddedStore<ManualClock>) -> BTreeMap<String, WaitingCount> {
    let mut counts = BTreeMap::<String, WaitingCount>::new();
    let page = local.state_store().list("", None, 1000).await.unwrap();
    for object in page.objects {
        let key = &object.key;
        let carried = layout::carried_of_key(&object.key);
        if let Some(folder) = layout::held_folder(key) {
            counts
                .entry(folder.to_owned())
                .or_default()
                .add_held(carried);
        }
        if let Some(folder) = layout::parked_folder(key) {
            let due = layout::parked_due_minute(key).map(layout::start_of_minute);
            counts
                .entry(folder.to_owned())
                .or_default()
                .add_parked(carried, due);
        }
    }
    counts
}

async fn check(local: &EmbeddedStore<ManualClock>) {
    let listed = listed(local).await;
    let all = local.state_store().waiting_objects(None).unwrap();
    let all: BTreeMap<_, _> = all
        .into_iter()
        .map(|(of, it)| (of.to_string(), it))
        .collect();
    assert_eq!(all, listed);
    let folders = ["orders.billing", "orders.none"].map(str::to_owned);
    let some = local.state_store().waiting_objects(Some(&folders)).unwrap();
    let some: Vec<_> = some.into_iter().map(|(_, it)| it).collect();
    let expected: Vec<_> = listed.get("orders.billing").copied().into_iter().collect();
    assert_eq!(some, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn objects_are_counted_as_a_list_counts_them(steps in prop::collection::vec(step(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (device, clock) = (Device::default(), clock());
            let open = || open_with(&device, &LocalOptions::default(), &clock);
            let mut local = open();
            for step in steps {
                match step {
                    Step::Put { key, condition } => {
                        drop(local.state_store().put(&key, Bytes::from_static(b"{}"), condition).await);
                    }
                    Step::Delete { key } => local.state_store().delete(&key).await.unwrap(),
                    Step::Restart => {
                        local.close().await;
                        local = open();
                    }
                }
                check(&local).await;
            }
        });
    }
}
