//! Every limit of the program, with its unit and source. This file decides nothing.

use std::time::Duration;

// --- SQS ---

/// Longest `DelaySeconds` SQS accepts, in seconds.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html>
pub const SQS_DELAY_SECS_MAX: u16 = 900;

/// Longest delay SQS accepts, as a length of time.
pub const SQS_DELAY_MAX: Duration = Duration::from_secs(SQS_DELAY_SECS_MAX as u64);

/// Longest visibility timeout SQS accepts, in seconds (12 hours).
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibility.html>
pub const SQS_VISIBILITY_SECS_MAX: u32 = 43_200;

/// Most entries in one batch request of SQS.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html>
pub const SQS_BATCH_ENTRIES_MAX: usize = 10;

/// Largest message body, and largest sum of bodies in one batch request, in bytes (1 MiB).
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html>
pub const SQS_MESSAGE_BYTES_MAX: usize = 1_048_576;

/// Longest `MessageGroupId`, in characters.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html>
pub const SQS_GROUP_ID_CHARS_MAX: usize = 128;

/// Approximate number of in-flight messages a standard queue allows.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html>
pub const SQS_IN_FLIGHT_MAX: u64 = 120_000;

/// Longest time for which SQS keeps a message, and the time that our queues keep theirs (14 days).
/// It counts from when the message was first sent, also after it has moved to a redrive queue.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html>
pub const SQS_RETENTION: Duration = Duration::from_hours(14 * 24);

/// Bytes of a message that SQS bills as one request (64 KB).
/// <https://aws.amazon.com/sqs/pricing/>
pub const SQS_BILLED_CHUNK_BYTES: usize = 65_536;

/// The number of receives after which a message moves to the redrive queue; hand-backs count.
pub const MAX_RECEIVE_COUNT: u32 = 50;

// --- Addresses ---

/// Longest URL of an endpoint, in bytes: what all clients and proxies can be relied on to take.
pub const URL_BYTES_MAX: usize = 2_048;

/// Longest path and query of a request to `serve`, in bytes: what an Application Load Balancer takes
/// in a request line, and more than the 8,000 that RFC 9110 asks of all. The longest id that the
/// delivery log keeps has 12,288 bytes in percent-encoding.
/// <https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-limits.html>
/// <https://www.rfc-editor.org/rfc/rfc9110#section-4.1>
pub const REQUEST_TARGET_BYTES_MAX: usize = 16 * 1024;

/// Longest id of an event in a URL in percent-encoding, in bytes: the rest of [`URL_BYTES_MAX`] is
/// for what is around it. A longer one is written in base64, in 5,462 bytes at most: API Gateway
/// takes 10,240 with the headers.
/// <https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html>
pub const EVENT_ID_URL_BYTES_MAX: usize = 1_500;

/// Longest id of a replay that is looked for, in bytes; those that are made are shorter.
pub const REPLAY_ID_BYTES_MAX: usize = 128;

// --- Objects ---

/// Longest key of an object, in bytes of UTF-8.
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html>
pub const OBJECT_KEY_BYTES_MAX: usize = 1024;

// --- Names and the registry ---

/// Longest name of a topic or subscription, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// Most subscriptions on one topic (Event Grid's own limit).
/// <https://learn.microsoft.com/azure/event-grid/quotas-limits>
pub const SUBSCRIPTIONS_PER_TOPIC_MAX: usize = 500;

/// Least `autoDeleteOnIdle` of a topic or subscription (Service Bus: five minutes).
/// <https://learn.microsoft.com/azure/service-bus-messaging/message-expiration#temporary-entities>
pub const AUTO_DELETE_ON_IDLE_MIN: Duration = Duration::from_mins(5);

// --- Filters ---

/// Most advanced filters of one subscription.
/// <https://learn.microsoft.com/azure/event-grid/event-filtering#limitations>
pub const ADVANCED_FILTERS_MAX: usize = 25;

/// Most values in all advanced filters of one subscription together. A range is one value.
/// <https://learn.microsoft.com/azure/event-grid/event-filtering#limitations>
pub const ADVANCED_FILTER_VALUES_MAX: usize = 25;

