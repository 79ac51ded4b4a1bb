//! The time that a check may take.

use std::time::Duration;

use posthaste_core::api::doctor::{CheckResult, CheckView};
use posthaste_ports::Clock;
use posthaste_services::timeout;

/// Longest time of a check. A store or a service that takes longer than this is of no use to a
/// request either, which has 25 s for several calls.
pub(super) const CHECK_TIME_MAX: Duration = Duration::from_secs(10);

/// Waits for the result of a look; `None` if it hangs.
pub(super) async fn limit_check_time<T>(
    clock: &impl Clock,
    look: impl Future<Output = T>,
) -> Option<T> {
    timeout(clock, CHECK_TIME_MAX, look).await
}

/// The result of a look. One that hangs has failed.
pub(super) async fn in_time(
    clock: &impl Clock,
    check: &str,
    of: String,
    look: impl Future<Output = CheckView>,
) -> CheckView {
    limit_check_time(clock, look).await.unwrap_or_else(|| {
        let found = format!("no answer within {} s", CHECK_TIME_MAX.as_secs());
        let advice = "look for what hangs: a disk or mount, the network, or the service";
        CheckView::passed(check, of, found).with_result(CheckResult::Failed, advice)
    })
}
