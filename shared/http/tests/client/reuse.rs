//! Keep-alive: when a connection is used again, and when it must not be.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use posthaste_core::model::{SendFailure, Timestamp};
use posthaste_http::{ClientSettings, HyperWebhookClient};
use posthaste_ports::{EvictableCache, EvictedAmount, LastLook, WebhookClient, WebhookRequest};
use posthaste_system::SystemClock;
use posthaste_testkit::ManualClock;
use tokio::sync::Notify;

use crate::endpoint::{Endpoint, EndpointStep, NO_CONTENT, OK, exchange, write};
use crate::{
    BriefResponse, ScriptedNames, TIMEOUT, answered, brief, client, on_loopback, post, send, settle,
};

#[tokio::test]
async fn connection_serves_many_requests() {
    let endpoint = Endpoint::start(vec![
        [exchange(OK), exchange(NO_CONTENT), exchange(OK)].concat(),
    ])
    .await;
    let client = client();
    assert_eq!(send(&client, &endpoint.url()).await, answered(200, "ok"));
    assert_eq!(
        send(&client.clone(), &endpoint.url()).await,
        answered(204, "")
    );
    assert_eq!(send(&client, &endpoint.url()).await, answered(200, "ok"));
    assert_eq!((endpoint.connections(), endpoint.requests().len()), (1, 3));
}

#[tokio::test]
async fn a_connection_that_the_peer_closed_while_idle_is_replaced() {
    let endpoint = Endpoint::start(vec![exchange(OK), exchange(OK)]).await;
    let client = client();
    assert_eq!(send(&client, &endpoint.url()).await, answered(200, "ok"));
    settle().await;
    assert_eq!(send(&client, &endpoint.url()).await, answered(200, "ok"));
    assert_eq!((endpoint.connections(), endpoint.requests().len()), (2, 2));
}

#[tokio::test]
async fn a_request_that_meets_a_closing_connection_is_sent_once_more() {
    let closing = [exchange(OK), vec![EndpointStep::Read]].concat();
    let endpoint = Endpoint::start(vec![closing, exchange(OK)]).await;
    let client = client();
    assert_eq!(send(&client, &endpoint.url()).await, answered(200, "ok"));
    assert_eq!(send(&client, &endpoint.url()).await, answered(200, "ok"));
    let requests = endpoint.requests();
    assert_eq!((endpoint.connections(), requests.len()), (2, 3));
    assert_eq!(requests[1], requests[2]);
}

/// A last look with this result, which counts how often it was asked.
struct CountedLook(bool, AtomicUsize);

impl LastLook for CountedLook {
    async fn may_begin(&self) -> bool {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0
    }
}

/// The result of a request, and how often the look was asked whether it may begin.
async fn asked(
    client: &HyperWebhookClient<SystemClock>,
    endpoint: &Endpoint,
    may_begin: bool,
) -> (BriefResponse, usize) {
    let look = CountedLook(may_begin, AtomicUsize::new(0));
    let answer = client.send_if(post(&endpoint.url()), &look).await;
    (brief(answer), look.1.into_inner())
}

#[tokio::test]
async fn request_that_may_not_begin_is_not_sent_on_its_new_connection() {
    let endpoint = Endpoint::start(vec![exchange(OK)]).await;
    let withdrawn = (Err(SendFailure::Withdrawn), 1);
    assert_eq!(asked(&client(), &endpoint, false).await, withdrawn);
    settle().await;
    assert_eq!((endpoint.connections(), endpoint.requests().len()), (1, 0));
}

/// A kept connection is there at once.
#[tokio::test]
async fn request_on_a_kept_connection_is_not_asked_about() {
    let endpoint = Endpoint::start(vec![[exchange(OK), exchange(OK)].concat()]).await;
    let client = client();
    assert_eq!(
        asked(&client, &endpoint, true).await,
        (answered(200, "ok"), 1)
    );
    assert_eq!(
        asked(&client, &endpoint, true).await,
        (answered(200, "ok"), 0)
    );
}