/// Longest string value of an advanced filter, in characters.
/// <https://learn.microsoft.com/azure/event-grid/event-filtering#limitations>
pub const ADVANCED_FILTER_VALUE_CHARS_MAX: usize = 512;

/// Most significant digits of a decimal in an advanced filter: as many as a double keeps of any
/// decimal. Integers have 64 bits.
pub const ADVANCED_FILTER_DECIMAL_DIGITS_MAX: usize = 15;

/// Longest key of an advanced filter, in characters. Event Grid names no limit.
pub const FILTER_KEY_CHARS_MAX: usize = 512;

/// Most names in a key of an advanced filter. Reading a value costs one look at its text per name.
pub const FILTER_KEY_PARTS_MAX: usize = 16;

// --- Publish ---

/// Largest event, in bytes of its JSON (Event Grid: 1 MB).
/// <https://learn.microsoft.com/azure/event-grid/quotas-limits>
pub const EVENT_BYTES_MAX: usize = 1_000_000;

/// Largest publish request body, in bytes.
/// <https://learn.microsoft.com/azure/event-grid/quotas-limits>
pub const REQUEST_BYTES_MAX: usize = 1_000_000;

/// Deepest nesting of arrays and objects in an event, the event itself counted. Inside every
/// envelope of ours it still reads with the 128 levels at which `serde_json` and most other parsers
/// stop.
pub const EVENT_DEPTH_MAX: usize = 100;

/// Most custom events in one publish request. Events of the other schemas have members that they
/// must have, and so take enough of [`REQUEST_BYTES_MAX`]; custom ones may be two bytes long, and
/// what lies around them a hundred times that.
pub const CUSTOM_EVENTS_PER_REQUEST_MAX: usize = 10_000;

/// Most bytes that a topic may add to the custom events of one request, all of them together. A
/// mapping may set three kilobytes around an event of two bytes, and each copy of the event takes
/// them again. With this bound a request is at most five times its largest body, and
/// [`CUSTOM_EVENTS_PER_REQUEST_MAX`] events have 400 bytes each.
pub const CUSTOM_ENVELOPES_BYTES_MAX: usize = 4 * REQUEST_BYTES_MAX;

/// Longest source field of an input mapping, in bytes.
pub const SOURCE_FIELD_BYTES_MAX: usize = 256;

/// Most objects that a source field of an input mapping leads through, each of which is read once
/// more.
pub const SOURCE_FIELD_LEVELS_MAX: usize = 10;

/// Longest text that an input mapping finds in a custom event, or sets, in bytes. Six of them, with
/// every byte escaped, still leave room for the largest event in a message.
pub const MAPPED_VALUE_BYTES_MAX: usize = 1024;

/// Largest management request body, in bytes. A subscription with every member at its limit is far
/// smaller.
pub const MANAGE_REQUEST_BYTES_MAX: usize = 1_048_576;

/// Most mistakes that are named in what a user wrote at once. A person corrects these first.
pub const MISTAKES_MAX: usize = 50;

/// Without batching, most events in one delivery message.
pub const UNBATCHED_EVENTS_PER_MESSAGE_MAX: usize = 10;

/// Without batching, preferred bytes of one delivery message: what SQS bills as one request.
pub const UNBATCHED_MESSAGE_BYTES_PREFERRED: usize = SQS_BILLED_CHUNK_BYTES;

/// Longest time by which an event may have been accepted before its subscription and still be for
/// it, where one of the two has no identity: two machines' clocks may differ, and so may the times
/// that a message and a record have for one moment.
pub const CREATED_AGAIN_MARGIN: Duration = Duration::from_mins(1);

/// Number of deliveries of posthaste from which a publish request with such events is refused: its
/// endpoints form a loop.
pub const HOPS_MAX: u8 = 8;

/// Room kept in a delivery message for its envelope and for the state that later attempts add, in
/// bytes. Event entries carry theirs besides ([`ENTRY_OVERHEAD_BYTES`]).
pub const ENVELOPE_BYTES_RESERVED: usize = 2_048;

/// Bytes that one event's key, expiry and punctuation take in a delivery message, at most.
pub const ENTRY_OVERHEAD_BYTES: usize = 160;

