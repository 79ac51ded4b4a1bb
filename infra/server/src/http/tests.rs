//! The server on a clock that is moved by hand: what becomes of a client that leaves while its
//! acknowledgement waits, with publish behind it and the embedded store below, and of one that
//! reads its answer slowly or not at all.

mod tls;

use super::*;
use ::http::Method;
use posthaste_core::model::{Secret, Timestamp};
use posthaste_core::pressure::PressureState;
use posthaste_core::stored::PRESSURE_KEY;
use posthaste_local::{EmbeddedStore, LocalOptions, LocalQueue, StateStore};
use posthaste_ports::{ObjectStore, PutCondition, QueueName, QueueReceiver};
use posthaste_publish::{BodyBudget, Publish, PublishSettings, TarpitTurns};
use posthaste_services::{ActivityNotes, PressureReader, TopicRegistry};
use posthaste_testkit::{ManualClock, SeededEntropy, TestPorts};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const START: Timestamp = Timestamp::from_millis(1_000_000);
const TARPIT: Duration = Duration::from_secs(10);
const TOPIC: &str = r#"{
    "v": 1, "name": "orders", "key1": "one", "key2": "two", "createdAt": 0, "updatedAt": 0,
    "settings": { "subscriptions": { "a": {
        "endpoint": { "url": "https://a.example/" }, "contentMode": "structured"
    } } }
}"#;
const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t"}"#;

/// An address where all is answered.
fn everything(listener: TcpListener) -> Vec<ListeningAddress> {
    let answers = ServedParts::ALL;
    vec![ListeningAddress { listener, answers }]
}

struct World {
    clock: ManualClock,
    local: EmbeddedStore<ManualClock>,
    address: SocketAddr,
    /// Number of sleepers in the store and the server.
    at_rest: usize,
    _folder: tempfile::TempDir,
}

impl World {
    /// A server under the tarpit.
    async fn tarpitted() -> Self {
        Self::under(10_000).await
    }

    /// A server whose acknowledgements wait for so long.
    async fn under(tarpit_ms: u64) -> Self {
        Self::with_tls(tarpit_ms, None).await
    }

    /// The same, with a certificate.
    async fn with_tls(tarpit_ms: u64, tls: Option<Arc<ServerTls>>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::new(START);
        let options = LocalOptions::default();
        let entropy = SeededEntropy::new(1);
        let local = EmbeddedStore::open(folder.path(), options, clock.clone(), entropy).unwrap();
        let mut state = PressureState::normal(START);
        state.tarpit_ms = tarpit_ms;
        state.first_step_ms = tarpit_ms;
        let put = async |key, bytes: Vec<u8>| {
            local
                .state_store()
                .put(key, bytes.into(), PutCondition::Always)
                .await
                .unwrap();
        };
        put("topics/orders.json", TOPIC.into()).await;
        put(PRESSURE_KEY, state.render()).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = posthaste_publish::router(Arc::new(publish(&local, &clock)));
        let front = RequestFront {
            router,
            operators: operators(),
            data_folder: Arc::default(),
            readiness: Arc::default(),
            upkeep: Handle::current(),
            limits: ConnectionLimits::default(),
            under_way: Arc::default(),
            tls,
        };
        // The server's own waits are on another clock: those of the acknowledgements are counted.
        tokio::spawn(serve(
            everything(listener),
            front,
            ManualClock::new(START),
            CancellationToken::new(),
        ));
        let at_rest = clock.sleepers();
        Self {
            clock,
            local,
            address,
            at_rest,
            _folder: folder,
        }
    }

