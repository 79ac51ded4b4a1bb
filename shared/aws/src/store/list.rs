//! Listing: S3's pages as the port promises them.

use aws_sdk_s3::operation::list_objects_v2::ListObjectsV2Output;
use aws_sdk_s3::types::Object;
use posthaste_core::model::Timestamp;
use posthaste_ports::{ErrorKind, ListPage, ObjectMeta, PortError, validate};

use super::bucket::S3Bucket;
use crate::clients::failure::to_port_error;

/// Most pages in a row without an object that are skipped before the listing counts as broken. S3
/// may return such a page where much was deleted.
const EMPTY_PAGES_MAX: usize = 100;

const LISTING: &str = "list objects";

/// A page of at most `max` objects, empty only at the end.
pub(super) async fn next_page(
    bucket: &S3Bucket,
    prefix: &str,
    after: Option<&str>,
    max: usize,
) -> Result<ListPage, PortError> {
    validate::page_size(max).map_err(|refusal| refusal.into_port_error(LISTING))?;
    let mut token = None;
    for _ in 0..EMPTY_PAGES_MAX {
        let request = bucket.client.list_objects_v2().bucket(&bucket.name);
        let request = request
            .set_prefix(some_text(prefix))
            .set_start_after(after.and_then(some_text))
            .set_continuation_token(token)
            .max_keys(i32::try_from(max).unwrap_or(i32::MAX));
        let mut answer = request
            .send()
            .await
            .map_err(|e| to_port_error(LISTING, e))?;
        token = answer.next_continuation_token.take();
        let page = parse_page(answer, max)?;
        // Without a token there is no next page.
        if !page.objects.is_empty() || token.is_none() {
            return Ok(page);
        }
    }
    let cause = format!("{EMPTY_PAGES_MAX} pages in a row were empty and not the last");
    Err(PortError::with_cause(LISTING, ErrorKind::Other, cause))
}

/// S3 refuses an empty parameter here and there; none means the same.
fn some_text(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn parse_page(answer: ListObjectsV2Output, max: usize) -> Result<ListPage, PortError> {
    let listed = answer.contents.unwrap_or_default();
    let has_more = answer.is_truncated.unwrap_or_default() || listed.len() > max;
    let objects = listed
        .into_iter()
        .take(max)
        .map(object_meta)
        .collect::<Option<Vec<_>>>();
    let incomplete = "an object of the listing lacks its key, size or time";
    let objects =
        objects.ok_or_else(|| PortError::with_cause(LISTING, ErrorKind::Other, incomplete))?;
    let next_after = objects
        .last()
        .filter(|_| has_more)
        .map(|last| last.key.clone());
    Ok(ListPage {
        objects,
        next_after,
    })
}

fn object_meta(object: Object) -> Option<ObjectMeta> {
    let modified_ms = u64::try_from(object.last_modified?.to_millis().ok()?).ok()?;
    Some(ObjectMeta {
        key: object.key?,
        size: u64::try_from(object.size?).ok()?,
        modified_at: Timestamp::from_millis(modified_ms),
    })
}

#[cfg(test)]
mod tests {
    use aws_sdk_s3::primitives::DateTime;

    use super::*;

    fn object(key: &str) -> Object {
        Object::builder()
            .key(key)
            .size(3)
            .last_modified(DateTime::from_millis(1_700_000_000_500))
            .build()
    }

    fn listed(keys: &[&str], is_truncated: bool, max: usize) -> (Vec<String>, Option<String>) {
        let answer = ListObjectsV2Output::builder()
            .set_contents(Some(keys.iter().map(|key| object(key)).collect()))
            .is_truncated(is_truncated);
        let page = parse_page(answer.build(), max).unwrap();
        (
            page.objects.into_iter().map(|object| object.key).collect(),
            page.next_after,
        )
    }

    fn expect(keys: &[&str], next_after: Option<&str>) -> (Vec<String>, Option<String>) {
        (
            keys.iter().map(|key| (*key).to_owned()).collect(),
            next_after.map(str::to_owned),
        )
    }

    #[test]
    fn cut_page_continues_after_its_last_key_a_whole_one_ends() {
        assert_eq!(listed(&["a", "b"], true, 2), expect(&["a", "b"], Some("b")));
        assert_eq!(listed(&["a"], true, 2), expect(&["a"], Some("a")));
        assert_eq!(listed(&["a", "b"], false, 2), expect(&["a", "b"], None));
        assert_eq!(listed(&[], false, 2), expect(&[], None));
    }

    #[test]
    fn a_page_never_holds_more_than_was_asked() {
        assert_eq!(
            listed(&["a", "b", "c"], false, 2),
            expect(&["a", "b"], Some("b"))
        );
    }

    #[test]
    fn an_object_is_read_with_size_and_time() {
        let read = object_meta(object("k")).unwrap();
        assert_eq!(
            (read.size, read.modified_at),
            (3, Timestamp::from_millis(1_700_000_000_500))
        );
        for lacking in [
            Object::builder().key("k").size(3).build(),
            Object::builder().size(3).build(),
        ] {
            assert_eq!(object_meta(lacking), None);
        }
    }
}