/// An event whose copies in the fan-out of one request would exceed this many bytes in all is
/// stored once and referenced.
pub const INLINE_FAN_OUT_BYTES_MAX: usize = 4 * SQS_MESSAGE_BYTES_MAX;

/// The time for which a referenced payload is kept (longer than any message can live: 14 days of
/// queue retention).
pub const PAYLOAD_KEPT: Duration = Duration::from_hours(360);

/// The longest time ahead for which an event can be scheduled: a month. No other service sets an
/// example: SQS delays for a quarter of an hour, Event Grid does not delay at all.
pub const SCHEDULED_AHEAD_MAX: Duration = Duration::from_hours(30 * 24);

/// The time for which the note is kept that a scheduled event was taken back: as long as any event
/// may wait that was accepted before it, however late its release is. On AWS payloads of scheduled
/// events are kept for as long. S3 counts from the writing, and its rules act once a day.
pub const CANCELLATION_KEPT: Duration =
    SCHEDULED_AHEAD_MAX.saturating_add(PAYLOAD_KEPT.saturating_add(Duration::from_hours(24)));

/// Most objects that the scheduled events of one request may become: one for each subscription and
/// minute. As many are written in some seconds.
pub const SCHEDULED_OBJECTS_PER_REQUEST_MAX: usize = 1000;

/// Longest idempotency key, in bytes. The draft leaves it to the server; other APIs take 255.
/// <https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/>
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 255;

/// Largest event that is taken out of a dead letter: an accepted one of [`EVENT_BYTES_MAX`] with
/// all that a topic and a conversion add. Percent-encoding makes three bytes of one, and each of an
/// envelope's six texts may become six times as long in JSON; the rest is names and fixed values.
pub const RESTORED_EVENT_BYTES_MAX: usize =
    3 * EVENT_BYTES_MAX + 6 * 6 * MAPPED_VALUE_BYTES_MAX + 1024;

/// Most bytes of headers that a CloudEvent in binary mode may take; one with more travels in
/// structured mode. nginx and Apache refuse a header of more than 8 KiB, Node.js a head of more
/// than 16 KiB. <https://nginx.org/en/docs/http/ngx_http_core_module.html#large_client_header_buffers>
/// <https://httpd.apache.org/docs/2.4/mod/core.html#limitrequestfieldsize>
pub const BINARY_HEADERS_BYTES_MAX: usize = 8 * 1024;

/// The time for which a request's idempotency key is remembered after it was published.
pub const IDEMPOTENCY_KEPT: Duration = Duration::from_hours(24);

/// The time for which a request owns its idempotency key while it is published: longer than a
/// function on AWS may run (75 s), so that only a crash leaves one behind.
pub const IDEMPOTENCY_CLAIM_LENGTH: Duration = Duration::from_secs(90);

/// Largest difference of two workers' clocks at which a time that one wrote is of use to the other:
/// far more than that of clocks that NTP keeps.
pub const IDEMPOTENCY_CLOCK_SKEW: Duration = Duration::from_mins(5);

/// The time between the end of an idempotency key and its deletion. A request that claims the key
/// in that time still finds it, so that no key is deleted while a request claims it.
pub const IDEMPOTENCY_SWEPT_AFTER: Duration = Duration::from_hours(1);

// --- Delivery ---

/// Most attempts a subscription may ask for, and the default (Event Grid).
/// <https://learn.microsoft.com/azure/event-grid/delivery-and-retry>
pub const DELIVERY_ATTEMPTS_MAX: u16 = 30;

/// Longest time to live a subscription may ask for, and the default, in minutes (Event Grid: a
/// day). <https://learn.microsoft.com/azure/event-grid/delivery-and-retry>
pub const EVENT_TIME_TO_LIVE_MINUTES_MAX: u32 = 1440;

/// Most steps in a retry schedule; the last one repeats, so more than the attempts would never be
/// used.
pub const SCHEDULE_STEPS_MAX: usize = DELIVERY_ATTEMPTS_MAX as usize;

/// Longest wait one step of a retry schedule may ask for: beyond the longest time to live it has no
/// use.
pub const SCHEDULE_STEP_MAX: Duration = Duration::from_hours(24);

