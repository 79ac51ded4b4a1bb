//! The bytes of log that metrics take.

use super::*;

/// Ten minutes of invocations of an instance: the bytes of its metrics with a line for each
/// invocation, and as they are written.
fn bytes(gap: Duration, invocation: impl Fn(u64)) -> (usize, usize) {
    let [each, kept] = [(); 2].map(|()| EmfRecorder::new("posthaste", MetricsBy::Stack));
    let mut bytes_each = 0;
    let mut bytes_kept = 0;
    let mut now = NOW;
    for number in 0.. {
        if now.since(NOW) >= Duration::from_mins(10) {
            break;
        }
        metrics::with_local_recorder(&each, || invocation(number));
        bytes_each += each.drain_lines(now, DrainPart::All).len();
        bytes_kept += kept.begin_invocation(now).len();
        metrics::with_local_recorder(&kept, || invocation(number));
        bytes_kept += kept.end_invocation(now).len();
        now = now + gap;
    }
    (bytes_each, bytes_kept)
}

/// A duration around `ms`, by at most half of it, that differs from one number to the next.
fn spread(ms: f64, number: u64) -> f64 {
    ms * (0.5 + f64::from(u16::try_from(number * 7_919 % 10_007).unwrap()) / 10_007.0)
}

/// Instances, invocations and messages are those of the cost test.
#[test]
fn metrics_of_a_thousand_events_take_little_log() {
    const EVENTS: usize = 100 * 600;
    let per_thousand = |instances: usize, (each, kept): (usize, usize)| {
        (
            each * instances * 1000 / EVENTS,
            kept * instances * 1000 / EVENTS,
        )
    };
    // Five instances of deliver get 2.4 messages each, every 120 ms.
    let deliver = bytes(Duration::from_millis(120), |invocation| {
        let labels = [("topic", "orders"), ("subscription", "billing")];
        for message in 0..2 + u64::from(invocation % 5 < 2) {
            counter!("DeliverySuccessCount", &labels).increment(1);
            histogram!("DestinationProcessingDurationInMs", &labels)
                .record(spread(100.0, invocation * 3 + message));
        }
    });
    assert_eq!(per_thousand(5, deliver), (176_947, 1_989));
    // Three instances of publish get a request each, every 30 ms.
    let publish = bytes(Duration::from_millis(30), |invocation| {
        counter!("PublishSuccessCount", "topic" => "orders").increment(1);
        counter!("MatchedEventCount", "topic" => "orders").increment(1);
        histogram!("PublishSuccessLatencyInMs", "topic" => "orders")
            .record(spread(25.0, invocation));
    });
    assert_eq!(per_thousand(3, publish), (361_889, 1_177));
}
