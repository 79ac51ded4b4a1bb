//! The HTTP server: connections, their limits, and their end. The functions give the answers.

mod answering;
mod body_rest;
mod client_stream;
mod head;
pub mod limits;
mod operators;
mod parts;
mod places;
mod stalling;
mod tls_stream;
mod under_way;

use std::convert::Infallible;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderMap, Request, Response, header};
use axum::body::Body;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use futures_util::future::join_all;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use posthaste_console::OverTls;
use posthaste_core::api::PeerAddress;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_ports::{Clock, ObjectStore, QueueReceiver};
use posthaste_services::client::{self, RequestClient};
use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use self::body_rest::LentBody;
use self::client_stream::ClientStream;
use self::limits::ConnectionLimits;
use self::parts::{CONSENT_PATH, METRICS_PATH, is_publish};
use self::places::{ClientPlace, ClientPlaces};
use self::stalling::TimedWriteStream;
use self::tls_stream::ClientHandshake;
use super::data_folder::{DataFolder, HEALTH, must_be_kept};
use super::metrics::{MetricsPages, PageError, PageFormat};
use super::probes::{LIVEZ, ProbeAnswer, READYZ, VERSION, VersionAnswer, is_probe};
use super::readiness::Readiness;
use super::tls::ServerTls;

pub use operators::OperatorCheck;
pub use parts::ServedParts;
pub use under_way::UnderWay;

/// Longest wait for the head of a client's next request, after its last answer.
const NEXT_HEAD_TIMEOUT: Duration = Duration::from_secs(75);

/// Largest head of a request, and largest piece in which a body is read, in bytes.
const REQUEST_HEAD_BYTES_MAX: usize = 64 * 1024;

/// Most headers in a request.
const REQUEST_HEADERS_MAX: usize = 100;

/// Metric: requests that found no place.
const TURNED_AWAY_COUNT: &str = "RequestTurnedAwayCount";

/// Pause after accepting failed. Without file descriptors the pause ends with the next connection
/// that ends.
const REST_AFTER_FAILURE: Duration = Duration::from_millis(100);

/// The text about requests that another address answers.
const ELSEWHERE: &str =
    "another address of this server answers it; see --listen, --manage-listen and --metrics-listen";

/// Wait that is asked of a request for metrics where too many pages are being read.
const METRICS_RETRY_AFTER: Duration = Duration::from_secs(1);

/// `GET /metrics`, to be merged with the functions' routes.
pub fn metrics_route<S, Q, C>(pages: Arc<MetricsPages<S, Q, C>>) -> Router
where
    S: ObjectStore + 'static,
    Q: QueueReceiver + 'static,
    C: Clock,
{
    let show = get(async move |headers: HeaderMap| show_metrics(&pages, &headers).await);
    Router::new().route(METRICS_PATH, show.fallback(method_not_allowed))
}

async fn show_metrics<S, Q, C>(pages: &MetricsPages<S, Q, C>, headers: &HeaderMap) -> Response<Body>
where
    S: ObjectStore + 'static,
    Q: QueueReceiver + 'static,
    C: Clock,
{
    let form = PageFormat::accepted_by(headers);
    let of_form = [
        (header::CONTENT_TYPE, form.content_type()),
        (header::VARY, header::ACCEPT.as_str()),
    ];
    match pages.current_page(form).await {
        Ok(page) => (of_form, page).into_response(),
        Err(PageError::Crowded) => problem_response(metrics_crowded()),
        Err(PageError::NotRendered) => problem_response(ApiProblem::new(ProblemKind::Internal)),
    }
}

/// The paths for supervisors and load balancers, to be merged with the functions' routes. Whether
/// the server is ready is said before a request comes here.
pub fn probe_routes() -> Router {
    Router::new()
        .route(LIVEZ, get(answer_ok).fallback(method_not_allowed))
        .route(READYZ, get(answer_ok).fallback(method_not_allowed))
        .route(VERSION, get(answer_version).fallback(method_not_allowed))
}

async fn answer_ok() -> Json<ProbeAnswer> {
    Json(ProbeAnswer::OK)
}

async fn answer_version() -> Json<VersionAnswer> {
    Json(VersionAnswer::THIS)
}