/// Longest and default time an endpoint has to answer.
pub const ATTEMPT_TIMEOUT_MAX: Duration = Duration::from_mins(1);

/// Default time an endpoint has to answer (Event Grid: 30 seconds).
pub const ATTEMPT_TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// Least and most requests a second that a subscription may bound itself to: one a minute, and more
/// than any worker sends.
pub const REQUESTS_PER_SECOND_MIN: f64 = 0.02;

/// See [`REQUESTS_PER_SECOND_MIN`].
pub const REQUESTS_PER_SECOND_MAX: f64 = 100_000.0;

/// Most requests open at once that a subscription may bound itself to. Each worker that has some of
/// them open has a line of some 80 bytes in the state that all of them read; one that may have more
/// open needs no bound.
pub const CONCURRENT_REQUESTS_MAX: u32 = 1000;

/// The time that an endpoint has to consent by calling back (Event Grid: ten minutes; CloudEvents
/// names no time).
/// <https://learn.microsoft.com/azure/event-grid/webhook-event-delivery>
pub const HANDSHAKE_WINDOW: Duration = Duration::from_mins(10);

/// Longest host name, in bytes of its text.
/// <https://www.rfc-editor.org/rfc/rfc1035#section-2.3.4>
pub const DNS_NAME_BYTES_MAX: usize = 253;

/// Longest time an endpoint has to answer a handshake's request, regardless of its timeout for
/// events: the request that writes the subscription waits for it, and on AWS manage has 30 s.
pub const HANDSHAKE_TIMEOUT_MAX: Duration = Duration::from_secs(10);

/// Longest wait that an endpoint may ask for by `Retry-After` for one event: the longest step of
/// the default schedule.
pub const RETRY_AFTER_MAX: Duration = Duration::from_hours(12);

/// Longest part of such a wait for which the whole subscription pauses: its events wait in the
/// queue meanwhile, which delays by [`SQS_DELAY_MAX`] at most.
pub const PAUSE_MAX: Duration = SQS_DELAY_MAX;

/// Shortest pause that all workers learn of. A shorter one is kept by the worker that was asked.
pub const PAUSE_SHARED_MIN: Duration = Duration::from_secs(10);

/// The time after its timeout in which an endpoint's answer still takes an event out of the retry
/// queue (Event Grid: 3 minutes).
/// <https://learn.microsoft.com/azure/event-grid/delivery-and-retry>
pub const LATE_ANSWER_MAX: Duration = Duration::from_mins(3);

/// Most requests that continue after their timeout, in all: each holds a connection, and a body
/// that was not read yet.
pub const LATE_ANSWERS_MAX: usize = 512;

/// Most such requests to one link, so that one endpoint that hangs cannot take all.
pub const LATE_ANSWERS_PER_LINK_MAX: usize = 64;

/// The time for which the note of a late answer is kept: longer than any event lives.
pub const LATE_NOTE_KEPT: Duration = Duration::from_hours(48);

/// Most events in one batch a subscription may ask for (Event Grid).
/// <https://learn.microsoft.com/azure/event-grid/delivery-and-retry>
pub const EVENTS_PER_BATCH_MAX: u32 = 5000;

/// Most events in one batch whose receiver may name those that failed: a report of all of them, at
/// some 60 bytes each with an id of usual length, still fits into [`RESPONSE_BODY_BYTES_MAX`].
pub const ACKNOWLEDGED_EVENTS_MAX: u32 = 1000;

/// The least time for which a bucket refuses a dead letter before it is dropped: one failed put is
/// not an outage.
pub const DEAD_LETTER_GIVE_UP_MIN: Duration = Duration::from_mins(5);

/// Largest preferred batch size, in kilobytes of 1024 bytes (Event Grid).
/// <https://learn.microsoft.com/azure/event-grid/delivery-and-retry>
pub const PREFERRED_BATCH_KILOBYTES_MAX: u32 = 1024;

/// Default preferred batch size, in kilobytes of 1024 bytes (Event Grid).
pub const PREFERRED_BATCH_KILOBYTES_DEFAULT: u32 = 64;

