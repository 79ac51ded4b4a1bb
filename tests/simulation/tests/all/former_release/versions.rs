//! The versions that 0.1.0 reads, kept as they were when it was cut: with what this program leaves,
//! 0.1.0 goes on.

use posthaste_ports::QueueName;
use serde::Deserialize;

use super::downgrade::full;
use super::moved::{Left, taken};

/// The newest version that 0.1.0 reads in each place, by how the place begins. What is newer waits
/// for a newer program. Never edited.
const READ_BY_0_1_0: [(&str, u32); 20] = [
    ("activity/", 1),
    ("claims/", 1),
    ("console-key.json", 1),
    ("dead letters", 4),
    ("deliveries", 3),
    ("disabled/", 1),
    ("drain/", 3),
    ("ending/", 1),
    ("held/", 3),
    ("links/", 1),
    ("owner.json", 1),
    ("parked/", 3),
    ("pressure.json", 1),
    ("rates/", 1),
    ("records", 2),
    ("refused/", 3),
    ("replaying/", 3),
    ("replays/", 3),
    ("serve-run.json", 1),
    ("topics/", 2),
];

/// Those of them that the test leaves.
const LEFT: [&str; 9] = [
    "dead letters",
    "deliveries",
    "held/",
    "links/",
    "parked/",
    "pressure.json",
    "records",
    "replays/",
    "topics/",
];

/// The version of an object or message. Objects without one are read by every program.
#[derive(Deserialize)]
struct Version {
    v: Option<u32>,
}

/// Checks a text against the rules, and answers the place that it has in them.
fn checked(place: &str, text: &str) -> Option<&'static str> {
    let Version { v } = serde_json::from_str(text).ok()?;
    let rule = READ_BY_0_1_0
        .iter()
        .find(|(begin, _)| place.starts_with(begin));
    let (begin, newest) = rule?;
    let v = v?;
    assert!(
        v <= *newest,
        "{place} has version {v}, which 0.1.0 leaves to a newer program"
    );
    Some(begin)
}

#[tokio::test]
async fn release_0_1_0_reads_what_this_program_leaves() {
    let world = full().await;
    let records = taken(&world, QueueName::Records).await;
    let left = Left::by(world).await;
    let records = records.iter().map(|text| ("records", text.as_str()));
    let texts = left.texts().chain(records);
    let mut seen: Vec<_> = texts
        .filter_map(|(place, text)| checked(place, text))
        .collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, LEFT);
}
