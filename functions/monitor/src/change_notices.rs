//! Notices of changes. The changes are part of the state, written by the same put as the level. The
//! monitor that wrote them sends the notices after the put has succeeded, and removes the changes
//! with the next poll's put. If that fails, or the process ends, the next poll of any monitor sends
//! them.

use std::error::Error;
use std::time::Duration;

use posthaste_core::api::notice::Notice;
use posthaste_core::model::TopicName;
use posthaste_core::pressure::{PressureSettings, PressureState};
use posthaste_ports::Ports;
use posthaste_services::{NoticeError, Notifier, timeout};

/// Longest time for the notices of one poll.
const NOTICES_TIME_MAX: Duration = Duration::from_secs(3);

/// Reasons for which notices are not sent this time.
#[derive(Debug, thiserror::Error)]
enum UnsentReason {
    #[error("failed to write the notices")]
    Failed(#[source] NoticeError),
    #[error("failed to write the notices in time")]
    OutOfTime,
}

/// The time for the notices of one poll: half the time by which a poll may be late before the state
/// is stale, up to the longest time. So a queue that hangs does not make the monitor look stopped.
pub(crate) fn notices_time(settings: &PressureSettings) -> Duration {
    let late = settings.stale_after().saturating_sub(settings.interval);
    NOTICES_TIME_MAX.min(late / 2)
}

/// Sends notices of the changes in the written state, and answers whether all were sent. A notice
/// that is sent again is the same, with the same `id`.
pub(crate) async fn send_notices<P: Ports>(
    notifier: Notifier<'_, P::Queue, P::Store, P::Clock, P::Entropy>,
    topic: &TopicName,
    written: &PressureState,
    time: Duration,
) -> bool {
    let clock = notifier.fan_out.clock;
    let notices: Vec<_> = written.untold.iter().map(Notice::Pressure).collect();
    // Boxed: of the futures of the SDK, the compiler would find the layout too deep otherwise.
    let sending = Box::pin(notifier.send_to_topic(topic, &notices));
    let unsent = match timeout(clock, time, sending).await {
        Some(Ok(())) => return true,
        Some(Err(error)) => UnsentReason::Failed(error),
        None => UnsentReason::OutOfTime,
    };
    report_unsent(&unsent, written);
    false
}

/// Logs an error if a change is new. The polls that try again log below that level, since the log
/// may be on the disk that is full.
fn report_unsent(unsent: &UnsentReason, written: &PressureState) {
    let changes = written.untold.len();
    let error = unsent as &dyn Error;
    if written.untold.iter().any(|change| change.at == written.at) {
        tracing::error!(
            notices = changes,
            error,
            "notices of pressure not sent, the next polls try again"
        );
    } else {
        tracing::debug!(
            notices = changes,
            error,
            "notices of pressure still not sent"
        );
    }
}