/// Most bytes of a response body that are read; the rest is not.
pub const RESPONSE_BODY_BYTES_MAX: usize = 64 * 1024;

/// Most signing secrets a subscription may hold at once: an old and a new one, and one in reserve.
pub const SIGNING_SECRETS_MAX: usize = 3;

/// Shortest and longest Standard Webhooks secret, in bytes after decoding.
/// <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>
pub const SIGNING_SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// Most custom headers a subscription may add (Event Grid).
/// <https://learn.microsoft.com/azure/event-grid/delivery-properties>
pub const DELIVERY_HEADERS_MAX: usize = 10;

/// Longest value of a custom header, in bytes (Event Grid).
/// <https://learn.microsoft.com/azure/event-grid/delivery-properties>
pub const DELIVERY_HEADER_VALUE_BYTES_MAX: usize = 4096;

/// Longest beginning of the names of a sender's own headers, in bytes: short beside the head of a
/// request, of which servers take a few kilobytes.
pub const HEADER_PREFIX_BYTES_MAX: usize = 32;

/// Longest name of a custom header, in bytes. HTTP has no bound; servers refuse a head of a few
/// kilobytes.
pub const DELIVERY_HEADER_NAME_BYTES_MAX: usize = 128;

/// Longest JSON pointer into an event, in bytes: as long as Event Grid lets a filter's values be.
pub const JSON_POINTER_BYTES_MAX: usize = 512;

/// The time for which the old signing secrets sign beside a new one, when the rotation does not
/// say.
pub const ROTATION_OVERLAP_DEFAULT: Duration = Duration::from_hours(24);

/// Longest such time: a secret that is still in use after a week was not rotated.
pub const ROTATION_OVERLAP_MAX: Duration = Duration::from_hours(7 * 24);

// --- Dead letters ---

/// Default time between the last attempt and the dead-letter object (Event Grid: five minutes).
pub const DEAD_LETTER_DELAY_DEFAULT: Duration = Duration::from_mins(5);

/// Longest such time: what SQS can delay.
pub const DEAD_LETTER_DELAY_MAX: Duration = SQS_DELAY_MAX;

/// Shortest time for which the embedded store may keep dead letters: they are looked at once an
/// hour.
pub const DEAD_LETTER_RETENTION_MIN: Duration = Duration::from_hours(1);

/// Longest such time, that of `DeadLetterRetentionDays` on AWS.
pub const DEAD_LETTER_RETENTION_MAX: Duration = Duration::from_hours(36_500 * 24);

/// Largest dead-letter object that is gathered from more than one message, in bytes. In base64,
/// which takes a third more, it still fits into the 6 MB in which a Lambda function answers, so
/// that manage can show every object.
/// <https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>
pub const DEAD_LETTER_OBJECT_BYTES_PREFERRED: usize = 4 * 1024 * 1024;

/// Largest body of a request that puts in dead letters of another installation, in bytes: an object
/// of [`DEAD_LETTER_OBJECT_BYTES_PREFERRED`] with the list of what is resolved in it. A Lambda
/// function takes 6 MB and gets the body as text within JSON, so that this fits where at most four in
/// ten characters are quotes or backslashes.
/// <https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>
pub const DEAD_LETTER_IMPORT_BYTES_MAX: usize = DEAD_LETTER_OBJECT_BYTES_PREFERRED + 256 * 1024;

/// Most objects of one such request. Each takes three calls of the store, and all of them must end
/// before the request's time does.
pub const DEAD_LETTER_IMPORT_OBJECTS_MAX: usize = 100;

/// Largest failure notice, in bytes of its JSON (under 256 KB). One that would be larger has not
/// the data of the event it is about.
pub const NOTICE_BYTES_MAX: usize = 256_000;

/// Most characters of each attribute in a notice about an event whose attributes alone are too long
/// for one.
pub const NOTICE_TEXT_CHARS_MAX: usize = 1_024;

/// Largest parked or held object that is gathered before the next one is begun, in bytes.
pub const PARKED_OBJECT_BYTES_PREFERRED: usize = 4 * 1024 * 1024;

/// Most deliveries in one held object: as many as wake releases of one subscription in one pass, so
/// that none has to be written again when a part of it goes out.
pub const HELD_PER_OBJECT_MAX: usize = 200;

