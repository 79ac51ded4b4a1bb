//! What an invocation has under way, shared out over the links: a long row for one that is slow must not keep another's
//! requests from beginning.

use futures_util::stream::{self, StreamExt};
use indexmap::IndexMap;
use posthaste_core::model::endpoint::Link;
use posthaste_ports::Ports;

use crate::Deliver;
use crate::intake::Planned;
use crate::invocation::Invocation;

/// Most requests of one invocation that are under way or wait for their link's lane, over all links. Each takes some
/// kilobytes besides its events.
const REQUESTS_PER_INVOCATION_MAX: usize = 1000;

impl<P: Ports> Deliver<P> {
    /// Makes all planned requests. Those to one link begin in their order, and as many of them are under way, or wait for
    /// the link's lane, as is its share.
    pub(crate) async fn attempt_all(&self, invocation: &Invocation, requests: Vec<Planned>) {
        let links = by_link(requests);
        let share = share(links.len(), self.settings.requests_per_link_start);
        let attempt = |request| self.attempt(invocation, request);
        let link = |requests| stream::iter(requests).for_each_concurrent(share, attempt);
        stream::iter(links).for_each_concurrent(None, link).await;
    }
}

/// An equal share, but no less than a link's lane has room for: then none of its places stays empty.
fn share(links: usize, room: usize) -> usize {
    (REQUESTS_PER_INVOCATION_MAX / links.max(1)).max(room).max(1)
}

/// The requests to each link, in their order. The link of the first request comes first.
fn by_link(requests: Vec<Planned>) -> Vec<Vec<Planned>> {
    let mut links: IndexMap<Link, Vec<Planned>> = IndexMap::new();
    for request in requests {
        links.entry(request.subscription.endpoint.link()).or_default().push(request);
    }
    links.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_share_equally_and_each_fills_its_lane() {
        assert_eq!(share(0, 10), 1000);
        assert_eq!(share(1, 10), 1000);
        assert_eq!(share(3, 10), 333);
        assert_eq!(share(500, 10), 10);
        assert_eq!(share(5000, 0), 1);
    }
}