#[tokio::test]
async fn request_that_may_not_begin_is_not_sent_once_more() {
    let closing = [exchange(OK), vec![EndpointStep::Read]].concat();
    let endpoint = Endpoint::start(vec![closing, exchange(OK)]).await;
    let client = client();
    assert_eq!(send(&client, &endpoint.url()).await, answered(200, "ok"));
    let withdrawn = (Err(SendFailure::Withdrawn), 1);
    assert_eq!(asked(&client, &endpoint, false).await, withdrawn);
    assert_eq!(endpoint.requests().len(), 2);
}

/// Requests on a connection that the peer closed are sent once more, and not again.
#[tokio::test]
async fn request_on_closed_connection_is_resent_only_once() {
    let closing = [exchange(OK), vec![EndpointStep::Read]].concat();
    let endpoint = Endpoint::start(vec![closing, vec![EndpointStep::Read], exchange(OK)]).await;
    let client = client();
    assert_eq!(send(&client, &endpoint.url()).await, answered(200, "ok"));
    assert_eq!(
        send(&client, &endpoint.url()).await,
        Err(SendFailure::Closed)
    );
    assert_eq!((endpoint.connections(), endpoint.requests().len()), (2, 3));
}

#[tokio::test]
async fn a_request_that_was_partly_answered_is_not_sent_again() {
    let partly = [exchange(OK), exchange("HTTP/1.1 2")].concat();
    let endpoint = Endpoint::start(vec![partly, exchange(OK)]).await;
    let client = client();
    assert_eq!(send(&client, &endpoint.url()).await, answered(200, "ok"));
    assert_eq!(
        send(&client, &endpoint.url()).await,
        Err(SendFailure::Closed)
    );
    assert_eq!(endpoint.connections(), 1);
}

#[tokio::test]
async fn an_answer_nobody_asked_for_is_never_taken_for_the_next_one() {
    let forged = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged";
    for script in [
        vec![
            EndpointStep::Read,
            write(&format!("{OK}{forged}")),
            EndpointStep::Hang,
        ],
        vec![
            EndpointStep::Read,
            write(OK),
            write(forged),
            EndpointStep::Hang,
        ],
    ] {
        let endpoint = Endpoint::start(vec![script, exchange(NO_CONTENT)]).await;
        let client = client();
        assert_eq!(send(&client, &endpoint.url()).await, answered(200, "ok"));
        settle().await;
        assert_eq!(send(&client, &endpoint.url()).await, answered(204, ""));
        assert_eq!(endpoint.connections(), 2);
    }
}

#[tokio::test]
async fn an_idle_connection_goes_only_where_the_name_still_points() {
    let first = Endpoint::start(vec![vec![
        EndpointStep::Read,
        write(OK),
        EndpointStep::Hang,
    ]])
    .await;
    let moved = std::net::SocketAddr::from(([127, 0, 0, 2], first.address.port()));
    let second = Endpoint::on(
        tokio::net::TcpListener::bind(moved).await.unwrap(),
        None,
        vec![exchange(NO_CONTENT)],
    );
    let clock = ManualClock::new(Timestamp::EPOCH);
    let names = ScriptedNames::new(vec![Ok(&["127.0.0.1"]), Ok(&["127.0.0.2"])]);
    let client = HyperWebhookClient::with_names(on_loopback(), clock.clone(), names).unwrap();
    let url = format!("http://hooks.example:{}/", first.address.port());
    assert_eq!(send(&client, &url).await, answered(200, "ok"));
    clock.advance(Duration::from_secs(30));
    assert_eq!(send(&client, &url).await, answered(204, ""));
    assert_eq!((first.connections(), second.connections()), (1, 1));
}

#[tokio::test]
async fn idle_connections_end_with_their_time() {
    let kept = [exchange(OK), exchange(OK)].concat();
    let endpoint = Endpoint::start(vec![kept, exchange(NO_CONTENT)]).await;
    let clock = ManualClock::new(Timestamp::EPOCH);
    let client = HyperWebhookClient::new(on_loopback(), clock.clone()).unwrap();
    assert_eq!(send(&client, &endpoint.url()).await, answered(200, "ok"));
    clock.advance(Duration::from_secs(49));
    settle().await;
    assert_eq!(client.idle_connections(), 1);
    clock.advance(Duration::from_secs(5));
    settle().await;
    assert_eq!(client.idle_connections(), 0);
    assert_eq!(send(&client, &endpoint.url()).await, answered(204, ""));
}

