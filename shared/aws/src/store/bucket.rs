//! One bucket, and reading of its objects.

use aws_sdk_s3::Client;
use aws_sdk_s3::operation::get_object::{GetObjectError, GetObjectOutput};
use aws_smithy_async::rt::sleep::SharedAsyncSleep;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use posthaste_ports::{ETag, Object, PortError, Revalidated};

use super::body::{self, BodyError};
use crate::clients::failure::failure;

/// Most reads of one object whose body breaks off. The SDK tries again only until the head has come.
const READS_MAX: usize = 3;

/// A bucket and the client that reaches it. Clones share connections.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    pub(super) client: Client,
    pub(super) name: String,
    pub(super) sleep: SharedAsyncSleep,
}

impl Bucket {
    /// Reads an object, again if its body breaks off.
    pub(super) async fn read(
        &self,
        doing: &'static str,
        key: &str,
        known: Option<&ETag>,
    ) -> Result<Revalidated, PortError> {
        let mut reads = 1;
        loop {
            let request = self.client.get_object().bucket(&self.name).key(key);
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

    async fn object(&self, answer: GetObjectOutput) -> Result<Object, BodyError> {
        let etag = answer.e_tag.map(ETag).ok_or(BodyError::NoETag)?;
        Ok(Object { bytes: body::read(answer.body, &self.sleep).await?, etag })
    }
}

/// The meaning of an answer without an object. A bucket that is not there is an error, and no absent object.
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
