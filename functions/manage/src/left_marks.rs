//! Lists of marks that processes left.

use std::future::ready;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use posthaste_ports::{ObjectMeta, ObjectStore};
use posthaste_services::list_objects;

use crate::answer::ApiError;
use crate::begun_requests::LookPlace;

/// Most marks that are looked at in one go.
const MARKS_MAX: usize = 100;

/// Marks under a prefix, from where the last look ended, and then those before.
pub(crate) async fn list_left_marks(
    store: &impl ObjectStore,
    prefix: &str,
    place: &LookPlace,
    is_left: impl Fn(&ObjectMeta) -> bool,
) -> Result<Vec<ObjectMeta>, ApiError> {
    let start = place.start_key();
    let behind = list_objects(store, prefix, start.clone());
    let before = stream::iter(start.is_some().then(|| list_objects(store, prefix, None)))
        .flatten()
        .try_take_while(|mark| {
            let is_before = start.as_ref().is_some_and(|start| mark.key <= *start);
            ready(Ok(is_before))
        });
    let marks = behind
        .chain(before)
        .try_filter(|mark| ready(is_left(mark)))
        .take(MARKS_MAX);
    Ok(marks.try_collect().await?)
}
