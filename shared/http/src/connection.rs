//! An HTTP/1 connection, pinned to a validated address.
//!
//! The task that waits for a response drives the connection itself. A separate task per connection,
//! hyper's usual way, costs two wake-ups per request, and leaves a moment after each response in
//! which it is unknown whether the connection can be used again. HTTP/1 has one request at a time,
//! so nothing is lost; an idle connection is checked when it is taken out of the pool, and every
//! few seconds in it.

use std::future::{Future, poll_fn};
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use crate::body::SlicesBody;
use crate::odd_response::OddResponse;
use crate::settings::RESPONSE_HEAD_BYTES_MAX;
use crate::wire::{ListeningWire, WireMeter, WireStream};

/// An open connection. Dropping it closes it.
pub(crate) struct HttpConnection {
    sender: http1::SendRequest<SlicesBody>,
    driver: http1::Connection<TokioIo<ListeningWire>, SlicesBody>,
    is_over: bool,
    meter: Arc<WireMeter>,
    pub(crate) address: IpAddr,
}

impl HttpConnection {
    /// Begins HTTP on a connected stream, whose bytes are counted by `meter`.
    /// Boxed, because it has a kilobyte and moves in and out of the pool.
    pub(crate) async fn open(
        wire: WireStream,
        meter: Arc<WireMeter>,
        address: IpAddr,
    ) -> hyper::Result<Box<Self>> {
        let io = TokioIo::new(ListeningWire::new(wire, Arc::clone(&meter)));
        let (sender, driver) = http1::Builder::new()
            .max_buf_size(RESPONSE_HEAD_BYTES_MAX)
            .handshake(io)
            .await?;
        Ok(Box::new(Self {
            sender,
            driver,
            is_over: false,
            meter,
            address,
        }))
    }

    /// True if any byte of a response to the last request came.
    pub(crate) fn was_heard(&self) -> bool {
        self.meter.was_heard()
    }

    /// True if the status of a response to the last request came.
    pub(crate) fn has_status(&self) -> bool {
        self.meter.has_status()
    }

    /// The response as it can be read without hyper, if the endpoint has kept within its bounds.
    pub(crate) fn odd_response(self) -> Option<OddResponse> {
        let is_within = !self.meter.is_beyond_bounds();
        is_within.then(|| OddResponse::from_wire(self.driver.into_parts().io.into_inner()))
    }

    /// True if the connection can take a request now: the peer has neither closed it nor sent
    /// unexpected bytes.
    pub(crate) fn is_usable(&mut self) -> bool {
        self.poll_driver(&mut Context::from_waker(Waker::noop()));
        !self.is_over && !self.meter.is_spoiled() && self.sender.is_ready()
    }

    /// Drives the connection until `work`, which waits for something on it, is done.
    pub(crate) async fn drive_until<F: Future>(&mut self, work: F) -> F::Output {
        let mut work = pin!(work);
        poll_fn(|cx| {
            // The connection first: what it reads makes the work ready in the same turn.
            self.poll_driver(cx);
            work.as_mut().poll(cx)
        })
        .await
    }

    fn poll_driver(&mut self, cx: &mut Context<'_>) {
        self.meter.begin_turn();
        // An error of the connection reaches the request that waits on it; without a request it has
        // no receiver.
        self.is_over = self.is_over || Pin::new(&mut self.driver).poll(cx).is_ready();
    }
}

/// A moment in the order in which a pool's connections became idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IdleOrder(pub(crate) u64);

/// The reason why the head of a response was not understood.
#[derive(Debug)]
pub(crate) enum HeadError {
    /// The connection broke, or hyper does not take the bytes.
    Broken(hyper::Error),
    /// The status came, and the rest of the head took too long.
    Slow,
}

/// A request on its connection, apart from the waiting for its response: so it can continue when
/// that ends.
pub(crate) struct HttpExchange {
    pub(crate) connection: Box<HttpConnection>,
    /// The moment at which the connection was taken out of the pool, if it was.
    pub(crate) taken: Option<IdleOrder>,
    answer: Pin<Box<dyn Future<Output = hyper::Result<Response<Incoming>>> + Send>>,
}

impl HttpExchange {
    /// Begins to send a request on a new connection.
    pub(crate) fn begin_on_new(
        mut connection: Box<HttpConnection>,
        request: Request<SlicesBody>,
    ) -> Self {
        connection.meter.begin_request();
        let answer = Box::pin(connection.sender.send_request(request));
        Self {
            connection,
            taken: None,
            answer,
        }
    }

    /// Begins to send a request on a connection that was taken out of the pool.
    pub(crate) fn begin_on_kept(
        connection: Box<HttpConnection>,
        taken: IdleOrder,
        request: Request<SlicesBody>,
    ) -> Self {
        Self {
            taken: Some(taken),
            ..Self::begin_on_new(connection, request)
        }
    }

    /// Sends the request and waits for the head of its response, once. Once the status is there,
    /// the rest of the head may take as long as `patience`, if that is given.
    pub(crate) async fn wait_for_head<P: Future<Output = ()>>(
        &mut self,
        mut patience: Option<Pin<&mut P>>,
    ) -> Result<Response<Incoming>, HeadError> {
        let Self {
            connection, answer, ..
        } = self;
        let head = poll_fn(|cx| {
            // The connection first: what it reads makes the response ready in the same turn.
            connection.poll_driver(cx);
            if let Poll::Ready(head) = answer.as_mut().poll(cx) {
                return Poll::Ready(head.map_err(HeadError::Broken));
            }
            match &mut patience {
                Some(patience) if connection.has_status() => {
                    patience.as_mut().poll(cx).map(|()| Err(HeadError::Slow))
                }
                _ => Poll::Pending,
            }
        })
        .await;
        connection.meter.end_head();
        head
    }
}
