//! The client: resolve, validate, connect or reuse, send, read, within one deadline.

use std::future::Future;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;

use futures_util::future::{Either, FutureExt, poll_immediate, select};
use http::{Response, StatusCode};
use hyper::body::Incoming;
use posthaste_core::model::{AddressPolicy, Link, SendFailure};
use posthaste_ports::{
    Clock, EvictableCache, EvictedAmount, LastLook, LateAnswer, WebhookAnswer, WebhookClient,
    WebhookRequest, WebhookResponse,
};

use crate::body::{ReceivedBody, SlicesBody};
use crate::coding::decode_response;
use crate::connection::{HeadError, HttpConnection, HttpExchange, IdleOrder};
use crate::dial::{addresses_in_turn, open_connection};
use crate::failure::{SendFault, fault_from_error};
use crate::framing;
use crate::names::NameLookup;
use crate::names::cache::NameCache;
use crate::names::system::SystemNames;
use crate::pool::ConnectionPool;
use crate::request::render_request;
use crate::settings::{ANSWER_REST_WAIT, ClientSettings};
use crate::tls::{TlsContext, TlsSetupError};

/// Sends webhooks over HTTP/1.1, on hyper and rustls. Clones are cheap and share connections and
/// names.
///
/// - A request goes only to an address that was validated together with every other address of its
///   host, at most `names_kept` ago; an idle connection is reused only while its address is among
///   those.
/// - A request on a reused connection that ends before any byte of a response is sent once more, on
///   a fresh one: the peer closed the idle connection at that moment. The endpoint may then see the
///   request twice.
/// - Whether a request may still begin is asked when it has a new connection, after a slow look-up
///   of its name, and before it is sent once more.
/// - A request on a reused connection that times out without a byte says nothing about the
///   endpoint: a balancer may have forgotten the connection. The link's other connections that were
///   idle when the request began are closed with it.
/// - A response that has a status line counts: if hyper does not take the rest, it is read again,
///   as leniently as curl reads. So is a response that an endpoint sends before it has read the
///   request.
/// - Once its status is there, the rest of a response may take [`ANSWER_REST_WAIT`], unless the
///   request needs its body.
/// - A connection whose response was odd, or was not read to its end, is closed.
/// - Each new connection to a host starts at the next of its addresses, so that all of them get
///   their share.
/// - An endpoint that never stops sending ends with an error: interim responses, and the bytes of a
///   response, have a bound, also after the request has timed out.
/// - Where all places of connections are taken, the ones that have been idle for longest are
///   closed. A request that then finds none has [no resources left](SendFailure::Exhausted).
/// - Neither redirects nor proxies of the environment are followed.
pub struct HyperWebhookClient<C, N = SystemNames<C>> {
    pub(crate) clock: C,
    pub(crate) shared: Arc<SharedClientState<N>>,
    pub(crate) pool: Arc<ConnectionPool>,
}

pub(crate) struct SharedClientState<N> {
    pub(crate) policy: AddressPolicy,
    names: NameCache<N>,
    pub(crate) tls: TlsContext,
}

impl<C: Clock> HyperWebhookClient<C> {
    /// A client that resolves names by the name server of its settings, or as the system does.
    /// Reads the root certificates, and nothing else, at once.
    pub fn new(settings: ClientSettings, clock: C) -> Result<Self, TlsSetupError> {
        let names = SystemNames::new(settings.dns_server, clock.clone());
        Self::with_names(settings, clock, names)
    }
}

impl<C: Clock, N: NameLookup> HyperWebhookClient<C, N> {
    /// A client that resolves names by `names`; the name server of its settings is not used.
    pub fn with_names(settings: ClientSettings, clock: C, names: N) -> Result<Self, TlsSetupError> {
        Ok(Self {
            clock,
            pool: Arc::new(ConnectionPool::new(&settings)),
            shared: Arc::new(SharedClientState {
                tls: TlsContext::new(settings.extra_root_file.as_deref())?,
                names: NameCache::new(names, settings.names_kept),
                policy: settings.addresses,
            }),
        })
    }