fn metrics_crowded() -> ApiProblem {
    ApiProblem::new(ProblemKind::BackPressure)
        .detail(
            "too many pages of metrics are being read; all who ask in the same second share one",
        )
        .retry_after(METRICS_RETRY_AFTER)
}

async fn method_not_allowed() -> Response<Body> {
    let mut problem = ApiProblem::new(ProblemKind::MethodNotAllowed);
    problem.allow = Some("GET, HEAD");
    problem_response(problem)
}

fn never_fails<T>(answered: Result<T, Infallible>) -> T {
    answered.unwrap_or_else(|never| match never {})
}

fn is_refusal(response: &Response<Body>) -> bool {
    response.status().is_client_error() || response.status().is_server_error()
}

fn problem_response(problem: ApiProblem) -> Response<Body> {
    problem.into_response().map(Body::from)
}

/// The layer between the connections and the functions.
#[derive(Debug)]
pub struct RequestFront {
    /// The routes of the functions.
    pub router: Router,
    /// Whose requests are answered even if all other places are taken.
    pub operators: OperatorCheck,
    /// The files in which answers are kept.
    pub data_folder: Arc<DataFolder>,
    /// Answers requests that may take the processor for long.
    pub upkeep: Handle,
    /// The work that the server has to do before its health is good.
    pub readiness: Arc<Readiness>,
    /// Bounds of connections.
    pub limits: ConnectionLimits,
    /// Counts the requests that are being answered.
    pub under_way: Arc<UnderWay>,
    /// The certificate; `None` where the addresses speak plain HTTP.
    pub tls: Option<Arc<ServerTls>>,
}

impl RequestFront {
    /// The answer of a function. Those to operators are made by another thread than the workers. If
    /// the connection ends before, only a request that changes something goes on to its end.
    async fn route_request(&self, request: Request<Body>) -> Response<Body> {
        let is_quick = is_quick(&request);
        let is_only_read = is_only_read(&request);
        let answer = self.router.clone().oneshot(request);
        if is_quick {
            return never_fails(answer.await);
        }
        let answering = self.upkeep.spawn(answer);
        let _reading = is_only_read.then(|| AbortOnDrop(answering.abort_handle()));
        match answering.await {
            Ok(answered) => never_fails(answered),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // The process is ending.
                Err(_) => problem_response(ApiProblem::new(ProblemKind::Unavailable)),
            },
        }
    }

    /// Answers a request, if there is a place for it.
    async fn respond(
        &self,
        place: &Arc<ClientPlace>,
        answers: ServedParts,
        request: Request<LentBody>,
    ) -> Response<Body> {
        let (head, body) = request.into_parts();
        let Some(answering) = place.begin_request(self.operators.is_operator_request(&head)) else {
            ::metrics::counter!(TURNED_AWAY_COUNT).increment(1);
            return problem_response(head::crowded_problem());
        };
        let answering = (answering, self.under_way.count_request());
        if let Some(problem) = head::find_problem(&head) {
            return problem_response(problem);
        }
        if !answers.serves_request(&head) {
            return problem_response(ApiProblem::new(ProblemKind::NotFound).detail(ELSEWHERE));
        }
        if head.uri.path() == HEALTH
            && let Some(problem) = self.readiness.problem()
        {
            return problem_response(problem);
        }
        if head.uri.path() == READYZ
            && let Some(problem) = self.readiness.problem_for_load_balancers()
        {
            return problem_response(problem);
        }
        let must_be_kept = must_be_kept(&head.method, head.uri.path());
        if let Some(problem) = self.data_folder.refuse_if(must_be_kept) {
            return problem_response(problem);
        }
        let mut request = Request::from_parts(head, Body::new(body));
        // The audit trail says from where a change came. Publishing is none.
        if !is_quick(&request) {
            request.extensions_mut().insert(PeerAddress(place.address));
            if self.tls.is_some() {
                request.extensions_mut().insert(OverTls);
            }
        }
        let response = self.route_request(request).await;
        // What was written meanwhile may be in a file that ends with this process.
        let is_promise = must_be_kept && !is_refusal(&response);
        if let Some(problem) = self.data_folder.refuse_if(is_promise) {
            return problem_response(problem);
        }
        response.map(|body| answering::keep_place_until_sent(body, answering))
    }
}

