//! The connection that is closed when there are too many, on a clock that is moved by hand.

use super::table::{ConnectionState, SILENT_PER_ADDRESS_MAX};
use super::*;
use posthaste_core::model::Timestamp;
use posthaste_testkit::ManualClock;
use std::net::Ipv4Addr;

const MAX: usize = 3;

#[expect(clippy::unnecessary_wraps, reason = "it is what the table takes")]
fn address(last: u8) -> Option<IpAddr> {
    Some(Ipv4Addr::new(192, 0, 2, last).into())
}

/// A table with `count` connections, one from each address.
fn table(count: u8) -> (ConnectionTable, Vec<u64>) {
    let mut table = ConnectionTable::default();
    let ids = (0..count)
        .map(|n| table.admit(address(n), MAX).unwrap().0)
        .collect();
    (table, ids)
}

fn numbers(table: &ConnectionTable) -> Vec<u64> {
    table.connections.keys().copied().collect()
}

#[test]
fn the_oldest_silent_connection_goes_when_all_places_are_taken() {
    let (mut table, ids) = table(3);
    assert!(table.begin_request(ids[0], false, MAX).0);
    let (newest, _, cut) = table.admit(address(9), MAX).unwrap();
    assert_eq!(
        (cut, numbers(&table)),
        (Some(CutReason::Full), vec![ids[0], ids[2], newest])
    );
}

/// Connection that has sent a request gives its place up after all that have sent none.
#[test]
fn connection_with_a_request_is_closed_after_all_without() {
    let (mut table, ids) = table(3);
    for id in [ids[1], ids[0]] {
        assert!(table.begin_request(id, false, MAX).0);
        table.end_request(id);
    }
    let (first, _, _) = table.admit(address(8), MAX).unwrap();
    assert_eq!(numbers(&table), [ids[0], ids[1], first]);
    assert!(table.begin_request(first, false, MAX).0);
    // Of those that may send another one, the one that has waited for longest.
    let (second, _, _) = table.admit(address(9), MAX).unwrap();
    assert_eq!(numbers(&table), [ids[0], first, second]);
}

#[test]
fn connection_being_answered_is_never_closed_for_another() {
    let (mut table, ids) = table(3);
    assert!(ids.iter().all(|id| table.begin_request(*id, false, MAX).0));
    assert!(table.admit(address(9), MAX).is_none());
    table.end_request(ids[1]);
    table.admit(address(9), MAX).unwrap();
    assert!(!table.connections.contains_key(&ids[1]));
}

/// Connection whose response is not read is closed for a new connection, and for a new request.
#[test]
fn stalled_connection_gives_way_to_another() {
    let (mut table, ids) = table(3);
    assert!(ids.iter().all(|id| table.begin_request(*id, false, MAX).0));
    for id in [ids[2], ids[1]] {
        table.set_stalled(id, true);
    }
    let (newest, _, cut) = table.admit(address(9), MAX).unwrap();
    assert_eq!(
        (cut, numbers(&table)),
        (Some(CutReason::Full), vec![ids[0], ids[2], newest])
    );
    // It has given its place for requests back as well, so nothing goes for this one.
    assert_eq!(table.begin_request(newest, false, MAX), (true, None));
    table.end_request(newest);
    // Its own end comes later, and counts for nothing any more.
    table.remove_connection(ids[1]);
    assert_eq!(
        table.begin_request(newest, false, 2),
        (true, Some(CutReason::Full))
    );
    assert_eq!((table.ordinary, numbers(&table)), (2, vec![ids[0], newest]));
    assert_eq!(table.begin_request(newest, false, 2), (false, None));
}

#[test]
fn connection_whose_response_is_read_again_stays() {
    let (mut table, ids) = table(3);
    assert!(ids.iter().all(|id| table.begin_request(*id, false, MAX).0));
    table.set_stalled(ids[1], true);
    table.set_stalled(ids[1], false);
    assert!(table.admit(address(9), MAX).is_none() && table.make_room().is_none());
}

#[test]
fn operators_are_served_when_all_request_places_are_taken() {
    let (mut table, ids) = table(3);
    assert!(table.begin_request(ids[0], false, 1).0);
    assert!(!table.begin_request(ids[1], false, 1).0);
    assert!(table.begin_request(ids[1], true, 1).0);
    table.end_request(ids[1]);
    assert!(!table.begin_request(ids[2], false, 1).0);
    // The place comes back with the end of its request, and with that of its connection.
    table.end_request(ids[0]);
    assert!(table.begin_request(ids[2], false, 1).0);
    table.remove_connection(ids[2]);
    assert!(table.begin_request(ids[0], false, 1).0);
    table.remove_connection(ids[0]);
    assert_eq!((table.ordinary, numbers(&table)), (0, vec![ids[1]]));
}

#[test]
fn closed_connection_begins_no_request() {
    let (mut table, ids) = table(3);
    table.admit(address(9), MAX).unwrap();
    assert!(!table.begin_request(ids[0], false, MAX).0);
    assert_eq!(table.ordinary, 0);
}