    /// The number of idle connections.
    pub fn idle_connections(&self) -> usize {
        self.pool.idle_count()
    }

    async fn attempt_request(
        &self,
        request: &WebhookRequest,
        look: &impl LastLook,
        mut deadline: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<WebhookResponse, MissingResponse> {
        let link = request.url.link();
        let mut begun = None;
        let mut patience = pin!(patience_timer(&self.clock));
        let in_time = ResponseDeadlines {
            patience: patience.as_mut(),
            deadline: deadline.as_mut(),
        };
        let head = self
            .head_by_deadline(&link, request, look, &mut begun, in_time)
            .await;
        let Some(head) = head else {
            return self.response_at_deadline(&link, begun);
        };
        let Some(exchange) = begun else {
            // A response exists only after the exchange has begun.
            let fault = head.err().unwrap_or(SendFailure::Socket.into());
            return Err(fault.into());
        };
        let needs = ResponseNeed::for_request(request);
        let (response, kept) = finish_response(exchange, head, needs, patience, deadline).await?;
        if let Some(connection) = kept {
            self.pool.put_idle(link, connection, &self.clock);
        }
        Ok(response)
    }

    /// The result of a request whose time has run out: the part of its response that has come, if
    /// that has a status.
    fn response_at_deadline(
        &self,
        link: &Link,
        begun: Option<HttpExchange>,
    ) -> Result<WebhookResponse, MissingResponse> {
        match begun {
            Some(exchange) if exchange.connection.has_status() => {
                let read = odd_response_by_now(exchange);
                read.ok_or_else(|| SendFault::from(SendFailure::TimedOut).into())
            }
            begun => {
                let unanswered = MissingResponse::timed_out(begun);
                if let Some(taken) = unanswered.silent_since {
                    self.pool.drop_idle_since_before(link, taken);
                }
                Err(unanswered)
            }
        }
    }

    /// The head of the response; `None` once the deadline is there. A future of its own, so that
    /// its memory is free again for the next steps.
    async fn head_by_deadline(
        &self,
        link: &Link,
        request: &WebhookRequest,
        look: &impl LastLook,
        begun: &mut Option<HttpExchange>,
        in_time: ResponseDeadlines<'_, impl Future<Output = ()>, impl Future<Output = ()>>,
    ) -> Option<Result<Response<Incoming>, SendFault>> {
        let head = pin!(self.send_for_head(link, request, look, begun, in_time.patience));
        // Not `tokio::select!`: it polls nothing once others have used up the task's budget.
        match select(head, in_time.deadline).await {
            Either::Left((head, _)) => Some(head),
            Either::Right(_) => None,
        }
    }

    /// Sends the request and waits for the head of the response. The exchange under way is in
    /// `begun`, also when this call is dropped.
    async fn send_for_head(
        &self,
        link: &Link,
        request: &WebhookRequest,
        look: &impl LastLook,
        begun: &mut Option<HttpExchange>,
        mut patience: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Response<Incoming>, SendFault> {
        let addresses = {
            let mut validated = pin!(self.validated_addresses(link));
            if let Some(addresses) = poll_immediate(validated.as_mut()).await {
                addresses?
            } else {
                let addresses = validated.await?;
                check_may_begin(look).await?;
                addresses
            }
        };
        let kept = if request.needs_new_connection {
            None
        } else {
            self.pool
                .take_idle(link, &addresses, self.clock.monotonic())
        };
        if let Some((connection, taken)) = kept {
            let exchange = begun.insert(HttpExchange::begin_on_kept(
                connection,
                taken,
                rendered_request(request)?,
            ));
            match wait_for_head(
                exchange,
                ResponseNeed::for_request(request),
                patience.as_mut(),
            )
            .await
            {
                Ok(response) => return Ok(response),
                Err(failure) if exchange.connection.was_heard() => return Err(failure),
                Err(_) => {
                    tracing::debug!(%link, "an idle connection was closed by the peer; sending once more");
                }
            }
            *begun = None;
        }
        let start = self.shared.names.next_turn(&link.host);
        let addresses = addresses_in_turn(&addresses, start);
        let tls = &self.shared.tls.connector;
        let pool = &*self.pool;
        let connection =
            Box::pin(open_connection(tls, pool, &self.clock, link, &addresses)).await?;
        check_may_begin(look).await?;
        let exchange = begun.insert(HttpExchange::begin_on_new(
            connection,
            rendered_request(request)?,
        ));
        wait_for_head(exchange, ResponseNeed::for_request(request), patience).await
    }

    /// All addresses of the link's host, every one of them allowed.
    async fn validated_addresses(&self, link: &Link) -> Result<Arc<[IpAddr]>, SendFailure> {
        let addresses = self.resolved_addresses(link).await?;
        let policy = &self.shared.policy;
        policy
            .check_addresses(link, &addresses)
            .map_err(|refusal| {
                tracing::warn!(%link, error = %refusal, "an endpoint's address is refused");
                SendFailure::AddressRefused
            })?;
        Ok(addresses)
    }

    /// All addresses of the link's host, of which none is checked.
    pub(crate) async fn resolved_addresses(
        &self,
        link: &Link,
    ) -> Result<Arc<[IpAddr]>, SendFailure> {
        match self.shared.policy.known_addresses(link) {
            Some(known) => Ok(known.into()),
            None => Box::pin(self.shared.names.resolve(&link.host, &self.clock)).await,
        }
    }
}

/// The deadlines of a response.
struct ResponseDeadlines<'a, P, D> {
    /// The deadline of the part that is not needed.
    patience: Pin<&'a mut P>,
    deadline: Pin<&'a mut D>,
}

/// The reason why there is no response, and the request that is still under way.
struct MissingResponse {
    fault: SendFault,
    /// The moment at which the kept connection was taken that stayed silent.
    silent_since: Option<IdleOrder>,
    begun: Option<HttpExchange>,
}

impl MissingResponse {
    /// The result when the time has run out: a request that was begun continues, and one without a
    /// connection is not sent any more.
    fn timed_out(begun: Option<HttpExchange>) -> Self {
        let silent_since = begun
            .as_ref()
            .filter(|exchange| !exchange.connection.was_heard())
            .and_then(|exchange| exchange.taken);
        let failure = match (&begun, silent_since) {
            (None, _) => SendFailure::ConnectTimedOut,
            (Some(_), None) => SendFailure::TimedOut,
            (Some(_), Some(_)) => SendFailure::KeptTimedOut,
        };
        Self {
            fault: failure.into(),
            silent_since,
            begun,
        }
    }
}

impl From<SendFault> for MissingResponse {
    fn from(fault: SendFault) -> Self {
        Self {
            fault,
            silent_since: None,
            begun: None,
        }
    }
}

/// Whether a failure may be that of an address that is no longer the host's.
fn may_mean_host_moved(failure: SendFailure) -> bool {
    !matches!(
        failure,
        SendFailure::Resolution { .. } | SendFailure::Exhausted | SendFailure::Withdrawn
    )
}

/// Asks whether a request may begin, after something that took time.
async fn check_may_begin(look: &impl LastLook) -> Result<(), SendFailure> {
    if look.may_begin().await {
        Ok(())
    } else {
        Err(SendFailure::Withdrawn)
    }
}

fn rendered_request(request: &WebhookRequest) -> Result<http::Request<SlicesBody>, SendFailure> {
    render_request(request).map_err(|error| {
        // Only a path of more than 64 KiB gets here; no server would take it.
        tracing::warn!(link = %request.url.link(), %error, "failed to render a request");
        SendFailure::Socket
    })
}

/// The part of a response that is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResponseNeed {
    /// The status. The rest is read as far as it comes soon.
    Status,
    /// The body, if the status is a success.
    Body,
}