// --- Replay ---

/// Events per second at which a replay goes when its request does not say.
pub const REPLAY_RATE_DEFAULT: u32 = 100;

/// Most events per second that a replay may ask for: what one run of `wake` can read and send in
/// its minute.
pub const REPLAY_RATE_MAX: u32 = 1000;

/// Most event types that a replay may name.
pub const REPLAY_TYPES_MAX: usize = 100;

/// Most objects that a replay may name: what one page of a list shows.
pub const REPLAY_KEYS_MAX: usize = 1000;

/// Most letters that a replay may name one by one: what one page of a list shows.
pub const REPLAY_LETTERS_MAX: usize = 1000;

/// Most failures that a replay shows; all are counted.
pub const REPLAY_FAILURES_SHOWN_MAX: usize = 20;

/// Events per second at which recovery goes when its subscription does not say: half of the rate of
/// a replay by hand, because no person watches it.
pub const RECOVERY_RATE_DEFAULT: u32 = 50;

/// The time after its first acceptance in which recovery sends an event, when its subscription does
/// not say: two weeks, as long as SQS keeps a message.
pub const RECOVERY_WITHIN_DEFAULT: Duration = Duration::from_hours(14 * 24);

/// Shortest such time: an endpoint is known to be down after some minutes.
pub const RECOVERY_WITHIN_MIN: Duration = Duration::from_hours(1);

/// Longest such time: as long as a replay can be looked at.
pub const RECOVERY_WITHIN_MAX: Duration = REPLAY_KEPT;

/// The number of times that recovery sends an event. One that fails whenever it is sent may be what
/// brings its endpoint down.
pub const RECOVERIES_MAX: u8 = 3;

/// The time for which a replay that ended can be looked at.
pub const REPLAY_KEPT: Duration = Duration::from_hours(30 * 24);

// --- The stack on AWS ---

/// The time after which the owner of a state counts as gone, if it has not said since that it works
/// on it.
pub const STATE_OWNER_LIVES: Duration = Duration::from_mins(10);

/// The time after which an owner says again that it works on its state: two tries before it counts
/// as gone. Each is a PUT of S3, so $0.045 a month.
pub const STATE_OWNER_RENEWED: Duration = Duration::from_mins(5);

// --- Delivery log ---

/// Largest message of records, in bytes: below the 1,048,576 of SQS, with room for its attributes.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html>
pub const RECORDS_MESSAGE_BYTES_MAX: usize = 900_000;

/// Most characters of an event's id, source, type or subject in the delivery log. Longer ones are
/// cut.
pub const LOG_TEXT_CHARS_MAX: usize = 1_024;

/// Bytes of a response's body that the delivery log keeps.
pub const LOG_ANSWER_BYTES_MAX: usize = 256;

/// Largest payload in the delivery log, in bytes. Of a larger one it keeps the reference.
pub const LOG_PAYLOAD_BYTES_MAX: usize = 64 * 1024;

/// Most records that a look-up by an id returns. An event has one for each attempt and
/// subscription; ids that repeat without end must not fill the memory.
pub const LOG_LOOK_UP_RECORDS_MAX: usize = 1_000;

/// Most records in one row group of the log's files. Measured: smaller ones make a look-up read
/// more ranges, larger ones make it read more bytes.
pub const LOG_ROW_GROUP_RECORDS_MAX: usize = 50_000;

/// Bytes of payloads and other long texts in one row group before the next one is begun: what a
/// merge holds in memory.
pub const LOG_ROW_GROUP_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Largest file that a merge makes, in bytes, but for its last row group.
pub const LOG_FILE_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// Largest object in the delivery log's store, in bytes: a file that a merge makes, with its last
/// row group.
pub const LOG_OBJECT_BYTES_MAX: u64 = LOG_FILE_BYTES_MAX + LOG_ROW_GROUP_BYTES_MAX as u64;

/// Most bytes of the files that one merge of the delivery log reads. Small records take 50 bytes of
/// a file and 48 of memory while they are merged, so it takes up to 130 MB for them.
pub const LOG_MERGE_BYTES_MAX: u64 = LOG_FILE_BYTES_MAX;

