//! The environments of the seven functions, one type each.

use std::ops::RangeInclusive;
use std::time::Duration;

use posthaste_core::circuit::HealthSettings;
use posthaste_core::model::{DeliveryLogMode, KeyDigest, SenderHeaders, origin};
use posthaste_core::pressure::{ExchangeError, PressureSettings};
use posthaste_deliver::{DELAY_STEP_AWS, DeliverSettings, DisablingMode, RecordsSettings};
use posthaste_http::ClientSettings;
use posthaste_manage::{LogSettings, ManageSettings};
use posthaste_monitor::MonitorSettings;
use posthaste_publish::PublishSettings;
use posthaste_settings::SettingValues;
use posthaste_settings::table::{
    self, client_settings, deliver_settings, manage_settings, monitor_settings, publish_settings,
    wake_settings,
};
use posthaste_wake::WakeSettings;
use url::Url;

use super::read::FunctionEnvironment;
use super::variables::EnvironmentReader;

/// The environment of publish.
#[derive(Debug, Clone)]
pub struct PublishEnvironment {
    /// The URL of the delivery queue.
    pub deliveries_queue_url: String,
    /// The URL of the delivery queue of the slow lane. Settings of 0.1.0 do not have it.
    pub slow_deliveries_queue_url: Option<String>,
    /// The URL of the queue of the delivery log's records. Settings of 0.1.0 do not have it.
    pub records_queue_url: Option<String>,
    /// Greatest age of a cached topic.
    pub registry_max_age: Duration,
    /// Settings of the function.
    pub settings: PublishSettings,
}

impl FunctionEnvironment for PublishEnvironment {
    fn read_own(variables: &mut EnvironmentReader<'_>) -> Self {
        Self {
            deliveries_queue_url: variables
                .get(&table::DELIVERIES_QUEUE_URL)
                .unwrap_or_default(),
            slow_deliveries_queue_url: variables.get(&table::SLOW_DELIVERIES_QUEUE_URL),
            records_queue_url: variables.get_where_set(&table::RECORDS_QUEUE_URL),
            registry_max_age: variables.registry_max_age(),
            settings: publish_settings(
                variables,
                PublishSettings {
                    stores_for_log: true,
                    ..PublishSettings::default()
                },
            ),
        }
    }
}

/// Most bytes of stored payloads held at once. A request's body takes as much again, so that 128
/// MiB of the function's 512 MB, or of the 256 it has at least, are filled by them. A batch of
/// messages has 6 MB, and its bodies as much.
const PAYLOAD_BYTES_MAX: u32 = 64 << 20;

/// Most stored payloads read at once. One takes S3 some 30 ms, so that these are a thousand a
/// second: more than a function of this size posts.
const PAYLOAD_READS_MAX: usize = 32;

/// The environment of deliver.
#[derive(Debug, Clone)]
pub struct DeliverEnvironment {
    /// The URL of the delivery queue.
    pub deliveries_queue_url: String,
    /// The URL of the delivery queue of the slow lane. Settings of 0.1.0 do not have it.
    pub slow_deliveries_queue_url: Option<String>,
    /// The URL of the dead-letter queue.
    pub dead_letters_queue_url: String,
    /// The URL of the queue of the delivery log's records.
    pub records_queue_url: String,
    /// Greatest age of a cached topic.
    pub registry_max_age: Duration,
    /// Bounds of requests, and their origin.
    pub settings: DeliverSettings,
    /// Settings of the webhook client.
    pub client: ClientSettings,
    /// Settings for when endpoints that fail get no requests, and for how long.
    pub links: HealthSettings,
}

impl FunctionEnvironment for DeliverEnvironment {
    fn read_own(variables: &mut EnvironmentReader<'_>) -> Self {
        Self {
            deliveries_queue_url: variables
                .get(&table::DELIVERIES_QUEUE_URL)
                .unwrap_or_default(),
            slow_deliveries_queue_url: variables.get(&table::SLOW_DELIVERIES_QUEUE_URL),
            dead_letters_queue_url: variables
                .get(&table::DEADLETTERS_QUEUE_URL)
                .unwrap_or_default(),
            records_queue_url: variables.get(&table::RECORDS_QUEUE_URL).unwrap_or_default(),
            registry_max_age: variables.registry_max_age(),
            settings: checked_deliver_settings(variables),
            client: client_settings(variables, ClientSettings::default()),
            links: variables.link_settings(),
        }
    }
}