impl ResponseNeed {
    fn for_request(request: &WebhookRequest) -> Self {
        if request.needs_body {
            Self::Body
        } else {
            Self::Status
        }
    }

    /// Reduces the need once the status is known: a failure needs no body.
    fn after_status(self, status: StatusCode) -> Self {
        if (200..=204).contains(&status.as_u16()) {
            self
        } else {
            Self::Status
        }
    }
}

/// The time that the rest of a response may take, from the moment at which it is first waited for.
async fn patience_timer(clock: &impl Clock) {
    clock.sleep(ANSWER_REST_WAIT).await;
}

async fn wait_for_head(
    exchange: &mut HttpExchange,
    needs: ResponseNeed,
    patience: Pin<&mut impl Future<Output = ()>>,
) -> Result<Response<Incoming>, SendFault> {
    let patience = (needs == ResponseNeed::Status).then_some(patience);
    exchange
        .wait_for_head(patience)
        .await
        .map_err(|error| match error {
            HeadError::Broken(error) => {
                let cause = &error as &dyn std::error::Error;
                tracing::debug!(
                    error = cause,
                    "failed to send a request, or to read its answer"
                );
                fault_after_sending(&error)
            }
            HeadError::Slow => SendFailure::TimedOut.into(),
        })
}

/// The failure of a request on an open connection.
fn fault_after_sending(error: &hyper::Error) -> SendFault {
    match fault_from_error(error) {
        SendFault {
            failure: SendFailure::Socket,
            text,
        } => SendFault {
            failure: SendFailure::Closed,
            text,
        },
        fault => fault,
    }
}