/// An answer that is not made to its end where this is dropped before.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Whether a request changes nothing. An endpoint may consent by GET.
fn is_only_read(request: &Request<Body>) -> bool {
    request.method().is_safe() && !request.uri().path().starts_with(CONSENT_PATH)
}

/// Whether a request never takes the processor for long: publishing, health, the state of the
/// process and metrics.
fn is_quick(request: &Request<Body>) -> bool {
    let path = request.uri().path();
    is_publish(request.method(), path) || is_probe(path) || [HEALTH, METRICS_PATH].contains(&path)
}

/// An address that is listened on.
#[derive(Debug)]
pub struct ListeningAddress {
    /// The listener at which connections come in.
    pub listener: TcpListener,
    /// The requests that are answered there.
    pub answers: ServedParts,
}

/// Accepts connections until `stop` is cancelled, then ends each after its current request. All
/// addresses share the bounds of connections.
pub async fn serve<C: Clock>(
    listening: Vec<ListeningAddress>,
    front: RequestFront,
    clock: C,
    stop: CancellationToken,
) {
    let places = ClientPlaces::new(front.limits.clone());
    let front = Arc::new(front);
    let each = listening
        .into_iter()
        .map(|one| accept_all(one, &front, &places, &clock, &stop));
    join_all(each).await;
}

async fn accept_all<C: Clock>(
    ListeningAddress { listener, answers }: ListeningAddress,
    front: &Arc<RequestFront>,
    places: &Arc<ClientPlaces>,
    clock: &C,
    stop: &CancellationToken,
) {
    let mut connections = JoinSet::new();
    while let Some(accepted) = stop
        .run_until_cancelled(accept_one(&listener, places))
        .await
    {
        match accepted {
            Ok((stream, place)) => {
                let connection = ClientConnection {
                    front: Arc::clone(front),
                    answers,
                    place: Arc::new(place),
                    clock: clock.clone(),
                };
                connections.spawn(serve_connection(stream, connection, stop.clone()));
            }
            Err(error) => rest_after_error(&error, places, clock).await,
        }
        while let Some(ended) = connections.try_join_next() {
            note_panic(ended);
        }
    }
    // New connections are refused from now on, instead of waiting for an answer that never comes.
    drop(listener);
    while let Some(ended) = connections.join_next().await {
        note_panic(ended);
    }
}

/// Accepts a connection, once there is a place for it.
async fn accept_one(
    listener: &TcpListener,
    places: &Arc<ClientPlaces>,
) -> std::io::Result<(TcpStream, ClientPlace)> {
    let (stream, peer) = listener.accept().await?;
    Ok((stream, places.take_place(peer.ip()).await))
}

/// Waits before the next try to accept. If file descriptors have run out, a connection that waits
/// for its client is closed.
async fn rest_after_error<C: Clock>(error: &std::io::Error, places: &ClientPlaces, clock: &C) {
    let is_exhausted = matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE)
    );
    if is_exhausted && places.make_room() {
        tracing::debug!(%error, "a connection is closed for another one");
        tokio::select! {
            () = places.freed.notified() => {}
            () = clock.sleep(REST_AFTER_FAILURE) => {}
        }
    } else {
        tracing::warn!(%error, "connection not accepted");
        clock.sleep(REST_AFTER_FAILURE).await;
    }
}

