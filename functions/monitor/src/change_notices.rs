//! Notices of changes. The changes travel in the state, written by the same put as the level. The monitor
//! that wrote them sends the notices once the put has succeeded, and takes the changes out with the next
//! poll's put. A failure, or the end of the process, leaves them for the next poll of any monitor.

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
enum Unsent {
    #[error("failed to write the notices")]
    Failed(#[source] NoticeError),
    #[error("failed to write the notices in time")]
    OutOfTime,
}

/// The time for the notices of one poll: half the time by which a poll may be late before the state is stale,
/// where that is less than the longest, so that a queue which hangs does not make the monitor look as if it
/// had stopped.
pub(crate) fn notices_time(settings: &PressureSettings) -> Duration {
    let late = settings.stale_after().saturating_sub(settings.interval);
    NOTICES_TIME_MAX.min(late / 2)
}

/// Sends notices of the changes that the written state carries, and answers whether all were sent. A notice
/// sent again is the same, and has the same `id`.
pub(crate) async fn send_notices<P: Ports>(
    notifier: Notifier<'_, P::Queue, P::Store, P::Clock, P::Entropy>,
    topic: &TopicName,
    written: &PressureState,
    time: Duration,
) -> bool {
    let clock = notifier.fan_out.clock;
    let notices: Vec<_> = written.untold.iter().map(Notice::Pressure).collect();
    // Boxed: of the futures of the SDK, the compiler would find the layout too deep otherwise.
    let sending = Box::pin(notifier.tell_system(topic, &notices));
    let unsent = match timeout(clock, time, sending).await {
        Some(Ok(())) => return true,
        Some(Err(error)) => Unsent::Failed(error),
        None => Unsent::OutOfTime,
    };
    report_unsent(&unsent, written);
    false
}

/// Logs an error where a change is new. The polls that try again log below that, since the disk that is full
/// may be the log's.
fn report_unsent(unsent: &Unsent, written: &PressureState) {
    let (changes, error) = (written.untold.len(), unsent as &dyn Error);
    if written.untold.iter().any(|change| change.at == written.at) {
        tracing::error!(changes, error, "changes of the pressure not told, the next polls try again");
    } else {
        tracing::debug!(changes, error, "changes of the pressure still not told");
    }
}
