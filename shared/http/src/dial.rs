//! From validated addresses to an open connection: every address is tried before a link counts as
//! down.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use posthaste_core::model::{Link, SendFailure};
use posthaste_ports::Clock;
use rustix::io::Errno;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::connection::HttpConnection;
use crate::failure::{SendFault, fault_from_error, is_exhausted};
use crate::pool::ConnectionPool;
use crate::wire::{MeteredSocket, PlacedSocket, WireMeter, WireStream};

/// Time that a connect may go unanswered before the next address is tried beside it (RFC 8305's
/// default).
const STAGGER: Duration = Duration::from_millis(250);

/// Most addresses of one host that are tried. All of them are validated, but a name with thousands
/// would turn one event into a scan of other people's machines.
const ADDRESSES_TRIED_MAX: usize = 16;

/// The addresses to try, in order, at most [`ADDRESSES_TRIED_MAX`]. The address at `start`, modulo
/// their number, comes first; the others of its family follow in turn, and the other family's lie
/// between them (RFC 8305, section 4): a family that is silent delays a connection once, not once
/// for each of its addresses.
pub(crate) fn addresses_in_turn(addresses: &[IpAddr], start: usize) -> Vec<IpAddr> {
    let Some(first) = start.checked_rem(addresses.len()) else {
        return Vec::new();
    };
    let is_ipv4 = addresses[first].is_ipv4();
    let turned = addresses[first..].iter().chain(&addresses[..first]);
    let (own, mut other): (Vec<IpAddr>, Vec<IpAddr>) =
        turned.partition(|it| it.is_ipv4() == is_ipv4);
    let turn = start.checked_rem(other.len()).unwrap_or_default();
    other.rotate_left(turn);
    let pairs = (0..addresses.len()).flat_map(|n| [own.get(n), other.get(n)]);
    pairs.flatten().copied().take(ADDRESSES_TRIED_MAX).collect()
}

/// Opens a connection over `link` to one of `addresses`, which the caller has validated and put in
/// their order.
///
/// After an address that refuses or fails the handshake, the next is tried at once; after one that
/// is silent, the next is tried shortly later. Only the caller's deadline bounds a handshake.
pub(crate) async fn open_connection<C: Clock>(
    tls: &TlsConnector,
    pool: &ConnectionPool,
    clock: &C,
    link: &Link,
    addresses: &[IpAddr],
) -> Result<Box<HttpConnection>, SendFault> {
    connect_and(pool, clock, link, addresses, |address, socket| {
        open_http(tls, link, socket, address)
    })
    .await
}

/// Connects as [`open_connection`] does, and does `open` with the connected socket. Where that
/// fails, the next address is tried.
pub(crate) async fn connect_and<C: Clock, T, F: Future<Output = Result<T, SendFault>>>(
    pool: &ConnectionPool,
    clock: &C,
    link: &Link,
    addresses: &[IpAddr],
    open: impl Fn(IpAddr, PlacedSocket) -> F,
) -> Result<T, SendFault> {
    let mut race = ConnectRace::new(clock, addresses, |address| {
        connect_socket(pool, address, link.port)
    });
    let mut fault = SendFault::from(SendFailure::Socket);
    while let Some((address, socket)) = race.next_connected().await {
        match open(address, socket).await {
            Ok(opened) => return Ok(opened),
            // A failed handshake is more telling than an address that did not respond.
            Err(other) if other.failure.is_tls() || !fault.failure.is_tls() => fault = other,
            Err(_) => {}
        }
    }
    Err(match fault.failure {
        // An endpoint must not be blamed for an exhausted resource of this machine.
        SendFailure::Socket if race.is_exhausted => SendFailure::Exhausted.into(),
        SendFailure::Socket if race.is_refused => SendFailure::Refused.into(),
        _ => fault,
    })
}

/// Connects a socket. Having no place is having no descriptor.
async fn connect_socket(
    pool: &ConnectionPool,
    address: IpAddr,
    port: u16,
) -> io::Result<PlacedSocket> {
    let place = pool
        .take_place()
        .ok_or_else(|| io::Error::from(Errno::MFILE))?;
    let stream = TcpStream::connect((address, port)).await?;
    // A request is one write; waiting for more of it would only delay the response.
    stream.set_nodelay(true)?;
    Ok(PlacedSocket { stream, place })
}