    /// The answers to a client that sends this and then closes its side.
    async fn answers(&self, sent: &str) -> String {
        let mut client = TcpStream::connect(self.address).await.unwrap();
        client.write_all(sent.as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        let mut answers = String::new();
        client.read_to_string(&mut answers).await.unwrap();
        answers
    }

    /// A client that has sent its request.
    async fn client(&self) -> TcpStream {
        let mut client = TcpStream::connect(self.address).await.unwrap();
        client.write_all(event_request().as_bytes()).await.unwrap();
        client
    }

    /// Lets other tasks run until so many acknowledgements wait. The limit only ends a test that
    /// fails.
    async fn until_waiting(&self, count: usize) {
        let reached = async {
            while self.clock.sleepers() != self.at_rest + count {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), reached)
            .await
            .unwrap();
    }

    async fn published(&self) -> u64 {
        self.local
            .queue(QueueName::Deliveries)
            .counts()
            .await
            .unwrap()
            .visible
    }
}

/// A request that publishes, the only one of its connection.
fn event_request() -> String {
    let headers = "host: x\r\nconnection: close\r\naeg-sas-key: one\r\ncontent-type: application/cloudevents+json";
    let length = EVENT.len();
    format!(
        "POST /topics/orders/events HTTP/1.1\r\n{headers}\r\ncontent-length: {length}\r\n\r\n{EVENT}"
    )
}

fn operators() -> OperatorCheck {
    OperatorCheck::new(Secret::new("the-admin-key"), None)
}

type ManualPublish = Publish<TestPorts<LocalQueue<ManualClock>, StateStore>>;

fn publish(local: &EmbeddedStore<ManualClock>, clock: &ManualClock) -> ManualPublish {
    Publish {
        deliveries: local.queue(QueueName::Deliveries),
        slow_lane: None,
        records: Some(local.queue(QueueName::Records)),
        registry: TopicRegistry::new(local.state_store(), clock.clone(), Duration::ZERO),
        payloads: local.state_store(),
        pressure: PressureReader::new(local.state_store(), clock.clone(), Duration::ZERO),
        clock: clock.clone(),
        entropy: SeededEntropy::new(1),
        activity: ActivityNotes::default(),
        bodies: BodyBudget::new(1_000_000),
        advice: TarpitTurns::default(),
        wrong_keys: posthaste_services::WrongKeys::default(),
        traces: posthaste_services::EventTraces::default(),
        settings: PublishSettings::default(),
    }
}

/// Client that stays until its acknowledgement has published its events.
#[tokio::test]
async fn client_that_leaves_in_the_tarpit_has_published_nothing() {
    let world = World::tarpitted().await;
    let leaving = world.client().await;
    world.until_waiting(1).await;
    drop(leaving);
    world.until_waiting(0).await;
    let mut staying = world.client().await;
    world.until_waiting(1).await;
    assert_eq!(world.published().await, 0);
    world.clock.advance(TARPIT);
    let mut answer = String::new();
    staying.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(world.published().await, 1);
}

/// The client may have nothing more to send, or be gone: it is answered, and nothing is published.
#[tokio::test]
async fn half_closed_client_is_answered_at_once_in_the_tarpit() {
    let world = World::tarpitted().await;
    let mut closing = world.client().await;
    world.until_waiting(1).await;
    closing.shutdown().await.unwrap();
    let mut answer = String::new();
    closing.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("retry-after: 5"), "{answer}");
    world.until_waiting(0).await;
    assert_eq!(world.published().await, 0);
}