fn checked_deliver_settings(variables: &mut EnvironmentReader<'_>) -> DeliverSettings {
    let base = DeliverSettings {
        payload_bytes_max: PAYLOAD_BYTES_MAX,
        payload_reads_max: PAYLOAD_READS_MAX,
        records: RecordsSettings::AWS,
        delay_step: DELAY_STEP_AWS,
        disabling: DisablingMode::ByWake,
        ..DeliverSettings::default()
    };
    let settings = deliver_settings(variables, base);
    if let Err(error) = settings.check_link_bounds() {
        variables.record_refusal(&table::REQUESTS_PER_LINK_START, &error);
    }
    settings
}

/// The environment of wake.
#[derive(Debug, Clone)]
pub struct WakeEnvironment {
    /// The bucket of dead letters, for replays.
    pub dead_letter_bucket: String,
    /// The bucket of the delivery log, for replays.
    pub log_bucket: String,
    /// The URL of the delivery queue.
    pub deliveries_queue_url: String,
    /// The URL of the delivery queue of the slow lane. Settings of 0.1.0 do not have it.
    pub slow_deliveries_queue_url: Option<String>,
    /// Settings for when endpoints that fail get no requests, and for how long.
    pub links: HealthSettings,
    /// Settings of the function.
    pub settings: WakeSettings,
}

impl FunctionEnvironment for WakeEnvironment {
    fn read_own(variables: &mut EnvironmentReader<'_>) -> Self {
        Self {
            dead_letter_bucket: variables
                .get(&table::DEAD_LETTER_BUCKET)
                .unwrap_or_default(),
            log_bucket: variables.get(&table::LOG_BUCKET).unwrap_or_default(),
            deliveries_queue_url: variables
                .get(&table::DELIVERIES_QUEUE_URL)
                .unwrap_or_default(),
            slow_deliveries_queue_url: variables.get(&table::SLOW_DELIVERIES_QUEUE_URL),
            links: variables.link_settings(),
            settings: wake_settings(variables),
        }
    }
}

/// The environment of deadletter.
#[derive(Debug, Clone)]
pub struct DeadLetterEnvironment {
    /// The bucket of dead letters.
    pub dead_letter_bucket: String,
    /// The URL of the delivery queue.
    pub deliveries_queue_url: String,
    /// The URL of the delivery queue of the slow lane. Settings of 0.1.0 do not have it.
    pub slow_deliveries_queue_url: Option<String>,
    /// The URL of the dead-letter queue.
    pub dead_letters_queue_url: String,
    /// URL of the queue of messages that functions failed on many times.
    pub redrive_queue_url: String,
    /// The URL of the queue of the delivery log's records.
    pub records_queue_url: String,
    /// The mode of the delivery log for a topic that does not name one.
    pub delivery_log: DeliveryLogMode,
    /// Most bytes of dead letters of what disabled subscriptions miss.
    pub missed_bytes_max: Option<u64>,
    /// Greatest age of a cached topic.
    pub registry_max_age: Duration,
}

impl FunctionEnvironment for DeadLetterEnvironment {
    fn read_own(variables: &mut EnvironmentReader<'_>) -> Self {
        Self {
            dead_letter_bucket: variables
                .get(&table::DEAD_LETTER_BUCKET)
                .unwrap_or_default(),
            deliveries_queue_url: variables
                .get(&table::DELIVERIES_QUEUE_URL)
                .unwrap_or_default(),
            slow_deliveries_queue_url: variables.get(&table::SLOW_DELIVERIES_QUEUE_URL),
            dead_letters_queue_url: variables
                .get(&table::DEADLETTERS_QUEUE_URL)
                .unwrap_or_default(),
            redrive_queue_url: variables.get(&table::REDRIVE_QUEUE_URL).unwrap_or_default(),
            records_queue_url: variables.get(&table::RECORDS_QUEUE_URL).unwrap_or_default(),
            delivery_log: variables.get(&table::DELIVERY_LOG).unwrap_or_default(),
            missed_bytes_max: variables.get(&table::DISABLED_KEPT_BYTES_MAX),
            registry_max_age: variables.registry_max_age(),
        }
    }
}

