//! S3 as the object store: one bucket of whole objects, changed only by puts that tell whether they
//! won.
//!
//! An `ETag` of S3 is the content's: an object that is written over with the very same bytes keeps
//! its version. A writer that must tell two such writes apart (a lease) writes its own name into
//! the object.

mod body;
mod bucket;
mod list;
mod put;
mod range;

use std::ops::Range;

use aws_sdk_s3::Client;
use aws_smithy_async::rt::sleep::SharedAsyncSleep;
use bytes::Bytes;
use posthaste_ports::{
    ETag, ErrorKind, ListPage, ObjectStore, PortError, PutCondition, RevalidatedObject,
    StoredObject, validate,
};

use crate::clients::failure::to_port_error;
pub use body::{BODY_TIMEOUT, OBJECT_BYTES_MAX};
use bucket::S3Bucket;
use put::{ConditionalPut, PUTTING};

const GETTING: &str = "get an object";
const DELETING: &str = "delete an object";

/// One bucket. Clones share connections.
#[derive(Debug, Clone)]
pub struct S3Store(S3Bucket);

impl S3Store {
    pub(crate) fn new(client: Client, bucket: &str, sleep: SharedAsyncSleep) -> Self {
        Self(S3Bucket {
            client,
            name: bucket.to_owned(),
            sleep,
            object_bytes_max: OBJECT_BYTES_MAX,
        })
    }

    /// The bucket's name.
    pub fn bucket(&self) -> &str {
        &self.0.name
    }

    /// The same bucket, with objects of up to this number of bytes.
    #[must_use]
    pub fn with_objects_up_to(self, bytes: u64) -> Self {
        let object_bytes_max = usize::try_from(bytes).unwrap_or(usize::MAX);
        Self(S3Bucket {
            object_bytes_max,
            ..self.0
        })
    }
}

impl ObjectStore for S3Store {
    async fn get(&self, key: &str) -> Result<Option<StoredObject>, PortError> {
        validate::object_key(key).map_err(|refusal| refusal.into_port_error(GETTING))?;
        match self.0.read_object(GETTING, key, None).await? {
            RevalidatedObject::Changed(object) => Ok(Some(object)),
            RevalidatedObject::Missing => Ok(None),
            // There was no condition.
            RevalidatedObject::Unchanged => Err(PortError::with_cause(
                GETTING,
                ErrorKind::Other,
                "the answer makes no sense",
            )),
        }
    }

    async fn get_if_changed(
        &self,
        key: &str,
        known: &ETag,
    ) -> Result<RevalidatedObject, PortError> {
        validate::object_key(key).map_err(|refusal| refusal.into_port_error(GETTING))?;
        self.0.read_object(GETTING, key, Some(known)).await
    }

    async fn get_range(&self, key: &str, range: Range<u64>) -> Result<Bytes, PortError> {
        range::read_exactly(&self.0, key, &range).await
    }

    async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        condition: PutCondition,
    ) -> Result<ETag, PortError> {
        validate::object_key(key).map_err(|refusal| refusal.into_port_error(PUTTING))?;
        let most = self.0.object_bytes_max;
        if bytes.len() > most {
            let cause = format!(
                "an object of {} bytes, expected at most {most}",
                bytes.len()
            );
            return Err(PortError::with_cause(PUTTING, ErrorKind::Invalid, cause));
        }
        ConditionalPut {
            bucket: &self.0,
            key,
            bytes,
            condition,
        }
        .run()
        .await
    }

    async fn delete(&self, key: &str) -> Result<(), PortError> {
        validate::object_key(key).map_err(|refusal| refusal.into_port_error(DELETING))?;
        let request = self.0.client.delete_object().bucket(&self.0.name).key(key);
        request
            .send()
            .await
            .map_err(|e| to_port_error(DELETING, e))?;
        Ok(())
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<ListPage, PortError> {
        list::next_page(&self.0, prefix, after, max).await
    }
}
