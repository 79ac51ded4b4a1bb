//! The dead-letter objects of a replay, page by page: for carrying it out, and for counting before.

use posthaste_core::release::Selection;
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

/// A page of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LetterObjects {
    /// The objects, in the order of their keys. There may be none on a page that is not the last.
    pub objects: Vec<LetterObject>,
    /// The key after which the next page begins, if there may be more.
    pub next_after: Option<String>,
}

/// The next objects of a replay, after this key.
pub async fn letter_objects(
    bucket: &impl ObjectStore,
    selection: &Selection,
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
            next_after: None,
        });
    }
    let ListPage {
        objects,
        next_after,
    } = bucket
        .list(selection.prefix(), after, LIST_PAGE_MAX)
        .await?;
    let wanted = objects
        .into_iter()
        .filter(|meta| selection.takes_object(&meta.key, meta.modified_at));
    let objects = wanted
        .map(|meta| LetterObject {
            key: meta.key,
            bytes: Some(meta.size),
        })
        .collect();
    Ok(LetterObjects {
        objects,
        next_after,
    })
}