/// The time between two samples where nothing is set.
const INTERVAL_DEFAULT: Duration = Duration::from_secs(10);

/// The times between two samples that the settings under Exchange's names may ask for.
const INTERVALS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_mins(1);

/// Age at which a state is stale: two starts of the function did not happen.
const STALE_AFTER: Duration = Duration::from_secs(150);

/// The environment of monitor.
#[derive(Debug, Clone)]
pub struct MonitorEnvironment {
    /// The id of the stack, which claims the state bucket.
    pub stack: Option<String>,
    /// The URL of the delivery queue.
    pub deliveries_queue_url: String,
    /// The URL of the delivery queue of the slow lane. Settings of 0.1.0 do not have it.
    pub slow_deliveries_queue_url: Option<String>,
    /// The URL of the dead-letter queue.
    pub dead_letters_queue_url: String,
    /// Settings of the function.
    pub settings: MonitorSettings,
}

impl FunctionEnvironment for MonitorEnvironment {
    fn read_own(variables: &mut EnvironmentReader<'_>) -> Self {
        Self {
            stack: variables.get(&table::STACK_ID),
            deliveries_queue_url: variables
                .get(&table::DELIVERIES_QUEUE_URL)
                .unwrap_or_default(),
            slow_deliveries_queue_url: variables.get(&table::SLOW_DELIVERIES_QUEUE_URL),
            dead_letters_queue_url: variables
                .get(&table::DEADLETTERS_QUEUE_URL)
                .unwrap_or_default(),
            settings: pressure_and_notices(variables),
        }
    }
}

fn pressure_and_notices(variables: &mut EnvironmentReader<'_>) -> MonitorSettings {
    let pressure = pressure_settings(variables);
    monitor_settings(variables, pressure)
}

/// The profile, changed by the settings under Exchange's names. An interval of its own variable
/// wins over theirs.
fn pressure_settings(variables: &mut EnvironmentReader<'_>) -> PressureSettings {
    let profile = variables.get(&table::PRESSURE_PROFILE).unwrap_or_default();
    let changes = variables.get(&table::PRESSURE_SETTINGS).unwrap_or_default();
    let interval_secs = variables.get(&table::PRESSURE_INTERVAL_SECONDS);
    let defaults = PressureSettings {
        interval: INTERVAL_DEFAULT,
        stale_after: Some(STALE_AFTER),
        ..profile
    };
    let settings = changes
        .apply_to(defaults.clone())
        .and_then(check_interval)
        .unwrap_or_else(|error| {
            variables.record_refusal(&table::PRESSURE_SETTINGS, &error);
            defaults
        });
    let interval = interval_secs.map_or(settings.interval, |secs| Duration::from_secs(secs.into()));
    PressureSettings {
        interval,
        ..settings
    }
}

/// The schedule starts the function once a minute, and every sample asks SQS.
fn check_interval(settings: PressureSettings) -> Result<PressureSettings, ExchangeError> {
    settings.validate_interval(INTERVALS)?;
    Ok(settings)
}

/// The settings of manage, before the environment changes them.
const MANAGE: ManageSettings = ManageSettings {
    publish_url: None,
    public_url: None,
    origin: origin::DEFAULT,
    sender_headers: SenderHeaders::DEFAULT,
    notices_topic: None,
    log: LogSettings {
        mode: DeliveryLogMode::Payloads,
        retention: Some(LOG_RETENTION),
        delay: LOG_DELAY,
        gaps: Vec::new(),
    },
};

/// The time for which the bucket keeps the delivery log where nothing is set.
const LOG_RETENTION: Duration = Duration::from_hours(7 * 24);