fn publish_request(body: &str, length: usize) -> String {
    let headers = "host: x\r\naeg-sas-key: one\r\ncontent-type: application/cloudevents+json";
    format!(
        "POST /topics/orders/events HTTP/1.1\r\n{headers}\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

#[tokio::test]
async fn half_closed_client_gets_the_answers_to_whole_requests() {
    let world = World::under(0).await;
    let request = publish_request(EVENT, EVENT.len());
    let answers = world.answers(&request.repeat(2)).await;
    assert_eq!(answers.matches("HTTP/1.1 200").count(), 2, "{answers}");
    assert_eq!(world.published().await, 2);
    let chunked = request.replace(
        &format!("content-length: {}\r\n\r\n{EVENT}", EVENT.len()),
        &format!(
            "transfer-encoding: chunked\r\n\r\n{:x}\r\n{EVENT}\r\n0\r\n\r\n",
            EVENT.len()
        ),
    );
    let answers = world.answers(&chunked).await;
    assert!(answers.starts_with("HTTP/1.1 200"), "{answers}");
    // A wrong key is answered before the body is read.
    let answers = world.answers(&request.replace("key: one", "key: no")).await;
    assert!(answers.starts_with("HTTP/1.1 401"), "{answers}");
    assert_eq!(world.published().await, 3);
}

#[tokio::test]
async fn request_that_is_cut_has_no_effect() {
    let world = World::under(0).await;
    for cut in [
        publish_request(&EVENT[..EVENT.len() - 1], EVENT.len()),
        publish_request("", EVENT.len()),
        "POST /topics/orders/events HTTP/1.1\r\nhost: x\r\n".to_owned(),
    ] {
        let answers = world.answers(&cut).await;
        assert!(!answers.contains("HTTP/1.1 2"), "{answers}");
    }
    assert_eq!(world.published().await, 0);
}

#[tokio::test]
async fn half_closed_client_gets_all_of_a_large_answer() {
    let server = Small::start().await;
    for (path, bytes) in [("/large", LARGE_BYTES), ("/small", "small".len())] {
        let mut client = TcpStream::connect(server.address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: h\r\n\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200"));
        let body = answer
            .windows(4)
            .position(|end| end == b"\r\n\r\n")
            .unwrap()
            + 4;
        assert_eq!(answer.len() - body, bytes, "{path}");
    }
}

/// Larger than what the sockets of both sides take.
const LARGE_BYTES: usize = 32 << 20;

/// A server with one place for requests, on a clock that stands still.
struct Small {
    clock: ManualClock,
    address: SocketAddr,
}

impl Small {
    async fn start() -> Self {
        Self::with_tls(None).await
    }

    async fn with_tls(tls: Option<Arc<ServerTls>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let clock = ManualClock::new(START);
        let large = || async { vec![b'x'; LARGE_BYTES] };
        let router = Router::new()
            .route("/large", get(large))
            .route("/small", get(|| async { "small" }));
        let limits = ConnectionLimits {
            requests_max: 1,
            ..ConnectionLimits::default()
        };
        let front = RequestFront {
            router,
            operators: operators(),
            data_folder: Arc::default(),
            readiness: Arc::default(),
            upkeep: Handle::current(),
            limits,
            under_way: Arc::default(),
            tls,
        };
        tokio::spawn(serve(
            everything(listener),
            front,
            clock.clone(),
            CancellationToken::new(),
        ));
        Self { clock, address }
    }

    async fn ask(&self, path: &str) -> TcpStream {
        let mut client = TcpStream::connect(self.address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        client
    }

    /// A client whose answer has begun.
    async fn slow(&self) -> TcpStream {
        let mut slow = self.ask("/large").await;
        let mut begin = [0; 12];
        slow.read_exact(&mut begin).await.unwrap();
        assert_eq!(&begin, b"HTTP/1.1 200");
        slow
    }

    /// The status of another request.
    async fn small(&self) -> String {
        let mut answer = String::new();
        self.ask("/small")
            .await
            .read_to_string(&mut answer)
            .await
            .unwrap();
        answer[9..12].to_owned()
    }
}

#[tokio::test]
async fn a_request_keeps_its_place_until_its_answer_was_sent() {
    let server = Small::start().await;
    let mut slow = server.slow().await;
    assert_eq!(server.small().await, "503");
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).await.unwrap();
    assert!(rest.len() > LARGE_BYTES);
    assert_eq!(server.small().await, "200");
}

#[tokio::test]
async fn a_client_that_does_not_read_its_answer_keeps_nobody_out() {
    let server = Small::start().await;
    let mut slow = server.slow().await;
    assert_eq!(server.small().await, "503");
    // Until then what the sockets take may still be growing. The limit only ends a test that fails.
    let taken = async {
        while server.small().await != "200" {
            server.clock.advance(Duration::from_secs(1));
        }
    };
    tokio::time::timeout(Duration::from_secs(20), taken)
        .await
        .unwrap();
    let mut rest = Vec::new();
    let end = slow.read_to_end(&mut rest).await;
    assert!(end.is_err() || rest.len() < LARGE_BYTES, "{}", rest.len());
}

/// The database leaves its path while a request is being answered: what it wrote ends with the
/// process, so its answer is no success.
#[tokio::test]
async fn answer_is_refused_once_the_database_left_its_path() {
    let root = tempfile::tempdir().unwrap();
    let options = LocalOptions::default();
    let entropy = SeededEntropy::new(1);
    let clock = ManualClock::new(START);
    let local = EmbeddedStore::open(&root.path().join("data"), options, clock, entropy).unwrap();
    let place = local.open_files().cloned();
    let data_folder = Arc::new(DataFolder::new(place, Vec::new(), None));
    let seen = Arc::clone(&data_folder);
    let from = root.path().join("data");
    let to = root.path().join("aside");
    let leave = move || {
        std::fs::rename(&from, &to).unwrap();
        seen.check_all();
        std::future::ready("kept")
    };
    let front = RequestFront {
        router: Router::new().route("/", axum::routing::post(leave)),
        operators: operators(),
        data_folder,
        readiness: Arc::default(),
        upkeep: Handle::current(),
        limits: ConnectionLimits::default(),
        under_way: Arc::default(),
        tls: None,
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(
        everything(listener),
        front,
        ManualClock::new(START),
        CancellationToken::new(),
    ));
    let mut client = TcpStream::connect(address).await.unwrap();
    let request = b"POST / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n";
    client.write_all(request).await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
}

/// Health waits for the files of the command line, and nothing else does.
#[tokio::test]
async fn health_is_refused_until_the_server_is_ready() {
    let readiness = Arc::new(Readiness::until_applied(&["topics.yaml".into()]));
    let ok = || async { "ok" };
    let front = RequestFront {
        router: Router::new()
            .route("/health", get(ok))
            .route("/topics", get(ok))
            .merge(probe_routes()),
        operators: operators(),
        data_folder: Arc::default(),
        readiness: Arc::clone(&readiness),
        upkeep: Handle::current(),
        limits: ConnectionLimits::default(),
        under_way: Arc::default(),
        tls: None,
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let clock = ManualClock::new(START);
    let stop = CancellationToken::new();
    tokio::spawn(serve(everything(listener), front, clock, stop));
    let ask = async |request: &str| {
        let mut client = TcpStream::connect(address).await.unwrap();
        let request = format!("{request} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let waiting = ask("GET /health").await;
    assert!(waiting.starts_with("HTTP/1.1 503"), "{waiting}");
    let detail = "waiting until --config is applied: topics.yaml";
    assert!(waiting.contains(detail), "{waiting}");
    assert!(waiting.contains("retry-after: 1"), "{waiting}");
    for unready in [
        "HEAD /health",
        "GET /health?x=1",
        "GET /readyz",
        "HEAD /readyz",
    ] {
        let answer = ask(unready).await;
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    }
    assert!(ask("GET /topics").await.starts_with("HTTP/1.1 200"));
    assert!(ask("GET /livez").await.starts_with("HTTP/1.1 200"));
    readiness.mark_ready();
    for ready in ["GET /health", "GET /readyz", "HEAD /readyz", "GET /livez"] {
        let answer = ask(ready).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let version = ask("GET /version").await;
    let expected = concat!("\"version\":\"", env!("CARGO_PKG_VERSION"), "\"");
    assert!(version.contains(expected), "{version}");
    assert!(ask("POST /version").await.starts_with("HTTP/1.1 405"));
    readiness.mark_ending();
    let ending = ask("GET /readyz").await;
    assert!(ending.starts_with("HTTP/1.1 503"), "{ending}");
    assert!(ending.contains("the server is ending"), "{ending}");
    for unchanged in ["GET /health", "GET /livez", "GET /topics"] {
        let answer = ask(unchanged).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

/// An answer that waits, and says what became of it.
struct SlowAnswer {
    ended: tokio::sync::mpsc::UnboundedSender<&'static str>,
    is_done: bool,
}

impl Drop for SlowAnswer {
    fn drop(&mut self) {
        let ended = if self.is_done { "done" } else { "dropped" };
        // The test that failed is gone.
        let _ = self.ended.send(ended);
    }
}

/// The client leaves while its answer is made.
#[tokio::test]
async fn answer_that_only_reads_ends_with_its_connection() {
    for (method, path, expected) in [
        (Method::GET, "/topics", "dropped"),
        (Method::POST, "/topics", "done"),
        (Method::GET, "/validate/orders/billing/code", "done"),
    ] {
        let (ended, mut outcome) = tokio::sync::mpsc::unbounded_channel();
        let [begun, may_end] = [0; 2].map(|_| Arc::new(tokio::sync::Notify::new()));
        let has_begun = Arc::clone(&begun);
        let gate = Arc::clone(&may_end);
        let answer = move || async move {
            let is_done = false;
            let mut answer = SlowAnswer { ended, is_done };
            has_begun.notify_one();
            gate.notified().await;
            answer.is_done = true;
        };
        let front = RequestFront {
            router: Router::new().fallback(answer),
            operators: operators(),
            data_folder: Arc::default(),
            readiness: Arc::default(),
            upkeep: Handle::current(),
            limits: ConnectionLimits::default(),
            under_way: Arc::default(),
            tls: None,
        };
        let request = Request::builder().method(&method).uri(path);
        let request = request.body(Body::empty()).unwrap();
        let client = tokio::spawn(async move { front.route_request(request).await });
        begun.notified().await;
        client.abort();
        assert!(client.await.is_err());
        may_end.notify_one();
        assert_eq!(outcome.recv().await, Some(expected), "{method} {path}");
    }
}

/// Balancers close theirs after 60 s, and may use one that we have just closed.
#[tokio::test(start_paused = true)]
#[expect(
    clippy::disallowed_methods,
    reason = "hyper's own wait is on the runtime's clock, which this test moves"
)]
async fn idle_connection_is_kept_for_75_seconds() {
    let world = World::under(0).await;
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    stream
        .write_all(b"GET /nothing HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).await.unwrap();
    let answered_at = tokio::time::Instant::now();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert_eq!(
        (&first, answered_at.elapsed().as_secs()),
        (b"HTTP/1.1 404", 75)
    );
}
