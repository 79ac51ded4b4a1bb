//! Bodies of requests, read within a size, within a time, and within the memory that all bodies
//! together may take.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::{Bytes, BytesMut};
use flate2::read::MultiGzDecoder;
use http::header::{CONTENT_ENCODING, HeaderMap};
use http_body_util::BodyExt;
use posthaste_core::model::REQUEST_BYTES_MAX;
use posthaste_ports::Clock;
use posthaste_services::busy::run_off_worker_if_large;
use posthaste_services::timeout;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Reasons for which a body is not read.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The body is larger than a request may be (413). No more than that much of it was kept.
    #[error("body: expected at most {REQUEST_BYTES_MAX} bytes")]
    TooLarge,
    /// The body did not arrive in time (408).
    #[error("body: expected within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The connection broke, or the chunks were not as HTTP has them (400).
    #[error("body: could not be read")]
    Broken(#[source] axum::Error),
    /// The body is no gzip, though its header says so (400).
    #[error("body: expected gzip, as content-encoding says")]
    NotGzip(#[source] std::io::Error),
    /// The body is larger than a request may be once it is unpacked (413).
    #[error("body: expected at most {REQUEST_BYTES_MAX} bytes once it is unpacked")]
    UnpackedTooLarge,
    /// The bodies of requests in progress already take all the memory they may (503).
    #[error("body: too many bytes are held already")]
    Crowded,
}

/// The memory that the bodies of requests in progress may take together. Under the tarpit a body is
/// held for as long as its acknowledgement waits, so that without a bound slow answers would cost
/// memory instead of saving it.
#[derive(Debug)]
pub struct BodyBudget(Arc<Semaphore>);

impl BodyBudget {
    /// Room for this many bytes; a request needs up to [`REQUEST_BYTES_MAX`].
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS))))
    }

    /// Takes the room for a body until the answer is dropped: its length, or where that is not
    /// known the largest. A request that finds no room is refused at once, because others may
    /// hold the room for a minute.
    pub(crate) fn reserve_room(&self, body: &Body) -> Result<OwnedSemaphorePermit, BodyError> {
        let bytes = match body.size_hint().exact() {
            Some(bytes) => usize::try_from(bytes).unwrap_or(usize::MAX),
            None => REQUEST_BYTES_MAX,
        };
        if bytes > REQUEST_BYTES_MAX {
            return Err(BodyError::TooLarge);
        }
        let permits = u32::try_from(bytes).map_err(|_| BodyError::TooLarge)?;
        Arc::clone(&self.0)
            .try_acquire_many_owned(permits)
            .map_err(|_| BodyError::Crowded)
    }

    /// Takes room for a request of so many bytes: its body, and what was made of it. In all a
    /// request takes no more than the largest body does, so that a budget with room for one always
    /// has room for a body that became larger.
    pub(crate) fn grow_to(
        &self,
        room: &mut OwnedSemaphorePermit,
        bytes: usize,
    ) -> Result<(), BodyError> {
        let bytes = bytes
            .min(REQUEST_BYTES_MAX)
            .saturating_sub(room.num_permits());
        let permits = u32::try_from(bytes).map_err(|_| BodyError::TooLarge)?;
        let more = Arc::clone(&self.0).try_acquire_many_owned(permits);
        room.merge(more.map_err(|_| BodyError::Crowded)?);
        Ok(())
    }
}

/// Bytes of JSON in a byte of gzip, as is usual: by this the work of unpacking is estimated.
const USUAL_RATIO: usize = 8;

/// The body as it was before the producer packed it. Its room grows to the largest there is while it
/// is unpacked, and then to its size. `headers` say no more that it is packed.
pub(crate) fn unpack_if_gzip(
    headers: &mut HeaderMap,
    body: Bytes,
    budget: &BodyBudget,
    room: &mut OwnedSemaphorePermit,
) -> Result<Bytes, BodyError> {
    // The parser names other codings, and which one it takes.
    if !is_gzip(headers) {
        return Ok(body);
    }
    budget.grow_to(room, REQUEST_BYTES_MAX)?;
    let work = body.len().saturating_mul(USUAL_RATIO);
    let unpacked = run_off_worker_if_large(work, || gunzip(&body))?;
    let unused = room.num_permits().saturating_sub(unpacked.len());
    drop(room.split(unused));
    headers.remove(CONTENT_ENCODING);
    Ok(unpacked.into())
}