/// Number of silent connections that each of two addresses keeps of these.
fn kept(from: [Option<IpAddr>; 2], counts: [usize; 2]) -> [usize; 2] {
    let mut table = ConnectionTable::default();
    for (from, count) in from.iter().zip(counts) {
        for _ in 0..count {
            let id = table.admit(*from, 10_000).unwrap().0;
            table.turn_silent(id);
        }
    }
    let of = |from| {
        table
            .connections
            .values()
            .filter(|it| it.from == from)
            .count()
    };
    from.map(of)
}

/// Connections of other addresses, and of trusted proxies, are not closed for those of one.
#[test]
fn silent_connections_are_limited_per_address() {
    let most = SILENT_PER_ADDRESS_MAX;
    assert_eq!(
        kept([address(1), address(2)], [most, most + 1]),
        [most, most]
    );
    assert_eq!(kept([address(1), address(2)], [1, 1000]), [1, most]);
    // A trusted proxy's address is none.
    assert_eq!(kept([None, address(2)], [1000, 1000]), [1000, most]);
}

#[test]
fn connection_that_sent_a_request_is_not_silent() {
    let (mut table, ids) = table(1);
    assert!(table.begin_request(ids[0], false, MAX).0);
    assert_eq!(table.turn_silent(ids[0]), None);
    table.end_request(ids[0]);
    assert_eq!(table.turn_silent(ids[0]), None);
    assert_eq!(table.connections[&ids[0]].state, ConnectionState::Idle);
}

#[test]
fn an_address_is_a_network_of_one_subscriber() {
    let check = |text: &str, expected: &str| {
        assert_eq!(
            client_network(text.parse().unwrap()),
            expected.parse::<IpAddr>().unwrap()
        );
    };
    check("192.0.2.7", "192.0.2.7");
    check("::ffff:192.0.2.7", "192.0.2.7");
    check("2a00:1450:4001:82f:1:2:3:4", "2a00:1450:4001:82f::");
}

fn places(trusted: &[&str]) -> Arc<ClientPlaces> {
    let trusted_proxies = trusted.iter().map(|text| text.parse().unwrap()).collect();
    ClientPlaces::new(ConnectionLimits {
        requests_max: MAX,
        trusted_proxies,
    })
}

#[test]
fn proxies_are_trusted_by_their_networks() {
    let places = places(&["10.0.0.0/8", "fd00::/8"]);
    let check = |text: &str, expected| {
        assert_eq!(places.is_trusted(text.parse().unwrap()), expected, "{text}");
    };
    check("10.1.2.3", true);
    check("::ffff:10.1.2.3", true);
    check("fd00::1", true);
    check("192.0.2.7", false);
}

/// Connection that has sent a request is not closed by the timeout of the first head.
#[tokio::test]
async fn first_head_has_a_timeout_and_later_heads_have_none() {
    let places = places(&[]);
    let clock = ManualClock::new(Timestamp::EPOCH);
    let place = Arc::new(places.take_place(Ipv4Addr::LOCALHOST.into()).await);
    let speaks = Arc::new(places.take_place(Ipv4Addr::LOCALHOST.into()).await);
    drop(speaks.begin_request(false).unwrap());
    let ends = |place: &Arc<ClientPlace>| {
        let place = Arc::clone(place);
        let clock = clock.clone();
        tokio::spawn(async move { place.wait_for_cut(&clock).await })
    };
    let silent = ends(&place);
    let speaking = ends(&speaks);
    for rest in [
        SILENT_AFTER,
        FIRST_HEAD_TIMEOUT.saturating_sub(SILENT_AFTER),
    ] {
        assert!(!silent.is_finished());
        while clock.sleepers() != 1 {
            tokio::task::yield_now().await;
        }
        clock.advance(rest);
    }
    silent.await.unwrap();
    assert!(!speaking.is_finished());
    speaking.abort();
}

/// New connection is taken once the first of the others is no longer being answered.
#[tokio::test]
async fn connection_waits_while_all_others_are_being_answered() {
    let places = places(&[]);
    let take = || places.take_place(Ipv4Addr::LOCALHOST.into());
    let mut answering = Vec::new();
    for _ in 0..MAX + OPERATORS_MAX {
        let place = Arc::new(take().await);
        answering.push(place.begin_request(answering.len() >= MAX).unwrap());
    }
    let waiting = {
        let places = Arc::clone(&places);
        tokio::spawn(async move { places.take_place(Ipv4Addr::LOCALHOST.into()).await })
    };
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    drop(answering.pop());
    drop(waiting.await.unwrap());
}

/// Connection that is being answered is never closed for lack of descriptors.
#[tokio::test]
async fn lack_of_descriptors_closes_a_connection_that_waits() {
    let places = places(&[]);
    let clock = ManualClock::new(Timestamp::EPOCH);
    let take = async || Arc::new(places.take_place(Ipv4Addr::LOCALHOST.into()).await);
    let busy = take().await;
    let silent = take().await;
    let answering = busy.begin_request(false).unwrap();
    assert!(places.make_room());
    silent.wait_for_cut(&clock).await;
    assert!(!places.make_room());
    drop(answering);
    assert!(places.make_room());
    busy.wait_for_cut(&clock).await;
}
