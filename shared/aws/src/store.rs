//! S3 as the object store: one bucket of whole objects, changed only by puts that tell whether they won.
//!
//! An `ETag` of S3 is the content's: an object that is written over with the very same bytes keeps its version. Whoever
//! must tell two such writes apart (a lease) writes who it is into the object.

mod body;
mod list;
mod put;

use std::time::Duration;

use aws_sdk_s3::Client;
use aws_sdk_s3::operation::get_object::{GetObjectError, GetObjectOutput};
use aws_smithy_async::rt::sleep::SharedAsyncSleep;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use bytes::Bytes;
use posthaste_ports::{
    ETag, ErrorKind, ListPage, Object, ObjectStore, PortError, PutCondition, Revalidated, validate,
};

use crate::clients::failure::failure;
use put::Put;

/// Largest object, in bytes. Dead letters are gathered to 8 MiB and one more message; a function has room for a few
/// such, and no room for what somebody else laid into the bucket.
pub const OBJECT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// How long a body may take once its head has come.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Most reads of one object whose body breaks off. The SDK tries again only until the head has come.
const READS_MAX: usize = 3;

const GETTING: &str = "get an object";
const PUTTING: &str = "put an object";
const DELETING: &str = "delete an object";

/// One bucket. Clones share connections.
#[derive(Debug, Clone)]
pub struct S3Store {
    client: Client,
    bucket: String,
    sleep: SharedAsyncSleep,
}

/// An object that is larger than [`OBJECT_BYTES_MAX`].
#[derive(Debug, thiserror::Error)]
#[error("an object of {0} bytes, expected at most {OBJECT_BYTES_MAX}")]
struct TooLarge(usize);

/// A read without a condition was told that nothing changed, or the head of an object has no version.
#[derive(Debug, thiserror::Error)]
#[error("the answer makes no sense")]
struct Nonsense;

impl S3Store {
    pub(crate) fn new(client: Client, bucket: &str, sleep: SharedAsyncSleep) -> Self {
        Self { client, bucket: bucket.to_owned(), sleep }
    }

    async fn read(
        &self,
        doing: &'static str,
        key: &str,
        known: Option<&ETag>,
    ) -> Result<Revalidated, PortError> {
        let mut reads = 1;
        loop {
            let request = self.client.get_object().bucket(&self.bucket).key(key);
            let answer = match request.set_if_none_match(known.map(|etag| etag.0.clone())).send().await {
                Ok(answer) => answer,
                Err(error) => return without_object(doing, error),
            };
            match self.object(answer).await {
                Ok(object) => return Ok(Revalidated::Changed(object)),
                Err(error) if error.is_passing() && reads < READS_MAX => reads += 1,
                Err(error) => return Err(error.at(doing)),
            }
        }
    }

    async fn object(&self, answer: GetObjectOutput) -> Result<Object, body::BodyError> {
        let etag = answer.e_tag.map(ETag).ok_or(body::BodyError::NoETag)?;
        Ok(Object { bytes: body::read(answer.body, &self.sleep).await?, etag })
    }
}

/// What an answer without an object means. A bucket that is not there is an error, and no absent object.
fn without_object(
    doing: &'static str,
    error: SdkError<GetObjectError, HttpResponse>,
) -> Result<Revalidated, PortError> {
    let code = error.as_service_error().and_then(ProvideErrorMetadata::code);
    let status = error.raw_response().map(|answer| answer.status().as_u16());
    match (status, code) {
        (Some(304), _) => Ok(Revalidated::Unchanged),
        (Some(404), Some("NoSuchKey")) => Ok(Revalidated::Missing),
        _ => Err(failure(doing, error)),
    }
}

impl ObjectStore for S3Store {
    async fn get(&self, key: &str) -> Result<Option<Object>, PortError> {
        validate::key(key).map_err(|refusal| refusal.at(GETTING))?;
        match self.read(GETTING, key, None).await? {
            Revalidated::Changed(object) => Ok(Some(object)),
            Revalidated::Missing => Ok(None),
            Revalidated::Unchanged => Err(PortError::caused(GETTING, ErrorKind::Other, Nonsense)),
        }
    }

    async fn get_if_changed(&self, key: &str, known: &ETag) -> Result<Revalidated, PortError> {
        validate::key(key).map_err(|refusal| refusal.at(GETTING))?;
        self.read(GETTING, key, Some(known)).await
    }

    async fn put(&self, key: &str, bytes: Bytes, condition: PutCondition) -> Result<ETag, PortError> {
        validate::key(key).map_err(|refusal| refusal.at(PUTTING))?;
        if bytes.len() > OBJECT_BYTES_MAX {
            return Err(PortError::caused(PUTTING, ErrorKind::Invalid, TooLarge(bytes.len())));
        }
        Put { store: self, key, bytes, condition }.run().await
    }

    async fn delete(&self, key: &str) -> Result<(), PortError> {
        validate::key(key).map_err(|refusal| refusal.at(DELETING))?;
        let request = self.client.delete_object().bucket(&self.bucket).key(key);
        request.send().await.map_err(|e| failure(DELETING, e))?;
        Ok(())
    }

    async fn list(&self, prefix: &str, after: Option<&str>, max: usize) -> Result<ListPage, PortError> {
        list::page(self, prefix, after, max).await
    }
}
