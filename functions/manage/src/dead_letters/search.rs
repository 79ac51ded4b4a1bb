//! The search for dead letters: a walk through the bucket with a limit of listings and reads.

use posthaste_core::api::{DeadLetterObject, DeadLetterPage, IsoTimestamp};
use posthaste_core::attempt::DeadLetterReason;
use posthaste_core::stored::WrittenIn;
use posthaste_ports::{ObjectMeta, ObjectStore, PortError};
use serde::Deserialize;

use crate::paging::cursor;

/// Keys of a listing, at most: S3 gives no more.
const LIST_KEYS: usize = 1000;

/// Most listings of a request. A page whose filter passes over more objects has a cursor.
const LISTINGS_MAX: usize = 10;

/// Most objects that a request reads to look for a reason. A page that needs more has a cursor.
const READS_MAX: usize = 50;

/// A search for dead letters of one subscription.
pub(super) struct Search {
    /// The prefix of the subscription's objects.
    pub(super) prefix: String,
    /// The time in which they were written.
    pub(super) written: WrittenIn,
    /// The reason for which an event was given up.
    pub(super) reason: Option<DeadLetterReason>,
    /// Most objects on the page.
    pub(super) items: usize,
    /// The key after which the page begins.
    pub(super) after: Option<String>,
}

impl Search {
    /// Finds one page.
    pub(super) async fn run(mut self, bucket: &impl ObjectStore) -> Result<DeadLetterPage, PortError> {
        let mut found = Vec::new();
        let mut reads_left = READS_MAX;
        for _ in 0..LISTINGS_MAX {
            let listing = bucket.list(&self.prefix, self.after.as_deref(), LIST_KEYS).await?;
            for object in listing.objects {
                // A full page ends at the next object, so that no cursor leads to an empty page.
                if found.len() == self.items || reads_left == 0 {
                    return Ok(page(found, self.after.as_deref()));
                }
                let key = object.key.clone();
                if self.is_in_time(&object) && self.has_reason(bucket, &key, &mut reads_left).await? {
                    let ObjectMeta { key, size, modified_at } = object;
                    found.push(DeadLetterObject { key, size, modified_at: IsoTimestamp(modified_at) });
                }
                self.after = Some(key);
            }
            if listing.next_after.is_none() {
                return Ok(page(found, None));
            }
            self.after = listing.next_after;
        }
        Ok(page(found, self.after.as_deref()))
    }

    fn is_in_time(&self, object: &ObjectMeta) -> bool {
        let WrittenIn { from, to } = self.written;
        (from.is_none() && to.is_none()) || self.written.takes(&self.prefix, &object.key, object.modified_at)
    }

    /// Whether an object holds an event with the reason of the search. Without a reason no object is read.
    async fn has_reason(
        &self,
        bucket: &impl ObjectStore,
        key: &str,
        reads_left: &mut usize,
    ) -> Result<bool, PortError> {
        let Some(reason) = self.reason else { return Ok(true) };
        *reads_left -= 1;
        let object = bucket.get(key).await?;
        Ok(object.is_some_and(|object| holds_reason(&object.bytes, reason)))
    }
}

/// Whether an object is a list with an event that was given up for `reason`; no if it cannot be parsed.
fn holds_reason(bytes: &[u8], reason: DeadLetterReason) -> bool {
    /// An event of either schema. CloudEvents allow names in lower case only.
    #[derive(Deserialize)]
    struct Event {
        #[serde(rename = "deadLetterReason")]
        event_grid: Option<serde_json::Value>,
        #[serde(rename = "deadletterreason")]
        cloud_events: Option<serde_json::Value>,
    }
    let Ok(expected) = serde_json::to_value(reason) else { return false };
    let events: Vec<Event> = serde_json::from_slice(bytes).unwrap_or_default();
    events.iter().any(|e| [&e.event_grid, &e.cloud_events].contains(&&Some(expected.clone())))
}

fn page(dead_letters: Vec<DeadLetterObject>, after: Option<&str>) -> DeadLetterPage {
    DeadLetterPage { dead_letters, cursor: after.map(cursor) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_found_under_either_name() {
        let check = |object: &str, expected| {
            let found = holds_reason(object.as_bytes(), DeadLetterReason::EndpointGone);
            assert_eq!(found, expected, "{object}");
        };
        check(r#"[{"deadLetterReason":"EndpointGone"}]"#, true);
        check(r#"[{"id":1},{"deadletterreason":"EndpointGone","data":{}}]"#, true);
        check(r#"[{"deadletterreason":"TimeToLiveExceeded"}]"#, false);
        check(r#"[{"data":{"deadLetterReason":"EndpointGone"}}]"#, false);
        check("[]", false);
        check("not JSON", false);
        check(r#"{"deadLetterReason":"EndpointGone"}"#, false);
    }
}