async fn serve_connection<C: Clock>(
    stream: TcpStream,
    connection: ClientConnection<C>,
    stop: CancellationToken,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "connection not set up");
        return;
    }
    // Outside of the task's budget, which a client that is always ready for more uses up.
    let cut = connection.place.wait_for_cut(&connection.clock);
    let cut = tokio::task::coop::unconstrained(cut);
    let mut cut = std::pin::pin!(cut);
    let Some(tls) = &connection.front.tls else {
        let stream = ClientStream::new(stream);
        let service = connection.serve_client(stream.client());
        let service = service_fn(move |request| service.clone().respond_infallibly(request));
        let stream = connection.time_writes(stream);
        return http_1(stream, service, cut, &stop).await;
    };
    let handshake = tls_stream::accept(
        stream,
        |stream| connection.time_writes(stream),
        tls.config(),
    );
    // The time for the head of the first request includes the handshake.
    let shaken = tokio::select! {
        biased;
        shaken = handshake => shaken,
        () = cut.as_mut() => return log_cut(),
        // No request has begun.
        () = stop.cancelled() => return,
    };
    match shaken {
        Ok(ClientHandshake::Done(stream)) => {
            let service = connection.serve_client(stream.client());
            let service = service_fn(move |request| service.clone().respond_infallibly(request));
            http_1(stream, service, cut, &stop).await;
        }
        Ok(ClientHandshake::PlainHttp(stream)) => {
            let service = service_fn(async |_| Ok(tls_stream::answer_to_plain_http()));
            http_1(stream, service, cut, &stop).await;
        }
        Err(error) => {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "TLS handshake failed"
            );
        }
    }
}

/// Answers the requests of a stream until it ends, or its connection is cut.
async fn http_1<S, V>(
    stream: S,
    service: V,
    mut cut: Pin<&mut impl Future<Output = ()>>,
    stop: &CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    V: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>,
{
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(NEXT_HEAD_TIMEOUT)
        .max_buf_size(REQUEST_HEAD_BYTES_MAX)
        .max_headers(REQUEST_HEADERS_MAX)
        // A client that has nothing more to send still reads its answer.
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        // A request that has come is answered before anything else.
        biased;
        ended = connection.as_mut() => Some(ended),
        () = cut.as_mut() => None,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                biased;
                ended = connection.as_mut() => Some(ended),
                () = cut.as_mut() => None,
            }
        }
    };
    match ended {
        Some(Ok(())) => {}
        Some(Err(error)) => {
            tracing::debug!(error = &error as &dyn std::error::Error, "connection ended");
        }
        None => log_cut(),
    }
}

fn log_cut() {
    tracing::debug!(
        "connection closed: its client sends or reads nothing, and others wait or its time is over"
    );
}

/// A connection that was accepted, apart from its stream.
#[derive(Clone)]
struct ClientConnection<C> {
    front: Arc<RequestFront>,
    answers: ServedParts,
    place: Arc<ClientPlace>,
    clock: C,
}

/// The answers to the requests of one connection.
#[derive(Clone)]
struct ConnectionService<C> {
    connection: ClientConnection<C>,
    client: Arc<dyn RequestClient>,
}

impl<C: Clock> ConnectionService<C> {
    async fn respond_infallibly(
        self,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Infallible> {
        let answer = self.connection.respond_and_drain(request);
        Ok(client::answer_for_client(self.client, answer).await)
    }
}

impl<C: Clock> ClientConnection<C> {
    /// The answers to what this client asks.
    fn serve_client(&self, client: Arc<dyn RequestClient>) -> ConnectionService<C> {
        ConnectionService {
            connection: self.clone(),
            client,
        }
    }

    /// A stream whose writes are timed for the place of this connection.
    fn time_writes<S>(&self, stream: S) -> TimedWriteStream<S, C> {
        TimedWriteStream::new(stream, Arc::clone(&self.place), self.clock.clone())
    }

    /// Answers one request, and reads the rest of its body.
    async fn respond_and_drain(&self, request: Request<Incoming>) -> Response<Body> {
        let asks_first = request.headers().contains_key(header::EXPECT);
        let (head, body) = request.into_parts();
        let (lent, mut back) = body_rest::lend_body(body);
        let request = Request::from_parts(head, lent);
        let mut response = self.front.respond(&self.place, self.answers, request).await;
        // An error means that the body was read to its end.
        let Ok(mut unread) = back.try_recv() else {
            return response;
        };
        if !asks_first && !is_refusal(&response) {
            match unread.read_past_unasked(&self.clock).await {
                Some(more) => unread = more,
                None => return response,
            }
        }
        body_rest::settle_unread(unread, asks_first, &mut response, &self.clock);
        response
    }
}

/// Logs a panic. It ends its own connection and no other.
fn note_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection failed by a fault of posthaste");
    }
}

#[cfg(test)]
mod tests;