/// Whether a body is packed once, with gzip.
fn is_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(CONTENT_ENCODING).into_iter();
    let codings = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let codings = codings.map(<[u8]>::trim_ascii);
    let mut packed =
        codings.filter(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity"));
    let first = packed.next();
    packed.next().is_none()
        && first.is_some_and(|coding| {
            coding.eq_ignore_ascii_case(b"gzip") || coding.eq_ignore_ascii_case(b"x-gzip")
        })
}

fn gunzip(body: &[u8]) -> Result<Vec<u8>, BodyError> {
    let most = u64::try_from(REQUEST_BYTES_MAX).unwrap_or(u64::MAX);
    let mut unpacked = Vec::new();
    let mut decoder = MultiGzDecoder::new(body).take(most + 1);
    decoder
        .read_to_end(&mut unpacked)
        .map_err(BodyError::NotGzip)?;
    if unpacked.len() > REQUEST_BYTES_MAX {
        return Err(BodyError::UnpackedTooLarge);
    }
    Ok(unpacked)
}

/// Reads a body whole. One that arrived in one piece is not copied.
pub(crate) async fn read_body<C: Clock>(
    body: &mut Body,
    clock: &C,
    length: Duration,
) -> Result<Bytes, BodyError> {
    timeout(clock, length, gather_frames(body))
        .await
        .unwrap_or(Err(BodyError::TimedOut(length)))
}

