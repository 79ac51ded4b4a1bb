//! The rows, in the order of the reference page. Rows with the same name in `GET /metrics` stand
//! together.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::row::MetricUnit::{self, Bytes, Milliseconds, Number, Seconds};
use super::row::{MetricKind, MetricRow, MetricSource, STATUS_CLASS, SUBSCRIPTION, TOPIC};

/// Help of both rows of attempts, which are one metric in `serve`.
const DELIVERIES: &str =
    "Events of attempts, by outcome: delivered, or failed. An event that fails twice counts twice.";

/// The table.
pub const METRICS: &[MetricRow] = &[
    counter(
        "events",
        "publish",
        "Events that were accepted.",
    )
    .measured_as("PublishSuccessCount")
    .exposed_as("posthaste_events_accepted_total")
    .with_labels(&[TOPIC]),
    counter(
        "events",
        "publish",
        "Events that were not accepted. A request that was refused before its events were read counts as one.",
    )
    .measured_as("PublishFailCount")
    .exposed_as("posthaste_events_refused_total")
    .with_labels(&[TOPIC]),
    milliseconds_histogram(
        "publish",
        "Time of a request that was accepted, with the wait under back pressure.",
    )
    .measured_as("PublishSuccessLatencyInMs")
    .exposed_as("posthaste_publish_duration_seconds")
    .with_labels(&[TOPIC]),
    counter(
        "events",
        "publish",
        "Accepted events that one subscription or more gets.",
    )
    .measured_as("MatchedEventCount")
    .exposed_as("posthaste_events_matched_total")
    .with_labels(&[TOPIC]),
    counter(
        "events",
        "publish",
        "Accepted events that no subscription gets.",
    )
    .measured_as("UnmatchedEventCount")
    .exposed_as("posthaste_events_unmatched_total")
    .with_labels(&[TOPIC]),
    counter(
        "requests",
        "publish",
        "Requests that back pressure made wait, or answered with 429.",
    )
    .measured_as("PublishDelayedCount")
    .exposed_as("posthaste_publish_requests_delayed_total")
    .with_labels(&[TOPIC, "tier"]),
    counter(
        "requests",
        "publish",
        "Requests that back pressure refused with 503.",
    )
    .measured_as("PublishRefusedCount")
    .exposed_as("posthaste_publish_requests_refused_total")
    .with_labels(&[TOPIC, "tier"]),
    counter("events", "deliver", DELIVERIES)
        .measured_as("DeliverySuccessCount")
        .exposed_as("posthaste_deliveries_total")
        .with_labels(&[TOPIC, SUBSCRIPTION, STATUS_CLASS])
        .with_fixed_label("outcome", "delivered"),
    counter("events", "deliver", DELIVERIES)
        .measured_as("DeliveryAttemptFailCount")
        .exposed_as("posthaste_deliveries_total")
        .with_labels(&[TOPIC, SUBSCRIPTION, STATUS_CLASS])
        .with_fixed_label("outcome", "failed"),
    milliseconds_histogram(
        "deliver",
        "Time of a request to an endpoint, successful or not.",
    )
    .measured_as("DestinationProcessingDurationInMs")
    .exposed_as("posthaste_endpoint_duration_seconds")
    .with_labels(&[TOPIC, SUBSCRIPTION]),
    counter(
        "events",
        "deliver",
        "Events that an endpoint accepted after the timeout of the attempt.",
    )
    .measured_as("LateDeliverySuccessCount")
    .exposed_as("posthaste_late_deliveries_total")
    .with_labels(&[TOPIC, SUBSCRIPTION]),
    counter(
        "deliveries",
        "deliver",
        "Deliveries put aside because their link or subscription gets no requests.",
    )
    .measured_as("HeldDeliveryCount")
    .exposed_as("posthaste_held_deliveries_total")
    .with_labels(&[TOPIC, SUBSCRIPTION]),
    counter(
        "events",
        "deadletter",
        "Dead letters that were written. The reason MalformedMessage without a topic is a message under MALFORMED/.",
    )
    .measured_as("DeadLetteredCount")
    .exposed_as("posthaste_dead_letters_total")
    .with_labels(&[TOPIC, SUBSCRIPTION, "reason"]),
    counter(
        "events",
        "deliver, deadletter",
        "Events given up without a dead letter: their subscription wants none, or (DeadLetterStorageUnavailable) its storage refused them for too long.",
    )
    .measured_as("DroppedEventCount")
    .exposed_as("posthaste_dropped_events_total")
    .with_labels(&[TOPIC, SUBSCRIPTION, "reason"]),
    counter(
        "events",
        "publish, deadletter",
        "Events that a disabled subscription missed and that are kept nowhere: it skips them, or their dead letters have no more room.",
    )
    .measured_as("SkippedEventCount")
    .exposed_as("posthaste_skipped_events_total")
    .with_labels(&[TOPIC, SUBSCRIPTION]),
    looked_up(
        "posthaste_waiting",
        Number("events"),
        "Events that wait: due, delayed or under way in the queue, parked or held.",
    )
    .with_labels(&[TOPIC, SUBSCRIPTION]),
    looked_up(
        "posthaste_oldest_waiting_seconds",
        Seconds,
        "Time since the oldest event that waits was accepted; 0 if none waits.",
    )
    .with_labels(&[TOPIC, SUBSCRIPTION]),
    looked_up(
        "posthaste_deliveries_in_flight",
        Number("deliveries"),
        "Messages of deliveries that are being worked on.",
    ),
    looked_up(
        "posthaste_subscription_up",
        Number("1 or 0"),
        "Whether the webhooks of a subscription arrive: 0 if it is failing, down, paused, pending, refused or disabled.",
    )
    .with_labels(&[TOPIC, SUBSCRIPTION]),
    looked_up(
        "posthaste_subscriptions_down",
        Number("subscriptions"),
        "Subscriptions of all topics whose health is failing or down; without series of their own only those that failed themselves.",
    ),
    looked_up(
        "posthaste_link_up",
        Number("1 or 0"),
        "Whether a link (scheme, host and port) gets requests: 0 while it fails.",
    )
    .with_labels(&["link"]),
    looked_up(
        "posthaste_links_down",
        Number("links"),
        "Links that get no requests because they fail.",
    ),
    looked_up(
        "posthaste_dead_letters_waiting",
        Number("messages"),
        "Messages of given-up events that wait to be written as dead letters.",
    ),
    looked_up(
        "posthaste_records_waiting",
        Number("messages"),
        "Messages of records that wait to be written into the delivery log.",
    ),
    counter(
        "records",
        "deliver, deadletter, record",
        "Records that are missing in the delivery log, because it could not be written.",
    )
    .measured_as("LogRecordsLostCount")
    .exposed_as("posthaste_log_records_lost_total")
    .with_labels(&[TOPIC]),
    counter(
        "records",
        "record",
        "Records written into the delivery log.",
    )
    .measured_as("LogRecordsWrittenCount")
    .exposed_as("posthaste_log_records_written_total"),
    counter(
        "files",
        "record",
        "Files of records, before they are merged.",
    )
    .measured_as("LogFilesWrittenCount")
    .exposed_as("posthaste_log_files_written_total"),
    MetricRow::new(MetricKind::Counter, Bytes, "record", "Bytes of these files.")
        .measured_as("LogWrittenBytes")
        .exposed_as("posthaste_log_written_bytes_total"),
    counter(
        "files",
        "record",
        "Files of the delivery log that cannot be read and were left out of a merge.",
    )
    .measured_as("LogFilesDamagedCount")
    .exposed_as("posthaste_log_files_damaged_total"),
    counter(
        "files",
        "record",
        "Files of the delivery log that serve deleted: retention (too old), or disk (to make room).",
    )
    .measured_as("LogFilesEndedCount")
    .exposed_as("posthaste_log_files_ended_total")
    .with_labels(&["reason"]),
    counter(
        "writes",
        "deadletter",
        "Writes that the storage of dead letters refused.",
    )
    .measured_as("DeadLetterWriteRefusedCount")
    .exposed_as("posthaste_dead_letter_writes_refused_total"),
    gauge(
        Seconds,
        "deliver, deadletter, record",
        "Time since the oldest message that an invocation hands back to its queue was first received; 0 once after none is handed back. SQS's own age of the oldest message leaves out what was received three times.",
    )
    .measured_as("OldestReturnedMessageInSeconds")
    .with_labels(&["function"]),
    gauge(
        Seconds,
        "deadletter",
        "Time for which the oldest dead letter has been refused; 0 once after the trouble ends.",
    )
    .measured_as("OldestUnwrittenDeadLetterInSeconds")
    .exposed_as("posthaste_oldest_unwritten_dead_letter_seconds"),
    gauge(
        Seconds,
        "record",
        "Age of the oldest record that the delivery log's store refused; 0 once after the trouble ends.",
    )
    .measured_as("OldestUnwrittenRecordInSeconds")
    .exposed_as("posthaste_record_lag_seconds"),
    counter(
        "notices",
        "all that send notices",
        "Notices that were published, by the topic that they are about, if any.",
    )
    .measured_as("NoticeSentCount")
    .exposed_as("posthaste_notices_sent_total")
    .with_labels(&[TOPIC]),
    counter(
        "notices",
        "all that send notices",
        "Notices that will never be sent.",
    )
    .measured_as("NoticeNotSentCount")
    .exposed_as("posthaste_notices_lost_total")
    .with_labels(&[TOPIC]),
    gauge(
        Number("level"),
        "monitor",
        "Level of a resource: 0 Normal, 1 Medium, 2 High.",
    )
    .measured_as("PressureLevel")
    .exposed_as("posthaste_pressure_level")
    .with_labels(&["resource"]),
    gauge(
        Number("the resource's own"),
        "monitor",
        "Reading of a resource. On AWS not for the counts of queues, which SQS has itself.",
    )
    .measured_as("PressureReading")
    .exposed_as("posthaste_pressure_reading")
    .with_labels(&["resource"]),
    looked_up(
        "posthaste_topics_slowed",
        Number("topics"),
        "Topics that are slowed by themselves.",
    ),
    looked_up(
        "posthaste_topic_pressure_level",
        Number("level"),
        "Level of a topic that is slowed by itself: 1 Medium, 2 High. No other topic has one; on AWS one that is well again has 0 once.",
    )
    .measured_as("TopicPressureLevel")
    .with_labels(&[TOPIC]),
    looked_up(
        "posthaste_topic_drain_seconds",
        Seconds,
        "Time until what is due to its middle subscription would be delivered, of the same topics.",
    )
    .measured_as("TopicDrainTimeInSeconds")
    .with_labels(&[TOPIC]),
    gauge(Milliseconds, "monitor", "Wait of acknowledgements.")
        .measured_as("PressureTarpitInMs")
        .exposed_as("posthaste_pressure_tarpit_seconds"),
    gauge(
        Number("tiers"),
        "monitor",
        "Number of tiers that are refused: 0 to 3.",
    )
    .measured_as("PressureRefusedTierCount")
    .exposed_as("posthaste_pressure_refused_tiers"),
    counter(
        "keys",
        "publish, manage",
        "Keys that were shown and opened nothing, with the codes of /validate/….",
    )
    .measured_as("WrongKeyCount")
    .exposed_as("posthaste_wrong_keys_total")
    .with_labels(&["function"]),
    counter(
        "sign-ins",
        "console",
        "Sign-ins to the console with a wrong key.",
    )
    .measured_as("ConsoleSignInFailedCount")
    .exposed_as("posthaste_console_sign_ins_failed_total"),
    MetricRow::new(
        MetricKind::Counter,
        Bytes,
        "serve, publish",
        "Bytes freed from caches because memory is scarce.",
    )
    .measured_as("TrimmedBytes")
    .exposed_as("posthaste_trimmed_bytes_total"),
    counter(
        "requests",
        "serve",
        "Requests answered with 503 because as many as --connections-max allows were being answered.",
    )
    .measured_in_serve("RequestTurnedAwayCount")
    .exposed_as("posthaste_requests_turned_away_total"),
    counter(
        "connections",
        "serve",
        "Connections closed: full (all places taken), address (64 silent ones from one address), head (no request in time), unread (the client does not read its answer).",
    )
    .measured_in_serve("ConnectionCutCount")
    .exposed_as("posthaste_connections_cut_total")
    .with_labels(&["reason"]),
    counter(
        "spans",
        "all",
        "Spans that the collector of traces did not get: it did not take them, or too many waited for it.",
    )
    .measured_as("SpansLostCount")
    .exposed_as("posthaste_spans_lost_total"),
    counter(
        "lines",
        "all",
        "Log lines lost because their stream is closed, its disk is full, or its reader reads nothing.",
    )
    .measured_as("LogWriteFailCount")
    .exposed_as("posthaste_log_lines_lost_total"),
    looked_up(
        "posthaste_build_info",
        Number("1"),
        "The version of the program, as a label.",
    )
    .with_labels(&["version"]),
];

