//! Keys of objects that stand for a selection of dead letters or events: the same selection has the
//! same key however it is written.

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::model::hex;

/// Bytes of the digest that tell selections apart.
const DIGEST_BYTES: usize = 16;

/// The key under `prefix` of what is selected by `selection`: plain data with text keys.
pub(super) fn selection_key(prefix: &str, selection: &impl Serialize) -> String {
    // Serialising such data cannot fail.
    let digest = Sha256::digest(serde_json::to_vec(selection).unwrap_or_default());
    format!("{prefix}{}", hex::encode(&digest[..DIGEST_BYTES]))
}

/// The items in order, each once.
pub(super) fn in_order<T: Clone + Ord>(items: &[T]) -> Vec<T> {
    let mut items = items.to_vec();
    items.sort_unstable();
    items.dedup();
    items
}