/// A client with this many idle connections to an endpoint that says nothing more on them.
async fn with_silent_connections(
    count: usize,
    others: Vec<Vec<EndpointStep>>,
) -> (Endpoint, HyperWebhookClient<ManualClock>, ManualClock) {
    let silent = [exchange(OK), vec![EndpointStep::Read, EndpointStep::Hang]].concat();
    let scripts = vec![silent; count].into_iter().chain(others).collect();
    let endpoint = Endpoint::start(scripts).await;
    let clock = ManualClock::new(Timestamp::EPOCH);
    let client = HyperWebhookClient::new(on_loopback(), clock.clone()).unwrap();
    let url = endpoint.url();
    let answers = futures_util::future::join_all((0..count).map(|_| send(&client, &url))).await;
    assert_eq!(answers, vec![answered(200, "ok"); count]);
    assert_eq!(client.idle_connections(), count);
    (endpoint, client, clock)
}

/// Begins a request and waits until the endpoint has read it.
async fn begin_request(
    endpoint: &Endpoint,
    client: &HyperWebhookClient<ManualClock>,
) -> tokio::task::JoinHandle<BriefResponse> {
    let read = endpoint.requests().len();
    let url = endpoint.url();
    let client = client.clone();
    let sending = tokio::spawn(async move { send(&client, &url).await });
    while endpoint.requests().len() == read {
        endpoint.step_done().await;
    }
    sending
}

#[tokio::test]
async fn silent_kept_connection_takes_the_other_idle_ones_with_it() {
    let (endpoint, client, clock) = with_silent_connections(24, vec![exchange(NO_CONTENT)]).await;
    let sending = begin_request(&endpoint, &client).await;
    clock.advance(TIMEOUT);
    assert_eq!(sending.await.unwrap(), Err(SendFailure::KeptTimedOut));
    assert_eq!(client.idle_connections(), 0);
    assert_eq!(send(&client, &endpoint.url()).await, answered(204, ""));
    assert_eq!(endpoint.connections(), 25);
}

#[tokio::test]
async fn connection_that_was_heard_since_outlives_a_silent_one() {
    let alive = [exchange(NO_CONTENT), exchange(NO_CONTENT)].concat();
    let (endpoint, client, clock) = with_silent_connections(1, vec![alive]).await;
    let sending = begin_request(&endpoint, &client).await;
    assert_eq!(send(&client, &endpoint.url()).await, answered(204, ""));
    clock.advance(TIMEOUT);
    assert_eq!(sending.await.unwrap(), Err(SendFailure::KeptTimedOut));
    assert_eq!(client.idle_connections(), 1);
    assert_eq!(send(&client, &endpoint.url()).await, answered(204, ""));
    assert_eq!(endpoint.connections(), 2);
}

#[tokio::test]
async fn connection_that_began_to_answer_is_not_silent() {
    let halting = [
        exchange(OK),
        vec![EndpointStep::Read, write("HTTP/1.1 2"), EndpointStep::Hang],
    ]
    .concat();
    let endpoint = Endpoint::start(vec![halting]).await;
    let clock = ManualClock::new(Timestamp::EPOCH);
    let client = HyperWebhookClient::new(on_loopback(), clock.clone()).unwrap();
    assert_eq!(send(&client, &endpoint.url()).await, answered(200, "ok"));
    let sending = begin_request(&endpoint, &client).await;
    endpoint.step_done().await;
    settle().await;
    clock.advance(TIMEOUT);
    assert_eq!(sending.await.unwrap(), Err(SendFailure::TimedOut));
}

#[tokio::test]
async fn request_that_needs_a_new_connection_takes_no_kept_one() {
    let endpoint = Endpoint::start(vec![
        [exchange(OK), vec![EndpointStep::Read]].concat(),
        exchange(NO_CONTENT),
    ])
    .await;
    let client = client();
    assert_eq!(send(&client, &endpoint.url()).await, answered(200, "ok"));
    let request = WebhookRequest {
        needs_new_connection: true,
        ..post(&endpoint.url())
    };
    assert_eq!(brief(client.send(request).await), answered(204, ""));
    assert_eq!((endpoint.connections(), client.idle_connections()), (2, 1));
}

