//! S3 as the object store: one bucket, changed only by whole puts.

use aws_sdk_s3::Client;
use aws_sdk_s3::operation::get_object::GetObjectError;
use aws_sdk_s3::operation::get_object::GetObjectOutput;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::Object as Listed;
use aws_smithy_async::rt::sleep::SharedAsyncSleep;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use bytes::Bytes;
use posthaste_core::time::Timestamp;
use posthaste_ports::{
    ETag, ErrorKind, ListPage, Object, ObjectMeta, ObjectStore, PortError, PutCondition, Revalidated, vet,
};

use crate::clients::failure::failure;

const GETTING: &str = "get an object";
const PUTTING: &str = "put an object";
const DELETING: &str = "delete an object";
const LISTING: &str = "list objects";

/// One bucket. Clones share connections.
#[derive(Debug, Clone)]
pub struct S3Store {
    client: Client,
    bucket: String,
    sleep: SharedAsyncSleep,
}

impl S3Store {
    pub(crate) fn new(client: Client, bucket: &str, sleep: SharedAsyncSleep) -> Self {
        Self { client, bucket: bucket.to_owned(), sleep }
    }

    async fn read(&self, key: &str, known: Option<&ETag>) -> Result<Revalidated, PortError> {
        vet::key(key).map_err(|refusal| refusal.at(GETTING))?;
        let request = self.client.get_object().bucket(&self.bucket).key(key);
        match request.set_if_none_match(known.map(|etag| etag.0.clone())).send().await {
            Ok(answer) => Ok(Revalidated::Changed(whole(answer).await?)),
            Err(error) if is_status(&error, 304) => Ok(Revalidated::Unchanged),
            Err(error) if is_no_such_key(&error) => Ok(Revalidated::Missing),
            Err(error) => Err(failure(GETTING, error)),
        }
    }
}

impl ObjectStore for S3Store {
    async fn get(&self, key: &str) -> Result<Option<Object>, PortError> {
        match self.read(key, None).await? {
            Revalidated::Changed(object) => Ok(Some(object)),
            Revalidated::Missing => Ok(None),
            Revalidated::Unchanged => Err(PortError::new(GETTING, ErrorKind::Other)),
        }
    }

    async fn get_if_changed(&self, key: &str, known: &ETag) -> Result<Revalidated, PortError> {
        self.read(key, Some(known)).await
    }

    async fn put(&self, key: &str, bytes: Bytes, condition: PutCondition) -> Result<ETag, PortError> {
        vet::key(key).map_err(|refusal| refusal.at(PUTTING))?;
        let request = self.client.put_object().bucket(&self.bucket).key(key).body(ByteStream::from(bytes));
        let request = match condition {
            PutCondition::Always => request,
            PutCondition::IfAbsent => request.if_none_match("*"),
            PutCondition::IfMatch(etag) => request.if_match(etag.0),
        };
        let answer = request.send().await.map_err(|e| match failure(PUTTING, e) {
            error if error.kind == ErrorKind::NotFound => {
                PortError::caused(PUTTING, ErrorKind::PreconditionFailed, error)
            }
            error => error,
        })?;
        answer.e_tag.map(ETag).ok_or_else(|| PortError::new(PUTTING, ErrorKind::Other))
    }

    async fn delete(&self, key: &str) -> Result<(), PortError> {
        vet::key(key).map_err(|refusal| refusal.at(DELETING))?;
        let request = self.client.delete_object().bucket(&self.bucket).key(key);
        request.send().await.map_err(|e| failure(DELETING, e))?;
        Ok(())
    }

    async fn list(&self, prefix: &str, after: Option<&str>, max: usize) -> Result<ListPage, PortError> {
        vet::page(max).map_err(|refusal| refusal.at(LISTING))?;
        let request = self
            .client
            .list_objects_v2()
            .bucket(&self.bucket)
            .prefix(prefix)
            .set_start_after(after.filter(|after| !after.is_empty()).map(str::to_owned))
            .max_keys(i32::try_from(max).unwrap_or(i32::MAX));
        let answer = request.send().await.map_err(|e| failure(LISTING, e))?;
        let objects: Vec<_> = answer.contents.unwrap_or_default().into_iter().filter_map(listed).collect();
        let last = objects.last().map(|object| object.key.clone());
        let next_after = last.filter(|_| answer.is_truncated == Some(true));
        Ok(ListPage { objects, next_after })
    }
}

async fn whole(answer: GetObjectOutput) -> Result<Object, PortError> {
    let etag = answer.e_tag.map(ETag).ok_or_else(|| PortError::new(GETTING, ErrorKind::Other))?;
    let body = answer.body.collect().await.map_err(|e| PortError::caused(GETTING, ErrorKind::Other, e))?;
    Ok(Object { bytes: body.into_bytes(), etag })
}

fn is_status<E>(error: &SdkError<E, HttpResponse>, status: u16) -> bool {
    error.raw_response().is_some_and(|answer| answer.status().as_u16() == status)
}

fn is_no_such_key(error: &SdkError<GetObjectError, HttpResponse>) -> bool {
    error.as_service_error().is_some_and(|e| e.is_no_such_key() || e.code() == Some("NoSuchKey"))
}

fn listed(object: Listed) -> Option<ObjectMeta> {
    let modified_ms = object.last_modified.and_then(|time| time.to_millis().ok()).unwrap_or_default();
    Some(ObjectMeta {
        key: object.key?,
        size: u64::try_from(object.size.unwrap_or_default()).unwrap_or_default(),
        modified_at: Timestamp::from_millis(u64::try_from(modified_ms).unwrap_or_default()),
    })
}