/// The place in the table of the metric that functions measure under this name.
pub fn metric_index(measured: &str) -> Option<usize> {
    static PLACES: LazyLock<HashMap<&'static str, usize>> = LazyLock::new(|| {
        let places = METRICS.iter().enumerate();
        places
            .filter_map(|(place, metric)| Some((metric.measured?, place)))
            .collect()
    });
    PLACES.get(measured).copied()
}

/// The place in the table of the metric that `serve` looks up and shows under this name.
pub fn looked_up_metric_index(exposed: &str) -> Option<usize> {
    METRICS.iter().position(|metric| {
        metric.source == MetricSource::LookedUp && metric.exposed == Some(exposed)
    })
}

const fn counter(of: &'static str, written_by: &'static str, help: &'static str) -> MetricRow {
    MetricRow::new(MetricKind::Counter, Number(of), written_by, help)
}

const fn gauge(unit: MetricUnit, written_by: &'static str, help: &'static str) -> MetricRow {
    MetricRow::new(MetricKind::Gauge, unit, written_by, help)
}

const fn milliseconds_histogram(written_by: &'static str, help: &'static str) -> MetricRow {
    MetricRow::new(MetricKind::Histogram, Milliseconds, written_by, help)
}

/// A gauge that `serve` looks up whenever it is asked for.
const fn looked_up(exposed: &'static str, unit: MetricUnit, help: &'static str) -> MetricRow {
    MetricRow::new(MetricKind::Gauge, unit, "serve", help).looked_up(exposed)
}
