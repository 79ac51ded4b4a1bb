//! The rows, in the order of the reference page. Rows with the same name in `GET /metrics` stand
//! together.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::row::Unit::{self, Bytes, Milliseconds, Number, Seconds};
use super::row::{Kind, Metric, STATUS_CLASS, SUBSCRIPTION, Source, TOPIC};

/// Help of both rows of attempts, which are one metric in `serve`.
const DELIVERIES: &str =
    "Events of attempts, by outcome: delivered, or failed. An event that fails twice counts twice.";

/// The table.
pub const METRICS: &[Metric] = &[
    counter(
        "events",
        "publish",
        "Events that were accepted.",
    )
    .measured("PublishSuccessCount")
    .exposed("posthaste_events_accepted_total")
    .labels(&[TOPIC]),
    counter(
        "events",
        "publish",
        "Events that were not accepted. A request that was refused before its events were read counts as one.",
    )
    .measured("PublishFailCount")
    .exposed("posthaste_events_refused_total")
    .labels(&[TOPIC]),
    milliseconds(
        "publish",
        "Time of a request that was accepted, with the wait under back pressure.",
    )
    .measured("PublishSuccessLatencyInMs")
    .exposed("posthaste_publish_duration_seconds")
    .labels(&[TOPIC]),
    counter(
        "events",
        "publish",
        "Accepted events that one subscription or more gets.",
    )
    .measured("MatchedEventCount")
    .exposed("posthaste_events_matched_total")
    .labels(&[TOPIC]),
    counter(
        "events",
        "publish",
        "Accepted events that no subscription gets.",
    )
    .measured("UnmatchedEventCount")
    .exposed("posthaste_events_unmatched_total")
    .labels(&[TOPIC]),
    counter(
        "requests",
        "publish",
        "Requests that back pressure made wait, or answered with 429.",
    )
    .measured("PublishDelayedCount")
    .exposed("posthaste_publish_requests_delayed_total")
    .labels(&[TOPIC, "tier"]),
    counter(
        "requests",
        "publish",
        "Requests that back pressure refused with 503.",
    )
    .measured("PublishRefusedCount")
    .exposed("posthaste_publish_requests_refused_total")
    .labels(&[TOPIC, "tier"]),
    counter("events", "deliver", DELIVERIES)
        .measured("DeliverySuccessCount")
        .exposed("posthaste_deliveries_total")
        .labels(&[TOPIC, SUBSCRIPTION, STATUS_CLASS])
        .fixed("outcome", "delivered"),
    counter("events", "deliver", DELIVERIES)
        .measured("DeliveryAttemptFailCount")
        .exposed("posthaste_deliveries_total")
        .labels(&[TOPIC, SUBSCRIPTION, STATUS_CLASS])
        .fixed("outcome", "failed"),
    milliseconds(
        "deliver",
        "Time of a request to an endpoint, successful or not.",
    )
    .measured("DestinationProcessingDurationInMs")
    .exposed("posthaste_endpoint_duration_seconds")
    .labels(&[TOPIC, SUBSCRIPTION]),
    counter(
        "events",
        "deliver",
        "Events that an endpoint accepted after the timeout of the attempt.",
    )
    .measured("LateDeliverySuccessCount")
    .exposed("posthaste_late_deliveries_total")
    .labels(&[TOPIC, SUBSCRIPTION]),
    counter(
        "deliveries",
        "deliver",
        "Deliveries put aside because their link or subscription gets no requests.",
    )
    .measured("HeldDeliveryCount")
    .exposed("posthaste_held_deliveries_total")
    .labels(&[TOPIC, SUBSCRIPTION]),
    counter(
        "events",
        "deadletter",
        "Dead letters that were written. The reason MalformedMessage without a topic is a message under MALFORMED/.",
    )
    .measured("DeadLetteredCount")
    .exposed("posthaste_dead_letters_total")
    .labels(&[TOPIC, SUBSCRIPTION, "reason"]),
    counter(
        "events",
        "deliver, deadletter",
        "Events given up without a dead letter: their subscription wants none, or (DeadLetterStorageUnavailable) its storage refused them for too long.",
    )
    .measured("DroppedEventCount")
    .exposed("posthaste_dropped_events_total")
    .labels(&[TOPIC, SUBSCRIPTION, "reason"]),
    counter(
        "events",
        "publish, deadletter",
        "Events that a disabled subscription missed and that are kept nowhere: it skips them, or their dead letters have no more room.",
    )
    .measured("SkippedEventCount")
    .exposed("posthaste_skipped_events_total")
    .labels(&[TOPIC, SUBSCRIPTION]),
    looked_up(
        "posthaste_waiting",
        Number("events"),
        "Events that wait: due, delayed or under way in the queue, parked or held.",
    )
    .labels(&[TOPIC, SUBSCRIPTION]),
    looked_up(
        "posthaste_oldest_waiting_seconds",
        Seconds,
        "Time since the oldest event that waits was accepted; 0 if none waits.",
    )
    .labels(&[TOPIC, SUBSCRIPTION]),
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
    .labels(&[TOPIC, SUBSCRIPTION]),
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
    .labels(&["link"]),
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
    .measured("LogRecordsLostCount")
    .exposed("posthaste_log_records_lost_total")
    .labels(&[TOPIC]),
    counter(
        "records",
        "record",
        "Records written into the delivery log.",
    )
    .measured("LogRecordsWrittenCount")
    .exposed("posthaste_log_records_written_total"),
    counter(
        "files",
        "record",
        "Files of records, before they are merged.",
    )
    .measured("LogFilesWrittenCount")
    .exposed("posthaste_log_files_written_total"),
    Metric::new(Kind::Counter, Bytes, "record", "Bytes of these files.")
        .measured("LogWrittenBytes")
        .exposed("posthaste_log_written_bytes_total"),
    counter(
        "files",
        "record",
        "Files of the delivery log that cannot be read and were left out of a merge.",
    )
    .measured("LogFilesDamagedCount")
    .exposed("posthaste_log_files_damaged_total"),
    counter(
        "files",
        "record",
        "Files of the delivery log that serve deleted: retention (too old), or disk (to make room).",
    )
    .measured("LogFilesEndedCount")
    .exposed("posthaste_log_files_ended_total")
    .labels(&["reason"]),
    counter(
        "writes",
        "deadletter",
        "Writes that the storage of dead letters refused.",
    )
    .measured("DeadLetterWriteRefusedCount")
    .exposed("posthaste_dead_letter_writes_refused_total"),
    gauge(
        Seconds,
        "deliver, deadletter, record",
        "Time since the oldest message that an invocation hands back to its queue was first received; 0 once after none is handed back. SQS's own age of the oldest message leaves out what was received three times.",
    )
    .measured("OldestReturnedMessageInSeconds")
    .labels(&["function"]),
    gauge(
        Seconds,
        "deadletter",
        "Time for which the oldest dead letter has been refused; 0 once after the trouble ends.",
    )
    .measured("OldestUnwrittenDeadLetterInSeconds")
    .exposed("posthaste_oldest_unwritten_dead_letter_seconds"),
    gauge(
        Seconds,
        "record",
        "Age of the oldest record that the delivery log's store refused; 0 once after the trouble ends.",
    )
    .measured("OldestUnwrittenRecordInSeconds")
    .exposed("posthaste_record_lag_seconds"),
    counter(
        "notices",
        "all that send notices",
        "Notices that were published, by the topic that they are about, if any.",
    )
    .measured("NoticeSentCount")
    .exposed("posthaste_notices_sent_total")
    .labels(&[TOPIC]),
    counter(
        "notices",
        "all that send notices",
        "Notices that will never be sent.",
    )
    .measured("NoticeNotSentCount")
    .exposed("posthaste_notices_lost_total")
    .labels(&[TOPIC]),
    gauge(
        Number("level"),
        "monitor",
        "Level of a resource: 0 Normal, 1 Medium, 2 High.",
    )
    .measured("PressureLevel")
    .exposed("posthaste_pressure_level")
    .labels(&["resource"]),
    gauge(
        Number("the resource's own"),
        "monitor",
        "Reading of a resource. On AWS not for the counts of queues, which SQS has itself.",
    )
    .measured("PressureReading")
    .exposed("posthaste_pressure_reading")
    .labels(&["resource"]),
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
    .measured("TopicPressureLevel")
    .labels(&[TOPIC]),
    looked_up(
        "posthaste_topic_drain_seconds",
        Seconds,
        "Time until what is due to its middle subscription would be delivered, of the same topics.",
    )
    .measured("TopicDrainTimeInSeconds")
    .labels(&[TOPIC]),
    gauge(Milliseconds, "monitor", "Wait of acknowledgements.")
        .measured("PressureTarpitInMs")
        .exposed("posthaste_pressure_tarpit_seconds"),
    gauge(
        Number("tiers"),
        "monitor",
        "Number of tiers that are refused: 0 to 3.",
    )
    .measured("PressureRefusedTierCount")
    .exposed("posthaste_pressure_refused_tiers"),
    counter(
        "keys",
        "publish, manage",
        "Keys that were shown and opened nothing, with the codes of /validate/….",
    )
    .measured("WrongKeyCount")
    .exposed("posthaste_wrong_keys_total")
    .labels(&["function"]),
    counter(
        "sign-ins",
        "console",
        "Sign-ins to the console with a wrong key.",
    )
    .measured("ConsoleSignInFailedCount")
    .exposed("posthaste_console_sign_ins_failed_total"),
    Metric::new(
        Kind::Counter,
        Bytes,
        "serve, publish",
        "Bytes freed from caches because memory is scarce.",
    )
    .measured("TrimmedBytes")
    .exposed("posthaste_trimmed_bytes_total"),
    counter(
        "requests",
        "serve",
        "Requests answered with 503 because as many as --connections-max allows were being answered.",
    )
    .measured_in_serve("RequestTurnedAwayCount")
    .exposed("posthaste_requests_turned_away_total"),
    counter(
        "connections",
        "serve",
        "Connections closed: full (all places taken), address (64 silent ones from one address), head (no request in time), unread (the client does not read its answer).",
    )
    .measured_in_serve("ConnectionCutCount")
    .exposed("posthaste_connections_cut_total")
    .labels(&["reason"]),
    counter(
        "spans",
        "all",
        "Spans that the collector of traces did not get: it did not take them, or too many waited for it.",
    )
    .measured("SpansLostCount")
    .exposed("posthaste_spans_lost_total"),
    counter(
        "lines",
        "all",
        "Log lines lost because their stream is closed, its disk is full, or its reader reads nothing.",
    )
    .measured("LogWriteFailCount")
    .exposed("posthaste_log_lines_lost_total"),
    looked_up(
        "posthaste_build_info",
        Number("1"),
        "The version of the program, as a label.",
    )
    .labels(&["version"]),
];