/// The longest time from an attempt until the delivery log has its record: record's batches gather
/// for a minute, and one that fails comes again.
pub(crate) const LOG_DELAY: Duration = Duration::from_mins(4);

/// The environment of manage.
#[derive(Debug, Clone)]
pub struct ManageEnvironment {
    /// The bucket of dead letters.
    pub dead_letter_bucket: String,
    /// The bucket of the delivery log.
    pub log_bucket: String,
    /// The URL of the delivery queue, for events that are sent again.
    pub deliveries_queue_url: String,
    /// The URL of the delivery queue of the slow lane. Settings of 0.1.0 do not have it.
    pub slow_deliveries_queue_url: Option<String>,
    /// The digest of the key of the management API.
    pub admin_key: KeyDigest,
    /// The URLs of publish and of manage itself, and the origin of handshakes. The template cannot
    /// give the function its own URL when it makes the function.
    pub settings: ManageSettings,
    /// Whether there is a console.
    pub console: bool,
    /// The URL of the stack's dashboard, to which the console leads.
    pub dashboard_url: Option<Url>,
    /// Settings of the webhook client.
    pub client: ClientSettings,
    /// Settings for when endpoints that fail get no requests, and for how long.
    pub links: HealthSettings,
}

impl FunctionEnvironment for ManageEnvironment {
    fn read_own(variables: &mut EnvironmentReader<'_>) -> Self {
        Self {
            dead_letter_bucket: variables
                .get(&table::DEAD_LETTER_BUCKET)
                .unwrap_or_default(),
            log_bucket: variables.get(&table::LOG_BUCKET).unwrap_or_default(),
            deliveries_queue_url: variables
                .get(&table::DELIVERIES_QUEUE_URL)
                .unwrap_or_default(),
            slow_deliveries_queue_url: variables.get(&table::SLOW_DELIVERIES_QUEUE_URL),
            admin_key: variables.get(&table::ADMIN_KEY_SHA256).unwrap_or_default(),
            settings: manage_settings(variables, MANAGE),
            console: variables.get(&table::CONSOLE).unwrap_or(true),
            dashboard_url: variables.get(&table::DASHBOARD_URL),
            client: client_settings(variables, ClientSettings::default()),
            links: variables.link_settings(),
        }
    }
}

/// The environment of record.
#[derive(Debug, Clone)]
pub struct RecordEnvironment {
    /// The bucket of the delivery log.
    pub log_bucket: String,
    /// The URL of the queue of the delivery log's records.
    pub records_queue_url: String,
    /// The URL of the delivery queue. Settings of 0.1.0 do not have it.
    pub deliveries_queue_url: Option<String>,
    /// The URL of the delivery queue of the slow lane. Settings of 0.1.0 do not have it.
    pub slow_deliveries_queue_url: Option<String>,
    /// The URL of the dead-letter queue. Settings of 0.1.0 do not have it.
    pub dead_letters_queue_url: Option<String>,
    /// The URL of the queue of messages on which a function failed. Settings of 0.1.0 do not have it.
    pub redrive_queue_url: Option<String>,
    /// The thresholds by which a subscription is failing.
    pub links: HealthSettings,
}

impl FunctionEnvironment for RecordEnvironment {
    fn read_own(variables: &mut EnvironmentReader<'_>) -> Self {
        Self {
            log_bucket: variables.get(&table::LOG_BUCKET).unwrap_or_default(),
            records_queue_url: variables.get(&table::RECORDS_QUEUE_URL).unwrap_or_default(),
            deliveries_queue_url: variables.get_where_set(&table::DELIVERIES_QUEUE_URL),
            slow_deliveries_queue_url: variables.get(&table::SLOW_DELIVERIES_QUEUE_URL),
            dead_letters_queue_url: variables.get_where_set(&table::DEADLETTERS_QUEUE_URL),
            redrive_queue_url: variables.get_where_set(&table::REDRIVE_QUEUE_URL),
            links: variables.link_settings(),
        }
    }
}