async fn gather_frames(body: &mut Body) -> Result<Bytes, BodyError> {
    let whole = body.size_hint().lower();
    let whole = usize::try_from(whole)
        .unwrap_or(usize::MAX)
        .min(REQUEST_BYTES_MAX);
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(BodyError::Broken)?.into_data() else {
            continue;
        };
        if first.len().max(all.len()) + data.len() > REQUEST_BYTES_MAX {
            return Err(BodyError::TooLarge);
        }
        if first.is_empty() {
            first = data;
            continue;
        }
        if all.is_empty() {
            all.reserve(whole);
            all.extend_from_slice(&first);
        }
        all.extend_from_slice(&data);
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use futures_util::stream;
    use http::HeaderValue;
    use posthaste_core::model::Timestamp;
    use posthaste_testkit::ManualClock;

    const TIMEOUT: Duration = Duration::from_mins(1);

    fn pieces(pieces: Vec<Vec<u8>>) -> Body {
        Body::from_stream(stream::iter(
            pieces.into_iter().map(Ok::<_, std::io::Error>),
        ))
    }

    async fn read_now(mut body: Body) -> Result<Bytes, BodyError> {
        read_body(&mut body, &ManualClock::new(Timestamp::EPOCH), TIMEOUT).await
    }

    #[tokio::test]
    async fn pieces_become_one_body() {
        let check = async |input: &[&str], expected: &str| {
            let body = pieces(
                input
                    .iter()
                    .map(|piece| piece.as_bytes().to_vec())
                    .collect(),
            );
            assert_eq!(read_now(body).await.unwrap(), expected);
        };
        check(&[], "").await;
        check(&["ab"], "ab").await;
        check(&["", "a", "", "bc", "d"], "abcd").await;
    }

    #[tokio::test]
    async fn body_in_one_piece_is_not_copied() {
        let body = Bytes::from(vec![b'x'; 100]);
        let read = read_now(Body::from(body.clone())).await.unwrap();
        assert_eq!(read.as_ptr(), body.as_ptr());
    }

    #[tokio::test]
    async fn the_limit_is_exact_and_the_rest_is_not_read() {
        let full = read_now(pieces(vec![vec![b'x'; REQUEST_BYTES_MAX - 1], vec![b'x']])).await;
        assert_eq!(full.unwrap().len(), REQUEST_BYTES_MAX);
        let endless = Body::from_stream(stream::repeat_with(|| {
            Ok::<_, std::io::Error>(vec![b'x'; 4096])
        }));
        assert!(matches!(read_now(endless).await, Err(BodyError::TooLarge)));
    }

    #[tokio::test]
    async fn a_body_that_never_ends_is_given_up() {
        let clock = ManualClock::new(Timestamp::EPOCH);
        let mut silent = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        let (read, ()) = tokio::join!(read_body(&mut silent, &clock, TIMEOUT), async {
            clock.advance(TIMEOUT);
        });
        assert!(matches!(read, Err(BodyError::TimedOut(TIMEOUT))));
    }

    #[tokio::test]
    async fn a_connection_that_breaks_is_no_body() {
        let broken = stream::iter([
            Ok("ab"),
            Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset)),
        ]);
        assert!(matches!(
            read_now(Body::from_stream(broken)).await,
            Err(BodyError::Broken(_))
        ));
    }

    fn packed(text: &[u8]) -> Bytes {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap().into()
    }

    /// The result for a body with this coding, and the room that is left of the largest request's.
    fn unpacked_of(
        coding: &'static str,
        body: Bytes,
    ) -> (Result<Bytes, BodyError>, HeaderMap, usize) {
        let budget = BodyBudget::new(REQUEST_BYTES_MAX);
        let mut room = budget.reserve_room(&Body::from(body.clone())).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
        let unpacked = unpack_if_gzip(&mut headers, body, &budget, &mut room);
        (unpacked, headers, budget.0.available_permits())
    }

    #[test]
    fn packed_body_is_unpacked_and_takes_the_room_of_what_it_is() {
        let text = b"[]".repeat(3000);
        for coding in ["gzip", "GZip", "x-gzip", "identity, gzip"] {
            let (body, headers, left) = unpacked_of(coding, packed(&text));
            assert_eq!(body.unwrap(), text, "{coding}");
            assert_eq!((headers.len(), left), (0, REQUEST_BYTES_MAX - text.len()));
        }
        // Members may follow each other (RFC 1952).
        let two = [packed(b"ab"), packed(b"c")].concat();
        assert_eq!(unpacked_of("gzip", two.into()).0.unwrap(), "abc");
    }

    #[test]
    fn other_codings_are_left_to_the_parser() {
        for coding in ["br", "identity", "gzip, gzip", ""] {
            let (body, headers, _) = unpacked_of(coding, packed(b"ab"));
            assert_eq!(
                (body.unwrap(), headers.len()),
                (packed(b"ab"), 1),
                "{coding}"
            );
        }
    }

    #[test]
    fn broken_gzip_and_oversized_contents_are_refused() {
        let whole = packed(b"a body that is cut");
        let cut = whole.slice(..whole.len() - 5);
        let more = [&whole[..], b"more"].concat();
        for bad in [Bytes::new(), Bytes::from_static(b"{}"), cut, more.into()] {
            let (body, ..) = unpacked_of("gzip", bad);
            assert!(matches!(body, Err(BodyError::NotGzip(_))), "{body:?}");
        }
        let largest = unpacked_of("gzip", packed(&vec![b'x'; REQUEST_BYTES_MAX]));
        assert_eq!(largest.0.unwrap().len(), REQUEST_BYTES_MAX);
        let bomb = unpacked_of("gzip", packed(&vec![b'x'; 100 * REQUEST_BYTES_MAX]));
        assert!(matches!(bomb.0, Err(BodyError::UnpackedTooLarge)));
    }

    #[test]
    fn gzip_body_needs_room_for_the_largest_body() {
        let budget = BodyBudget::new(REQUEST_BYTES_MAX);
        let _other = budget.reserve_room(&Body::from("x")).unwrap();
        let body = packed(b"{}");
        let mut room = budget.reserve_room(&Body::from(body.clone())).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        let crowded = unpack_if_gzip(&mut headers, body, &budget, &mut room);
        assert!(matches!(crowded, Err(BodyError::Crowded)));
    }

    #[test]
    fn room_of_a_request_grows_to_its_size_and_not_by_it() {
        let budget = BodyBudget::new(25);
        let mut room = budget.reserve_room(&Body::from("0123456789")).unwrap();
        for _ in 0..3 {
            budget.grow_to(&mut room, 20).unwrap();
            assert_eq!(room.num_permits(), 20);
        }
        let crowded = budget.grow_to(&mut room, 26);
        assert!(matches!(crowded, Err(BodyError::Crowded)));
    }

    #[test]
    fn bodies_take_no_more_memory_than_they_may() {
        let budget = BodyBudget::new(REQUEST_BYTES_MAX + 10);
        let unknown = pieces(vec![]);
        let held = budget.reserve_room(&unknown).unwrap();
        let small = budget.reserve_room(&Body::from("0123456789")).unwrap();
        assert!(matches!(
            budget.reserve_room(&Body::from("x")),
            Err(BodyError::Crowded)
        ));
        drop((held, small));
        assert!(
            budget
                .reserve_room(&Body::from(vec![b'x'; REQUEST_BYTES_MAX]))
                .is_ok()
        );
        let large = Body::from(vec![b'x'; REQUEST_BYTES_MAX + 1]);
        assert!(matches!(
            budget.reserve_room(&large),
            Err(BodyError::TooLarge)
        ));
    }
}
