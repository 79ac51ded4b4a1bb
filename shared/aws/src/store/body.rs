//! Reading an object's body: bounded in size and in time, and not copied where it comes in one piece.

use aws_sdk_s3::primitives::{ByteStream, ByteStreamError};
use aws_smithy_async::future::timeout::Timeout;
use aws_smithy_async::rt::sleep::{AsyncSleep, SharedAsyncSleep};
use bytes::{BufMut, Bytes, BytesMut};
use posthaste_ports::{ErrorKind, PortError};

use super::{BODY_TIMEOUT, OBJECT_BYTES_MAX};

/// Why an object that is there was not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    /// The connection broke in the middle of it.
    #[error("the body broke off")]
    Broken(#[from] ByteStreamError),
    /// It took too long.
    #[error("the body took longer than {BODY_TIMEOUT:?}")]
    TimedOut,
    /// Its head does not tell its version.
    #[error("the answer has no ETag")]
    NoETag,
    /// It is larger than anything we write.
    #[error("the object has more than {OBJECT_BYTES_MAX} bytes")]
    TooLarge,
}

impl BodyError {
    /// Whether reading the object once more may help.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self, Self::Broken(_))
    }

    pub(super) fn at(self, doing: &'static str) -> PortError {
        let kind = match self {
            Self::Broken(_) | Self::NoETag => ErrorKind::Other,
            Self::TimedOut => ErrorKind::TimedOut,
            Self::TooLarge => ErrorKind::Invalid,
        };
        PortError::caused(doing, kind, self)
    }
}

/// Reads a body whole.
pub(super) async fn read(body: ByteStream, sleep: &SharedAsyncSleep) -> Result<Bytes, BodyError> {
    Timeout::new(Box::pin(collect(body)), sleep.sleep(BODY_TIMEOUT)).await.unwrap_or(Err(BodyError::TimedOut))
}

async fn collect(mut body: ByteStream) -> Result<Bytes, BodyError> {
    let announced = usize::try_from(body.size_hint().0).unwrap_or(usize::MAX);
    if announced > OBJECT_BYTES_MAX {
        return Err(BodyError::TooLarge);
    }
    let first = body.try_next().await?.unwrap_or_default();
    if first.len() >= announced && announced > 0 {
        return Ok(first);
    }
    let mut whole = BytesMut::with_capacity(announced.max(first.len()));
    whole.put(first);
    while let Some(piece) = body.try_next().await? {
        if whole.len() + piece.len() > OBJECT_BYTES_MAX {
            return Err(BodyError::TooLarge);
        }
        whole.put(piece);
    }
    Ok(whole.freeze())
}