/// The place in the table of the metric that functions measure under this name.
pub fn place(measured: &str) -> Option<usize> {
    static PLACES: LazyLock<HashMap<&'static str, usize>> = LazyLock::new(|| {
        let places = METRICS.iter().enumerate();
        places
            .filter_map(|(place, metric)| Some((metric.measured?, place)))
            .collect()
    });
    PLACES.get(measured).copied()
}

/// The place in the table of the metric that `serve` looks up and shows under this name.
pub fn place_of_looked_up(exposed: &str) -> Option<usize> {
    METRICS
        .iter()
        .position(|metric| metric.source == Source::LookedUp && metric.exposed == Some(exposed))
}

const fn counter(of: &'static str, written_by: &'static str, help: &'static str) -> Metric {
    Metric::new(Kind::Counter, Number(of), written_by, help)
}

const fn gauge(unit: Unit, written_by: &'static str, help: &'static str) -> Metric {
    Metric::new(Kind::Gauge, unit, written_by, help)
}

const fn milliseconds(written_by: &'static str, help: &'static str) -> Metric {
    Metric::new(Kind::Histogram, Milliseconds, written_by, help)
}

/// A gauge that `serve` looks up whenever it is asked for.
const fn looked_up(exposed: &'static str, unit: Unit, help: &'static str) -> Metric {
    Metric::new(Kind::Gauge, unit, "serve", help).looked_up(exposed)
}
