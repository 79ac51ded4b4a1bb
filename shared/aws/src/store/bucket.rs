//! One bucket, and reading of its objects.

use aws_sdk_s3::Client;
use aws_sdk_s3::operation::get_object::GetObjectError;
use aws_sdk_s3::operation::get_object::builders::GetObjectFluentBuilder;
use aws_smithy_async::rt::sleep::SharedAsyncSleep;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use bytes::Bytes;
use posthaste_ports::{ETag, PortError, RevalidatedObject, StoredObject};

use super::body::{self, BodyError};
use crate::clients::failure::to_port_error;

/// Most reads of one object whose body breaks off. The SDK tries again only until the head has
/// come.
const READS_MAX: usize = 3;

/// A bucket and the client that reaches it. Clones share connections.
#[derive(Debug, Clone)]
pub(super) struct S3Bucket {
    pub(super) client: Client,
    pub(super) name: String,
    pub(super) sleep: SharedAsyncSleep,
    /// Largest object, in bytes.
    pub(super) object_bytes_max: usize,
}

/// The response to a read, with its body.
#[derive(Debug)]
pub(super) struct ObjectResponse {
    pub(super) bytes: Bytes,
    pub(super) etag: Option<String>,
    /// The header `Content-Range`.
    pub(super) content_range: Option<String>,
}

/// Reasons for which a read has no response with a body.
#[derive(Debug)]
pub(super) enum ReadError {
    /// The service returned something else, or nothing.
    Refused(Box<SdkError<GetObjectError, HttpResponse>>),
    /// The body was not read.
    Body(BodyError),
}

impl S3Bucket {
    /// Reads an object, again if its body breaks off.
    pub(super) async fn read_object(
        &self,
        doing: &'static str,
        key: &str,
        known: Option<&ETag>,
    ) -> Result<RevalidatedObject, PortError> {
        let request = self
            .get_request(key)
            .set_if_none_match(known.map(|etag| etag.0.clone()));
        match self.send_get(request).await {
            Ok(ObjectResponse { bytes, etag, .. }) => {
                let etag = etag
                    .map(ETag)
                    .ok_or_else(|| BodyError::NoETag.into_port_error(doing))?;
                Ok(RevalidatedObject::Changed(StoredObject { bytes, etag }))
            }
            Err(ReadError::Refused(error)) => without_object(doing, *error),
            Err(ReadError::Body(error)) => Err(error.into_port_error(doing)),
        }
    }

    /// The request for an object.
    pub(super) fn get_request(&self, key: &str) -> GetObjectFluentBuilder {
        self.client.get_object().bucket(&self.name).key(key)
    }

    /// The response to a request, which is sent again if the body breaks off.
    pub(super) async fn send_get(
        &self,
        request: GetObjectFluentBuilder,
    ) -> Result<ObjectResponse, ReadError> {
        let mut reads = 1;
        loop {
            let answer = request
                .clone()
                .send()
                .await
                .map_err(|e| ReadError::Refused(Box::new(e)))?;
            let etag = answer.e_tag;
            let content_range = answer.content_range;
            match body::read_whole(answer.body, self.object_bytes_max, &self.sleep).await {
                Ok(bytes) => {
                    return Ok(ObjectResponse {
                        bytes,
                        etag,
                        content_range,
                    });
                }
                Err(error) if error.is_passing() && reads < READS_MAX => reads += 1,
                Err(error) => return Err(ReadError::Body(error)),
            }
        }
    }
}

/// The meaning of a response without an object. A bucket that is not there is an error, and no
/// absent object.
fn without_object(
    doing: &'static str,
    error: SdkError<GetObjectError, HttpResponse>,
) -> Result<RevalidatedObject, PortError> {
    let code = error
        .as_service_error()
        .and_then(ProvideErrorMetadata::code);
    let status = error.raw_response().map(|answer| answer.status().as_u16());
    match (status, code) {
        (Some(304), _) => Ok(RevalidatedObject::Unchanged),
        (Some(404), Some("NoSuchKey")) => Ok(RevalidatedObject::Missing),
        _ => Err(to_port_error(doing, error)),
    }
}
