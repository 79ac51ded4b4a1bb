//! Reading an object's body: bounded in size and in time, and not copied where it comes in one
//! piece.

use std::time::Duration;

use aws_sdk_s3::primitives::{ByteStream, ByteStreamError};
use aws_smithy_async::future::timeout::Timeout;
use aws_smithy_async::rt::sleep::{AsyncSleep, SharedAsyncSleep};
use bytes::{BufMut, Bytes, BytesMut};
use posthaste_ports::{ErrorKind, PortError};

/// Largest object in bytes, unless a store has another bound. Dead letters are gathered to 8 MiB
/// and one more message; a function has memory for a few such, and none for a foreign object in the
/// bucket.
pub const OBJECT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Longest time for a body once its head has come.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Reasons for which an object that is there was not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    /// The connection broke in the middle of it.
    #[error("the body broke off")]
    Broken(#[from] ByteStreamError),
    /// The body took too long.
    #[error("the body took longer than {BODY_TIMEOUT:?}")]
    TimedOut,
    /// The head lacks the version.
    #[error("the answer has no ETag")]
    NoETag,
    /// The object is larger than any that we write.
    #[error("the object has more than {most} bytes")]
    TooLarge {
        /// Most bytes of an object.
        most: usize,
    },
}

impl BodyError {
    /// True if reading the object once more may help.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self, Self::Broken(_))
    }

    pub(super) fn into_port_error(self, doing: &'static str) -> PortError {
        let kind = match self {
            Self::Broken(_) | Self::NoETag => ErrorKind::Other,
            Self::TimedOut => ErrorKind::TimedOut,
            Self::TooLarge { .. } => ErrorKind::Invalid,
        };
        PortError::with_cause(doing, kind, self)
    }
}

/// Reads a body whole, of at most this number of bytes.
pub(super) async fn read_whole(
    body: ByteStream,
    most: usize,
    sleep: &SharedAsyncSleep,
) -> Result<Bytes, BodyError> {
    Timeout::new(
        Box::pin(collect_pieces(body, most)),
        sleep.sleep(BODY_TIMEOUT),
    )
    .await
    .unwrap_or(Err(BodyError::TimedOut))
}

async fn collect_pieces(mut body: ByteStream, most: usize) -> Result<Bytes, BodyError> {
    let announced = usize::try_from(body.size_hint().0).unwrap_or(usize::MAX);
    if announced > most {
        return Err(BodyError::TooLarge { most });
    }
    let first = body.try_next().await?.unwrap_or_default();
    if first.len() >= announced && announced > 0 {
        return Ok(first);
    }
    let mut whole = BytesMut::with_capacity(announced.max(first.len()));
    whole.put(first);
    while let Some(piece) = body.try_next().await? {
        if whole.len() + piece.len() > most {
            return Err(BodyError::TooLarge { most });
        }
        whole.put(piece);
    }
    Ok(whole.freeze())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use aws_smithy_async::rt::sleep::Sleep;
    use aws_smithy_types::body::SdkBody;
    use futures_util::{FutureExt, StreamExt, stream};
    use http_body::Frame;
    use http_body_util::StreamBody;

    use super::*;

    /// Time that never passes, or has passed at once.
    #[derive(Debug)]
    struct Time {
        has_passed: bool,
    }

    impl AsyncSleep for Time {
        fn sleep(&self, _length: Duration) -> Sleep {
            let has_passed = self.has_passed;
            Sleep::new(async move {
                if !has_passed {
                    std::future::pending::<()>().await;
                }
            })
        }
    }

    /// Reads a body of the usual largest size.
    async fn read(body: ByteStream, sleep: &SharedAsyncSleep) -> Result<Bytes, BodyError> {
        read_whole(body, OBJECT_BYTES_MAX, sleep).await
    }

    fn time(has_passed: bool) -> SharedAsyncSleep {
        SharedAsyncSleep::new(Time { has_passed })
    }

    /// A body of pieces whose length is not announced.
    fn pieces(
        pieces: impl IntoIterator<Item = Bytes, IntoIter: Send + Sync + 'static>,
    ) -> ByteStream {
        let frames = stream::iter(pieces).map(|piece| Ok::<_, Infallible>(Frame::data(piece)));
        ByteStream::new(SdkBody::from_body_1_x(StreamBody::new(frames)))
    }

    #[tokio::test]
    async fn body_in_a_single_piece_is_not_copied() {
        let bytes = Bytes::from(vec![7; 1000]);
        let read = read(ByteStream::from(bytes.clone()), &time(false))
            .await
            .unwrap();
        assert_eq!((read.as_ptr(), read.len()), (bytes.as_ptr(), 1000));
    }

    #[tokio::test]
    async fn pieces_are_joined() {
        let check = async |parts: &'static [&'static str]| {
            let body = pieces(parts.iter().map(|part| Bytes::from(*part)));
            assert_eq!(read(body, &time(false)).await.unwrap(), parts.concat());
        };
        check(&[]).await;
        check(&["one"]).await;
        check(&["one", "", "two", "three"]).await;
        assert_eq!(
            read(ByteStream::from(Bytes::new()), &time(false))
                .await
                .unwrap(),
            ""
        );
    }

    #[tokio::test]
    async fn too_large_body_is_refused_by_announced_and_received_size() {
        let announced = ByteStream::from(Bytes::from(vec![0; OBJECT_BYTES_MAX + 1]));
        assert!(matches!(
            read(announced, &time(false)).await,
            Err(BodyError::TooLarge { .. })
        ));
        let mebibyte = Bytes::from(vec![0; 1024 * 1024]);
        let endless = pieces(std::iter::repeat(mebibyte));
        assert!(matches!(
            read(endless, &time(false)).await,
            Err(BodyError::TooLarge { .. })
        ));
    }

    #[tokio::test]
    async fn a_body_that_never_ends_is_timed_out() {
        let silent = || {
            let frames = stream::pending::<Result<Frame<Bytes>, Infallible>>();
            ByteStream::new(SdkBody::from_body_1_x(StreamBody::new(frames)))
        };
        assert!(matches!(
            read(silent(), &time(true)).await,
            Err(BodyError::TimedOut)
        ));
        assert!(read(silent(), &time(false)).now_or_never().is_none());
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_is_an_error_that_passes() {
        let frames = [
            Ok(Frame::data(Bytes::from("half"))),
            Err(std::io::Error::other("reset")),
        ];
        let body = ByteStream::new(SdkBody::from_body_1_x(StreamBody::new(stream::iter(
            frames,
        ))));
        let error = read(body, &time(false)).await.unwrap_err();
        assert!(error.is_passing() && error.into_port_error("get").kind == ErrorKind::Other);
    }
}