/// Most files that one merge of the delivery log reads, each through an open file: Lambda allows
/// 1,024. <https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>
pub const LOG_MERGE_FILES_MAX: usize = 200;

/// Time after the end of an hour of the delivery log until its files are merged into one: longer
/// than records wait for others (60 s on AWS) and than one invocation takes (2 min).
pub const LOG_HOUR_CLOSED_AFTER: Duration = Duration::from_mins(5);

/// Time for which the embedded delivery log is kept by default.
pub const LOG_RETENTION_DEFAULT: Duration = Duration::from_hours(7 * 24);

/// Shortest time for which the embedded delivery log may keep records: whole hours are deleted.
pub const LOG_RETENTION_MIN: Duration = Duration::from_hours(1);
/// Longest time for which the embedded delivery log may keep records: ten years.
pub const LOG_RETENTION_MAX: Duration = Duration::from_hours(3650 * 24);

/// Share of the disk that the embedded delivery log takes at most by default, in per cent.
pub const LOG_DISK_PERCENT_DEFAULT: u64 = 5;

/// Bytes of the embedded delivery log that are kept although the disk is nearly full: to delete
/// them would free next to nothing.
pub const LOG_BYTES_KEPT: u64 = 16 * 1024 * 1024;

/// Bytes of a disk that the embedded delivery log leaves free: four times what the queues keep for
/// the work that empties them. So the log stops long before events are refused.
pub const LOG_DISK_FREE_MIN: u64 = 128 * 1024 * 1024;

/// Most bytes of records that wait in the embedded queue, and never more than the log may take: two
/// hours of 100 deliveries a second with payloads of 1 KiB.
pub const RECORDS_WAITING_BYTES_MAX: u64 = 1024 * 1024 * 1024;

// --- The audit trail ---

/// Time for which an entry of the audit trail is kept: as long as GitHub keeps those of an
/// organization.
/// <https://docs.github.com/en/organizations/keeping-your-organization-secure/managing-security-settings-for-your-organization/reviewing-the-audit-log-for-your-organization>
pub const AUDIT_KEPT: Duration = Duration::from_hours(180 * 24);

/// Most entries of the audit trail that `serve` keeps: 500 a day. Beyond that the oldest go first.
pub const AUDIT_ENTRIES_MAX: usize = 100_000;

/// Most bytes of entries that `serve` keeps: 2.5 KiB for each of them.
pub const AUDIT_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Most bytes of changes in one entry. A subscription with its filters has a few KiB.
pub const AUDIT_ENTRY_CHANGES_BYTES_MAX: usize = 64 * 1024;

/// Most characters of a text in an entry, such as an event's id or the reason of a refusal.
pub const AUDIT_TEXT_CHARS_MAX: usize = 500;
/// Most subscriptions of an event that its delivery messages name. The names of more, in a message
/// for each of them, would take more bytes than one record of the event.
pub const MATCHED_IN_MESSAGES_MAX: usize = 16;

/// The wait before a first attempt from which on publish records an event itself. It is the wait
/// that deliver reports ([`REPORTED_WAIT_MIN`](crate::pressure::REPORTED_WAIT_MIN)): shorter ones
/// are those of a queue that keeps up.
pub const ACCEPTANCE_WAIT_MIN: Duration = Duration::from_secs(5);

/// For how long what is published becomes dead letters after an endpoint disabled its subscription,
/// where the subscription does not say it: as long as the delivery log keeps records by default, so
/// that both can be looked at together.
pub const DISABLED_KEPT: Duration = LOG_RETENTION_DEFAULT;

/// Time before that end at which an operator is told of it: a day, so that it is read during work
/// hours.
pub const MISSED_TOLD_BEFORE: Duration = Duration::from_hours(24);

/// Share of the room for these dead letters, in per cent, from which on an operator is told that it
/// ends. The time until then is unknown.
pub const MISSED_TOLD_PERCENT: u64 = 90;

/// Share of the disk that these dead letters take at most by default, in per cent: twice the
/// delivery log's.
pub const MISSED_DISK_PERCENT_DEFAULT: u64 = 10;
