//! Lists of objects that end before the run does.

use std::time::Duration;

use posthaste_ports::validate::LIST_PAGE_MAX;
use posthaste_ports::{Clock, ErrorKind, ListPage, ObjectStore, PortError};
use posthaste_services::timeout_at;

/// A page of the objects under `prefix`, or an error if it has not come by `until`: nothing could be done
/// with it then.
pub(crate) async fn list_until<S: ObjectStore>(
    store: &S,
    clock: &impl Clock,
    until: Duration,
    prefix: &str,
    after: Option<&str>,
) -> Result<ListPage, PortError> {
    let late = || Err(PortError::new("list objects before the run's end", ErrorKind::TimedOut));
    timeout_at(clock, until, Box::pin(store.list(prefix, after, LIST_PAGE_MAX))).await.unwrap_or_else(late)
}