async fn open_http(
    tls: &TlsConnector,
    link: &Link,
    socket: PlacedSocket,
    address: IpAddr,
) -> Result<Box<HttpConnection>, SendFault> {
    let meter = WireMeter::new();
    let stream = MeteredSocket::new(socket, Arc::clone(&meter));
    let wire = if link.is_tls {
        WireStream::Right(Box::new(shake_hands(tls, link, stream, address).await?))
    } else {
        WireStream::Left(stream)
    };
    HttpConnection::open(wire, meter, address)
        .await
        .map_err(|error| fault_from_error(&error))
}

/// Begins TLS on a connected stream. The server's certificate is verified.
pub(crate) async fn shake_hands<S: AsyncRead + AsyncWrite + Unpin>(
    tls: &TlsConnector,
    link: &Link,
    stream: S,
    address: IpAddr,
) -> Result<TlsStream<S>, SendFault> {
    let name = ServerName::try_from(link.host.to_string()).map_err(|_| SendFailure::Tls)?;
    tls.connect(name, stream).await.map_err(|error| {
        let cause = &error as &dyn std::error::Error;
        tracing::debug!(%link, %address, error = cause, "failed the TLS handshake");
        handshake_fault(fault_from_error(&error))
    })
}

/// A connection that ends in the handshake without an alert, as it does at a balancer that has no
/// certificate.
fn handshake_fault(fault: SendFault) -> SendFault {
    match fault {
        SendFault {
            failure: SendFailure::Socket,
            text: None,
        } => SendFault {
            failure: SendFailure::Socket,
            text: Some("the connection was closed in the TLS handshake".into()),
        },
        fault => fault,
    }
}

/// Connects to addresses in turn, beside one another where one is silent.
struct ConnectRace<'a, C, D, T> {
    clock: &'a C,
    dial: D,
    waiting: std::slice::Iter<'a, IpAddr>,
    dialing: FuturesUnordered<BoxFuture<'a, (IpAddr, io::Result<T>)>>,
    is_exhausted: bool,
    is_refused: bool,
}