/// Connections that their peer closed are swept without another request.
#[tokio::test]
async fn connection_closed_by_its_peer_is_swept() {
    let close = Arc::new(Notify::new());
    let endpoint = Endpoint::start(vec![vec![
        EndpointStep::Read,
        write(OK),
        EndpointStep::Until(close.clone()),
    ]])
    .await;
    let clock = ManualClock::new(Timestamp::EPOCH);
    let client = HyperWebhookClient::new(on_loopback(), clock.clone()).unwrap();
    assert_eq!(send(&client, &endpoint.url()).await, answered(200, "ok"));
    close.notify_one();
    settle().await;
    assert_eq!((client.idle_connections(), clock.sleepers()), (1, 1));
    clock.advance(Duration::from_secs(5));
    settle().await;
    // With nothing left to sweep, the sweeper has ended too.
    assert_eq!((client.idle_connections(), clock.sleepers()), (0, 0));
}

#[tokio::test]
async fn trimming_closes_idle_connections() {
    let held = vec![EndpointStep::Read, write(OK), EndpointStep::Read];
    let endpoint = Endpoint::start(vec![held, exchange(OK)]).await;
    let client = client();
    assert_eq!(send(&client, &endpoint.url()).await, answered(200, "ok"));
    assert_eq!(
        client.trim(),
        EvictedAmount {
            entries: 1,
            bytes: 0
        }
    );
    assert_eq!(
        (client.idle_connections(), client.trim()),
        (0, EvictedAmount::default())
    );
    assert_eq!(send(&client, &endpoint.url()).await, answered(200, "ok"));
    assert_eq!(endpoint.connections(), 2);
}

/// Links that are down lose their connections and names, and other links keep theirs.
#[tokio::test]
async fn dropped_link_forgets_its_connections_and_names_alone() {
    let held = || vec![EndpointStep::Read, write(OK), EndpointStep::Read];
    let first = Endpoint::start(vec![held()]).await;
    let moved = std::net::SocketAddr::from(([127, 0, 0, 2], first.address.port()));
    let listener = tokio::net::TcpListener::bind(moved).await.unwrap();
    let second = Endpoint::on(listener, None, vec![exchange(NO_CONTENT)]);
    let other = Endpoint::start(vec![[exchange(OK), exchange(OK)].concat()]).await;
    let names = ScriptedNames::new(vec![Ok(&["127.0.0.1"]), Ok(&["127.0.0.2"])]);
    let client = HyperWebhookClient::with_names(on_loopback(), SystemClock, names).unwrap();
    let url = format!("http://hooks.example:{}/", first.address.port());
    for url in [&url, &other.url()] {
        assert_eq!(send(&client, url).await, answered(200, "ok"));
    }
    assert_eq!(client.idle_connections(), 2);
    client.drop_link(&post(&url).url.link());
    assert_eq!(client.idle_connections(), 1);
    // The name is asked for again, long before its time.
    assert_eq!(send(&client, &url).await, answered(204, ""));
    assert_eq!(send(&client, &other.url()).await, answered(200, "ok"));
    assert_eq!(
        (
            first.connections(),
            second.connections(),
            other.connections()
        ),
        (1, 1, 1)
    );
}

#[tokio::test]
async fn idle_connections_stay_within_their_limits() {
    let check = async |settings: ClientSettings, expected| {
        let endpoints = [
            Endpoint::start(vec![
                vec![EndpointStep::Read, write(OK), EndpointStep::Hang];
                3
            ])
            .await,
            Endpoint::start(vec![
                vec![EndpointStep::Read, write(OK), EndpointStep::Hang];
                3
            ])
            .await,
        ];
        let client = HyperWebhookClient::new(settings, SystemClock).unwrap();
        let urls = endpoints.each_ref().map(Endpoint::url);
        let sent = urls.iter().cycle().take(6).map(|url| send(&client, url));
        let answers = futures_util::future::join_all(sent).await;
        assert_eq!(answers, vec![answered(200, "ok"); 6]);
        assert_eq!(client.idle_connections(), expected);
    };
    check(on_loopback(), 6).await;
    check(
        ClientSettings {
            idle_per_link_max: 2,
            ..on_loopback()
        },
        4,
    )
    .await;
    check(
        ClientSettings {
            idle_max: 5,
            ..on_loopback()
        },
        5,
    )
    .await;
    check(
        ClientSettings {
            idle_per_link_max: 0,
            ..on_loopback()
        },
        0,
    )
    .await;
}

