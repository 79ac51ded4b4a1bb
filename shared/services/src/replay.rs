//! The dead-letter objects of a replay, page by page: for carrying it out, and for counting before.

use posthaste_core::api::{LeftOutCounts, LeftOutReason};
use posthaste_core::release::ReplaySelection;
use posthaste_ports::validate::LIST_PAGE_MAX;
use posthaste_ports::{ListPage, ObjectStore, PortError};

/// An object that may hold selected dead letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LetterObject {
    /// The key.
    pub key: String,
    /// The size in bytes; `None` if the key was given and not listed.
    pub bytes: Option<u64>,
}

/// A page of such objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LetterObjects {
    /// The objects, in the order of their keys. There may be none on a page that is not the last.
    pub objects: Vec<LetterObject>,
    /// The objects between them that are left out, in the same order.
    pub others: Vec<(String, LeftOutReason)>,
    /// The key after which the next page begins, if there may be more.
    pub next_after: Option<String>,
}

impl LetterObjects {
    /// Counts the objects that are left out of the page behind the key `after`, up to the key
    /// `until`. A bound that is `None` restricts nothing.
    pub fn left_out(&self, after: Option<&str>, until: Option<&str>) -> LeftOutCounts {
        let between = self.others.iter().filter(|(key, _)| {
            after.is_none_or(|after| key.as_str() > after)
                && until.is_none_or(|until| key.as_str() <= until)
        });
        between.map(|(_, reason)| *reason).collect()
    }
}

/// The next objects of a replay, after this key.
pub async fn letter_objects(
    bucket: &impl ObjectStore,
    selection: &ReplaySelection,
    after: Option<&str>,
) -> Result<LetterObjects, PortError> {
    if let Some(keys) = selection.keys_after(after) {
        let objects = keys
            .map(|key| LetterObject {
                key: key.to_owned(),
                bytes: None,
            })
            .collect();
        return Ok(LetterObjects {
            objects,
            ..LetterObjects::default()
        });
    }
    letter_objects_under(bucket, selection, selection.prefix(), after).await
}

/// The next objects of a replay without named objects, of those under this prefix, after this key.
pub async fn letter_objects_under(
    bucket: &impl ObjectStore,
    selection: &ReplaySelection,
    prefix: &str,
    after: Option<&str>,
) -> Result<LetterObjects, PortError> {
    let ListPage {
        objects,
        next_after,
    } = bucket.list(prefix, after, LIST_PAGE_MAX).await?;
    let mut page = LetterObjects {
        next_after,
        ..LetterObjects::default()
    };
    for meta in objects {
        match selection.leaves_out_object(&meta.key, meta.modified_at) {
            Some(reason) => page.others.push((meta.key, reason)),
            None => page.objects.push(LetterObject {
                key: meta.key,
                bytes: Some(meta.size),
            }),
        }
    }
    Ok(page)
}