/// Reads the rest of a response until it is not worth waiting for any more, at `deadline` at the
/// latest. Returns the connection too, if another request may use it.
async fn finish_response(
    exchange: HttpExchange,
    head: Result<Response<Incoming>, SendFault>,
    needs: ResponseNeed,
    patience: Pin<&mut impl Future<Output = ()>>,
    deadline: Pin<&mut impl Future<Output = ()>>,
) -> Result<(WebhookResponse, Option<Box<HttpConnection>>), SendFault> {
    match head {
        Ok(response) => {
            let is_plain = framing::is_plain(response.status(), response.headers());
            let end = end_of_wait(needs.after_status(response.status()), patience, deadline);
            let mut connection = exchange.connection;
            let (response, is_whole) = read_response(&mut connection, response, end).await;
            let is_kept = is_whole && is_plain && connection.is_usable();
            Ok((response, is_kept.then_some(connection)))
        }
        // The rest of the head was already waited for.
        Err(fault) if fault.failure == SendFailure::TimedOut => {
            let read = odd_response_by_now(exchange);
            read.ok_or(fault).map(|response| (response, None))
        }
        Err(fault) => {
            let read = Box::pin(read_odd_response(exchange, needs, patience, deadline)).await;
            read.ok_or(fault).map(|response| (response, None))
        }
    }
}

/// The end of the time that the rest of a response may take.
async fn end_of_wait(
    needs: ResponseNeed,
    patience: impl Future<Output = ()>,
    deadline: impl Future<Output = ()>,
) {
    match needs {
        ResponseNeed::Body => deadline.await,
        ResponseNeed::Status => {
            select(pin!(patience), pin!(deadline)).await;
        }
    }
}

/// Reads the response that hyper does not take. `None` if the bytes have no status.
async fn read_odd_response(
    exchange: HttpExchange,
    needs: ResponseNeed,
    mut patience: Pin<&mut impl Future<Output = ()>>,
    mut deadline: Pin<&mut impl Future<Output = ()>>,
) -> Option<WebhookResponse> {
    let mut answer = exchange.connection.odd_response()?;
    let is_head_whole = {
        let end = end_of_wait(needs, patience.as_mut(), deadline.as_mut());
        match select(pin!(answer.read_head()), pin!(end)).await {
            Either::Left((is_whole, _)) => is_whole,
            Either::Right(_) => false,
        }
    };
    if let Some(status) = answer.status()
        && is_head_whole
    {
        let end = end_of_wait(needs.after_status(status), patience, deadline);
        select(pin!(answer.read_body()), pin!(end)).await;
    }
    answer.into_response()
}