#[tokio::test]
async fn longest_idle_connection_makes_room_for_another() {
    let held = || [exchange(OK), exchange(OK), vec![EndpointStep::Hang]].concat();
    let start = async || Endpoint::start(vec![held(), held()]).await;
    let [first, second, third] = [start().await, start().await, start().await];
    let client = HyperWebhookClient::new(
        ClientSettings {
            idle_max: 2,
            ..on_loopback()
        },
        SystemClock,
    )
    .unwrap();
    for endpoint in [&first, &second, &third, &third, &second, &first] {
        assert_eq!(send(&client, &endpoint.url()).await, answered(200, "ok"));
    }
    assert_eq!(client.idle_connections(), 2);
    assert_eq!(
        [&first, &second, &third].map(Endpoint::connections),
        [2, 1, 1]
    );
}

#[tokio::test]
async fn idle_connections_give_their_places_to_new_ones() {
    let held = || [exchange(OK), exchange(OK), vec![EndpointStep::Hang]].concat();
    let start = async || Endpoint::start(vec![held(), held()]).await;
    let [first, second, third] = [start().await, start().await, start().await];
    let settings = ClientSettings {
        connections_max: 2,
        ..on_loopback()
    };
    let client = HyperWebhookClient::new(settings, SystemClock).unwrap();
    for endpoint in [&first, &second, &third, &third, &second, &first] {
        assert_eq!(send(&client, &endpoint.url()).await, answered(200, "ok"));
        assert!(client.idle_connections() <= 2);
    }
    assert_eq!(
        [&first, &second, &third].map(Endpoint::connections),
        [2, 1, 1]
    );
}

#[tokio::test]
async fn request_without_a_place_is_not_its_endpoint_s_fault() {
    let busy = Endpoint::start(vec![vec![EndpointStep::Read, EndpointStep::Hang]]).await;
    let other = Endpoint::start(vec![exchange(OK)]).await;
    let settings = ClientSettings {
        connections_max: 1,
        ..on_loopback()
    };
    let client = HyperWebhookClient::new(settings, SystemClock).unwrap();
    let held = client.clone();
    let url = busy.url();
    let holding = tokio::spawn(async move { send(&held, &url).await });
    busy.step_done().await;
    assert_eq!(
        send(&client, &other.url()).await,
        Err(SendFailure::Exhausted)
    );
    assert_eq!(other.connections(), 0);
    holding.abort();
    assert!(holding.await.unwrap_err().is_cancelled());
    assert_eq!(send(&client, &other.url()).await, answered(200, "ok"));
}

#[tokio::test]
async fn a_full_pool_closes_several_that_were_idle_for_longest() {
    let held = [exchange(OK), exchange(OK), vec![EndpointStep::Hang]].concat();
    let old = Endpoint::start(vec![held.clone(); 42]).await;
    let young = Endpoint::start(vec![held; 25]).await;
    let client = HyperWebhookClient::new(
        ClientSettings {
            idle_max: 64,
            ..on_loopback()
        },
        SystemClock,
    )
    .unwrap();
    for (endpoint, requests) in [(&old, 40), (&young, 25)] {
        send_at_once(&client, endpoint, requests).await;
    }
    // The last of 65 closed two.
    assert_eq!(client.idle_connections(), 63);
    send_at_once(&client, &old, 40).await;
    assert_eq!((old.connections(), young.connections()), (42, 25));
}

async fn send_at_once(
    client: &HyperWebhookClient<SystemClock>,
    endpoint: &Endpoint,
    requests: usize,
) {
    let url = endpoint.url();
    let answers = futures_util::future::join_all((0..requests).map(|_| send(client, &url))).await;
    assert_eq!(answers, vec![answered(200, "ok"); requests]);
}