impl<'a, C, D, F, T> ConnectRace<'a, C, D, T>
where
    C: Clock,
    D: Fn(IpAddr) -> F,
    F: Future<Output = io::Result<T>> + Send + 'a,
{
    fn new(clock: &'a C, addresses: &'a [IpAddr], dial: D) -> Self {
        let waiting = addresses.iter();
        let dialing = FuturesUnordered::new();
        Self {
            clock,
            dial,
            waiting,
            dialing,
            is_exhausted: false,
            is_refused: false,
        }
    }

    /// The next address that answered; `None` when every address has failed. Connects under way
    /// continue with the next call.
    async fn next_connected(&mut self) -> Option<(IpAddr, T)> {
        loop {
            if let Some(&address) = self.waiting.next() {
                let dialed = (self.dial)(address);
                self.dialing
                    .push(async move { (address, dialed.await) }.boxed());
            }
            let has_more = self.waiting.len() > 0;
            tokio::select! {
                biased;
                done = self.dialing.next() => match done {
                    Some((address, Ok(stream))) => return Some((address, stream)),
                    Some((address, Err(error))) => {
                        self.is_exhausted |= is_exhausted(&error);
                        self.is_refused |= error.kind() == io::ErrorKind::ConnectionRefused;
                        tracing::debug!(%address, %error, "failed to connect");
                    }
                    None => return None,
                },
                () = self.clock.sleep(STAGGER), if has_more => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use parking_lot::Mutex;
    use posthaste_core::model::Timestamp;
    use posthaste_testkit::ManualClock;

    use super::*;

    const ADDRESSES: [IpAddr; 3] = [address(1), address(2), address(3)];

    const fn address(last: u8) -> IpAddr {
        IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, last))
    }

    /// `answers`, by address: connected, refused, or silent (`None`).
    async fn race(
        answers: [Option<bool>; 3],
        advance_ms: &[u64],
    ) -> (Vec<IpAddr>, Vec<IpAddr>, bool) {
        let clock = ManualClock::new(Timestamp::EPOCH);
        let dialed = Mutex::new(Vec::new());
        let mut connected = Vec::new();
        let mut race = ConnectRace::new(&clock, &ADDRESSES, |address| {
            dialed.lock().push(address);
            let answer = ADDRESSES
                .iter()
                .position(|a| *a == address)
                .and_then(|at| answers[at]);
            async move {
                match answer {
                    Some(true) => Ok(()),
                    Some(false) => Err(io::ErrorKind::ConnectionRefused.into()),
                    None => std::future::pending().await,
                }
            }
        });
        let all = async {
            while let Some((address, ())) = race.next_connected().await {
                connected.push(address);
            }
        };
        let mut advance = advance_ms.iter();
        let driver = async {
            tokio::task::yield_now().await;
            for ms in advance.by_ref() {
                clock.advance(Duration::from_millis(*ms));
                tokio::task::yield_now().await;
            }
        };
        let ended = tokio::select! { biased; () = all => true, () = driver => false };
        (dialed.into_inner(), connected, ended)
    }

    #[test]
    fn addresses_are_tried_in_turn() {
        let check = |start, expected: [u8; 3]| {
            assert_eq!(addresses_in_turn(&ADDRESSES, start), expected.map(address));
        };
        check(0, [1, 2, 3]);
        check(1, [2, 3, 1]);
        check(2, [3, 1, 2]);
        check(3, [1, 2, 3]);
        check(usize::MAX, [1, 2, 3]);
        assert!(addresses_in_turn(&[], 7).is_empty());
        let many: Vec<_> = (0..100).map(address).collect();
        let tried = addresses_in_turn(&many, 95);
        assert_eq!(
            (tried.len(), tried[0], tried[5]),
            (ADDRESSES_TRIED_MAX, address(95), address(0))
        );
    }

    /// IPv4 addresses by their last byte, IPv6 ones by 100 and more.
    fn of_both(numbers: &[u8]) -> Vec<IpAddr> {
        let v6 = |number| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(number)).into();
        numbers
            .iter()
            .map(|&number| {
                if number < 100 {
                    address(number)
                } else {
                    v6(number)
                }
            })
            .collect()
    }

    #[test]
    fn the_families_alternate_and_each_address_is_first_in_its_turn() {
        let check = |all: &[u8], start, expected: &[u8]| {
            assert_eq!(
                addresses_in_turn(&of_both(all), start),
                of_both(expected),
                "{all:?} {start}"
            );
        };
        let all = [1, 2, 101, 102, 103];
        check(&all, 0, &[1, 101, 2, 102, 103]);
        check(&all, 1, &[2, 102, 1, 103, 101]);
        check(&all, 2, &[101, 1, 102, 2, 103]);
        check(&all, 3, &[102, 2, 103, 1, 101]);
        check(&all, 4, &[103, 1, 101, 2, 102]);
        check(&all, 5, &[1, 103, 2, 101, 102]);
        check(&[1, 101], 1, &[101, 1]);
        // A host with many addresses of one family is tried at one of the other's soon.
        let many: Vec<u8> = (1..=20).chain([101]).collect();
        check(
            &many,
            0,
            &[1, 101, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        );
    }

    #[tokio::test]
    async fn every_address_is_tried_before_the_link_has_failed() {
        assert_eq!(
            race([Some(false); 3], &[]).await,
            (ADDRESSES.to_vec(), vec![], true)
        );
    }

    #[tokio::test]
    async fn addresses_after_a_failed_handshake_are_still_tried() {
        let expected = (ADDRESSES.to_vec(), vec![address(1), address(3)], true);
        assert_eq!(
            race([Some(true), Some(false), Some(true)], &[]).await,
            expected
        );
    }

    #[tokio::test]
    async fn a_silent_address_is_overtaken_after_the_stagger() {
        let silent_first = [None, Some(true), None];
        assert_eq!(
            race(silent_first, &[249]).await,
            (vec![address(1)], vec![], false)
        );
        let (dialed, connected, _) = race(silent_first, &[249, 1]).await;
        assert_eq!(
            (&dialed[..2], connected),
            (&ADDRESSES[..2], vec![address(2)])
        );
    }
}