/// The odd response as far as it has come.
fn odd_response_by_now(exchange: HttpExchange) -> Option<WebhookResponse> {
    let mut answer = exchange.connection.odd_response()?;
    answer.read_head().now_or_never();
    answer.into_response()
}

/// Reads the body of a response until `end`, and returns whether it came to its own end.
async fn read_response(
    connection: &mut HttpConnection,
    response: Response<Incoming>,
    end: impl Future<Output = ()>,
) -> (WebhookResponse, bool) {
    let (head, mut body) = response.into_parts();
    let mut received = ReceivedBody::default();
    let is_whole = {
        let reading = pin!(connection.drive_until(received.read_from(&mut body)));
        match select(reading, pin!(end)).await {
            Either::Left((is_whole, _)) => is_whole,
            Either::Right(_) => false,
        }
    };
    let status = head.status;
    let headers = head.headers;
    (
        WebhookResponse {
            status,
            headers,
            body: received.into_bytes(),
            body_is_whole: is_whole,
        },
        is_whole,
    )
}

/// The rest of a request whose time has run out. Its connection is not used again.
fn late_answer<C: Clock>(mut exchange: HttpExchange, needs: ResponseNeed, clock: C) -> LateAnswer {
    LateAnswer::new(async move {
        let mut patience = pin!(patience_timer(&clock));
        let head = wait_for_head(&mut exchange, needs, patience.as_mut()).await;
        let end = pin!(std::future::pending());
        let finished = finish_response(exchange, head, needs, patience, end).await;
        let (response, _) = finished.map_err(|fault| fault.failure)?;
        Ok(decode_response(response))
    })
}

impl<C: Clock, N: NameLookup> WebhookClient for HyperWebhookClient<C, N> {
    async fn send_if(&self, request: WebhookRequest, look: &impl LastLook) -> WebhookAnswer {
        let started = self.clock.monotonic();
        let deadline = pin!(self.clock.sleep(request.timeout));
        let answered = self.attempt_request(&request, look, deadline).await;
        let took = self.clock.monotonic().saturating_sub(started);
        match answered {
            Ok(response) => WebhookAnswer {
                result: Ok(decode_response(response)),
                failure_text: None,
                took,
                late: None,
            },
            Err(MissingResponse { fault, begun, .. }) => {
                if may_mean_host_moved(fault.failure) {
                    self.shared.names.doubt_addresses(&request.url.link().host);
                }
                WebhookAnswer {
                    result: Err(fault.failure),
                    failure_text: fault.text,
                    took,
                    late: begun.map(|begun| {
                        late_answer(
                            begun,
                            ResponseNeed::for_request(&request),
                            self.clock.clone(),
                        )
                    }),
                }
            }
        }
    }

    /// Closes the link's idle connections and forgets its host's addresses, also for its other
    /// links.
    fn drop_link(&self, link: &Link) {
        self.pool.drop_link(link);
        self.shared.names.forget_name(&link.host);
    }
}

impl<C: Clock, N: NameLookup> EvictableCache for HyperWebhookClient<C, N> {
    /// Closes idle connections, and forgets TLS sessions and expired names. The bytes count only the
    /// names: the memory of a connection in hyper, rustls and the kernel is unknown, and that of a
    /// session too.
    fn trim(&self) -> EvictedAmount {
        let connections = EvictedAmount {
            entries: self.pool.trim(),
            bytes: 0,
        };
        let sessions = EvictedAmount {
            entries: self.shared.tls.forget_sessions(),
            bytes: 0,
        };
        let names = self.shared.names.trim(self.clock.monotonic());
        [connections, sessions, names].into_iter().sum()
    }

    /// Forgets every resolved name, and the resolver's configuration. Idle connections stay: they
    /// are used only while the name still has their address.
    fn flush_dns(&self) -> usize {
        self.shared.names.flush()
    }
}

impl<C: Clone, N> Clone for HyperWebhookClient<C, N> {
    fn clone(&self) -> Self {
        Self {
            clock: self.clock.clone(),
            shared: self.shared.clone(),
            pool: self.pool.clone(),
        }
    }
}
