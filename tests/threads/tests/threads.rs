//! Each part that threads share, in many orders of their steps.

use posthaste_tests_threads::searches::SEARCHES;

/// Tries other orders: the number of a search.
const SEED_VARIABLE: &str = "POSTHASTE_SEED";

/// Tries so many orders of each kind.
const ORDERS_VARIABLE: &str = "POSTHASTE_ORDERS";

const SEED: u64 = 1;
const ORDERS: usize = 2000;

fn search(file: &str) {
    let asked = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    let orders = asked(ORDERS_VARIABLE).and_then(|it| usize::try_from(it).ok());
    let search = SEARCHES.iter().find(|it| it.of.ends_with(file));
    let search = search.expect("a search of this file");
    search.search(
        asked(SEED_VARIABLE).unwrap_or(SEED),
        orders.unwrap_or(ORDERS),
    );
}

#[test]
fn places_of_a_link_come_back_in_every_order() {
    search("concurrency/fair.rs");
}

#[test]
fn places_of_a_subscription_come_back_in_every_order() {
    search("concurrency/subscription.rs");
}

#[test]
fn room_for_payloads_comes_back_in_every_order() {
    search("payloads/budget.rs");
}

#[test]
fn single_request_is_under_way_in_every_order() {
    search("single_flight.rs");
}

#[test]
fn every_caller_of_a_commit_is_answered_in_every_order() {
    search("inbox.rs");
}

#[test]
fn connections_are_counted_in_every_order() {
    search("pool.rs");
}
