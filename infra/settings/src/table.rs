//! The table: options in the order of `serve --help`, then what only the Lambda programs read.
//!
//! At the end are the settings of functions that both hosts make in the same way.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use ipnet::IpNet;
use posthaste_core::api::LinkSettings;
use posthaste_core::model::size::DiskShare;
use posthaste_core::model::time::parse_duration;
use posthaste_core::model::{
    AddressPolicy, DeliveryLogMode, KeyDigest, SQS_IN_FLIGHT_MAX, Secret, SenderHeaders, TopicName,
    origin,
};
use posthaste_core::pressure::{ExchangeSettings, PressureSettings};
use posthaste_core::trace::SampleRatio;
use posthaste_core::trace::collector::{CollectorSettings, ExportSettings, ResourceAttributes};
use posthaste_deliver::{DeliverSettings, SlowLaneMode};
use posthaste_http::{ClientSettings, parse_dns_server};
use posthaste_manage::{LogSettings, ManageSettings};
use posthaste_monitor::MonitorSettings;
use posthaste_publish::{PublishSettings, TarpitMode};
use posthaste_record::RecordSettings;
use posthaste_wake::WakeSettings;
use tracing::level_filters::LevelFilter;
use url::Url;

use crate::parse::{self, LogFormat, parse_value};
use crate::setting::Function::{Deadletter, Deliver, Manage, Monitor, Publish, Record, Wake};
use crate::setting::{
    ChoiceValue, Function, ServeOption, Setting, SettingValues, ValueForm, Variable,
};

/// Looks at every setting of the table, in its order.
pub trait SettingVisitor {
    /// Looks at one setting.
    fn visit<T: Clone + Send + Sync + 'static>(&mut self, setting: &'static Setting<T>);
}

/// The bounds of a number of 16 bits that is not zero.
const COUNT: ValueForm = ValueForm::Number(1, u16::MAX as i64);

/// Most requests open at once that may be set. Lambda gives a process 1,024 file descriptors. A
/// request takes one, or two while it tries a second address of its endpoint; 128 are kept for idle
/// connections. The rest is for the payloads that are read, the topics that are looked up (32
/// each), the queue and the process itself. <https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>
const LAMBDA_REQUESTS: ValueForm = ValueForm::Number(1, 400);

/// An invocation has at most 1,000 requests under way, so that this bound never allows one more.
const LAMBDA_WAITING: ValueForm = ValueForm::Number(1, 1000);

/// At most five minutes, because a deleted key still opens its topic until then.
const MAX_AGE_SECS: ValueForm = ValueForm::Number(0, 300);

/// The sizes of a batch that an event source mapping takes.
/// <https://docs.aws.amazon.com/lambda/latest/api/API_CreateEventSourceMapping.html>
const BATCH_SIZE: ValueForm = ValueForm::Number(1, 10_000);

/// The seconds after which a request is late. A request takes at most a minute.
const SLOW_AFTER_SECS: ValueForm = ValueForm::Number(1, 30);

/// Most messages of an invocation that works on slow deliveries, as template.yaml has it.
const SLOW_BATCH_SIZE: u64 = 100;

/// The schedule starts monitor once a minute.
const INTERVAL_SECS: ValueForm = ValueForm::Number(1, 60);

const NETWORKS: ValueForm =
    ValueForm::List("networks as in 10.0.0.0/8,fd00::/8, or addresses, separated by commas");
const QUEUE_URL: ValueForm = ValueForm::Text("the URL of a queue");
const BUCKET: ValueForm = ValueForm::Text("the name of a bucket");
const WEB_URL: ValueForm = ValueForm::Text("a URL that begins with https:// or http://");
const KEY_DIGEST: ValueForm =
    ValueForm::Secret("the SHA-256 digest of the admin key, as 64 hexadecimal digits");
const ADMIN_KEY_FORM: ValueForm =
    ValueForm::Secret("the admin key, 16 or more visible ASCII characters or spaces between them");
const OTLP_HEADERS_FORM: ValueForm = ValueForm::Secret("name=value with commas in between");
const OTLP_RESOURCE_FORM: ValueForm = ValueForm::Text("name=value with commas in between");
const NAMESPACE: ValueForm =
    ValueForm::Text("1 to 255 letters, digits and .-_/#: as CloudWatch has them");

const PRESSURE_PROFILES: ValueForm = ValueForm::Choice(&[
    choice(
        "scaled",
        "The queue's length counts only while it drains slowly",
    ),
    choice("exchange-2013", "Exchange 2013's table to the letter"),
    choice(
        "exchange-2013-german",
        "The same with the version buckets of the older, German page",
    ),
    choice("off", "Nothing is measured, and no producer is slowed"),
]);
const LOG_FORMATS: ValueForm = ValueForm::Choice(&[
    choice("json", "One JSON object per line"),
    choice("pretty", "For people"),
]);
const LOG_LEVELS: ValueForm = ValueForm::Choice(&[
    choice("off", ""),
    choice("error", ""),
    choice("warn", ""),
    choice("info", ""),
    choice("debug", ""),
    choice("trace", ""),
]);
const DELIVERY_LOG_MODES: ValueForm = ValueForm::Choice(&[
    choice("off", "Nothing"),
    choice("attempts", "Attempts and their answers, without payloads"),
    choice(
        "payloads",
        "Also the payload of each event, so that it can be sent again",
    ),
]);
const SLOW_LANES: ValueForm = ValueForm::Choice(&[
    choice("on", "Deliveries to slow targets have a queue of their own"),
    choice(
        "drain",
        "Nothing goes into that queue, and what is there is delivered",
    ),
    choice("off", "The same, and the queue is not read"),
]);
const ON_OFF: ValueForm = ValueForm::Choice(&[choice("on", ""), choice("off", "")]);
const TARPITS: ValueForm = ValueForm::Choice(&[choice("advise", ""), choice("delay", "")]);
const METRICS_PER: ValueForm = ValueForm::Choice(&[
    choice("stack", ""),
    choice("topic", ""),
    choice("subscription", ""),
]);
const SERIES_PER: ValueForm = ValueForm::Choice(&[
    choice("total", "Neither topics nor subscriptions"),
    choice("topic", "Every topic"),
    choice("subscription", "Every subscription"),
]);

const DELIVERY: &str = "Delivery";
const DELIVERY_LOG_HEADING: &str = "Delivery log";
const BACK_PRESSURE: &str = "Back pressure";
const CONNECTIONS: &str = "Incoming connections";
const METRICS_HEADING: &str = "Metrics";
const TRACES: &str = "Traces";
const THE_LOG: &str = "Log";

const fn choice(name: &'static str, help: &'static str) -> ChoiceValue {
    ChoiceValue { name, help }
}

/// Makes each row a `static`, and the function that visits all of them.
macro_rules! table {
    ($($name:ident: $type:ty = $parse:expr, $option:expr, $variable:expr;)*) => {
        $(
            pub static $name: Setting<$type> =
                Setting { option: $option, variable: $variable, parse: $parse };
        )*

        /// Shows every setting to a visitor.
        pub fn visit(visitor: &mut impl SettingVisitor) {
            $(visitor.visit(&$name);)*
        }
    };
}

table! {
    LISTEN: SocketAddr = parse::listen_address,
        Some(ServeOption::new("listen", "POSTHASTE_LISTEN", "ADDRESS",
            "The address and port to listen on: 127.0.0.1:8080, localhost:8080 or 8080. Port 0 takes a free \
             one, and the log says which.")
            .default("127.0.0.1:8080")),
        None;
    MANAGE_LISTEN: SocketAddr = parse::listen_address,
        Some(ServeOption::new("manage-listen", "POSTHASTE_MANAGE_LISTEN", "ADDRESS",
            "An address of its own for the management API and the console, such as 127.0.0.1:8081. The other \
             one answers producers, consents and health then [default: the address of --listen].")),
        None;
    METRICS_LISTEN: SocketAddr = parse::listen_address,
        Some(ServeOption::new("metrics-listen", "POSTHASTE_METRICS_LISTEN", "ADDRESS",
            "An address of its own for /metrics, which asks for no key. No other address has them then \
             [default: those of --listen and --manage-listen].")),
        None;
    TLS_CERT: PathBuf = parse_value,
        Some(ServeOption::new("tls-cert", "POSTHASTE_TLS_CERT", "FILE",
            "A file with the server's certificate and its chain, in PEM. With it, and with --tls-key, all \
             addresses speak TLS. Both files are read again when they change.")
            .form(ValueForm::File)
            .more("The server's own certificate comes first.")),
        None;
    TLS_KEY: PathBuf = parse_value,
        Some(ServeOption::new("tls-key", "POSTHASTE_TLS_KEY", "FILE",
            "A file with the private key of that certificate, in PEM and without a passphrase.")
            .form(ValueForm::File)),
        None;
    ADMIN_KEY: Secret = |text| Ok(Secret::new(text)),
        Some(ServeOption::new("key", "POSTHASTE_KEY", "KEY",
            "The admin key, 16 or more visible ASCII characters or spaces between them [default: the one in \
             admin.key of the data folder, which the first start makes].")
            .form(ADMIN_KEY_FORM)
            .more("A given key is never written to the disk. Where the file holds another one, the given key \
                   counts, and the log warns of the file: commands on this machine read it.")),
        None;
    CONSOLE: bool = parse::on_off,
        Some(ServeOption::new("console", "POSTHASTE_CONSOLE", "CHOICE",
            "Whether there are pages for operators at /console. They ask for the admin key.")
            .form(ON_OFF).default("on")),
        Some(Variable::new("CONSOLE", ON_OFF, &[Manage]).default("on").parameter("Console"));
    CONFIG: PathBuf = parse_value,
        Some(ServeOption::new("config", "POSTHASTE_CONFIG", "FILE",
            "A YAML file to apply at the start, as `apply -f` does. May be given more than once.")
            .form(ValueForm::Files)),
        None;
    ALLOW_ENDPOINTS: IpNet = parse::network,
        Some(ServeOption::new("allow-endpoints", "ALLOW_ENDPOINTS", "CIDR",
            "Networks or addresses that endpoints may have although they are not public, such as 127.0.0.1 \
             or 10.0.0.0/8. Plain http and any port are allowed there too. For development. May be given \
             more than once, or as a list with commas.")
            .form(NETWORKS)),
        Some(Variable::new("ALLOW_ENDPOINTS", NETWORKS, &[Deliver, Manage]).optional()
            .parameter("AllowEndpoints"));
    PUBLIC_URL: Url = parse::public_url,
        Some(ServeOption::new("public-url", "POSTHASTE_PUBLIC_URL", "URL",
            "Where endpoints reach this server, such as `https://hooks.example.com`. With it, an endpoint \
             that is asked whether it wants events (`endpoint.validation`) may also consent later, by \
             calling an address under it.")
            .more("No endpoint may be a publish URL under it.")),
        None;
    NOTICES_TOPIC: TopicName = |text| Ok(TopicName::parse(text)?),
        Some(ServeOption::new("notices-topic", "POSTHASTE_NOTICES_TOPIC", "NAME",
            "The topic that gets notices about the whole server: the back pressure changed, or a link is \
             down or up again.")),
        Some(Variable::new("NOTICES_TOPIC", ValueForm::Text("the name of a topic"),
            &[Wake, Monitor, Manage])
            .optional().parameter("NoticesTopic"));
    SHUTDOWN_DELAY: Duration = |text| Ok(parse_duration(text)?),
        Some(ServeOption::new("shutdown-delay", "POSTHASTE_SHUTDOWN_DELAY", "DURATION",
            "How long the server goes on as before after SIGTERM, SIGINT or SIGHUP, while `/readyz` answers \
             503, so that a load balancer stops sending requests to it. Then the orderly end begins.")
            .default("PT0S")),
        None;
    DRAIN_TIMEOUT: Duration = |text| Ok(parse_duration(text)?),
        Some(ServeOption::new("drain-timeout", "POSTHASTE_DRAIN_TIMEOUT", "DURATION",
            "How long an orderly end (SIGTERM, SIGINT or SIGHUP) waits for requests and deliveries that are \
             under way. A second signal ends the server at once.")
            .default("PT60S")),
        None;
    REQUESTS_PER_LINK_START: u16 = parse_value,
        Some(ServeOption::new("requests-per-link-start", "POSTHASTE_REQUESTS_PER_LINK_START", "NUMBER",
            "Requests that one subscription has open at once while few wait for it.")
            .under(DELIVERY)
            .form(COUNT).default("10").more("Not more than the most.")),
        Some(Variable::new("REQUESTS_PER_LINK_START", LAMBDA_REQUESTS, &[Deliver])
            .default("10").parameter("RequestsPerLinkStart"));
    WAITING_PER_CONNECTION: u16 = parse_value,
        Some(ServeOption::new("waiting-per-connection", "POSTHASTE_WAITING_PER_CONNECTION", "NUMBER",
            "For every NUMBER of requests that wait for one subscription, it has one more open at once, up to \
             three quarters of the most.")
            .under(DELIVERY)
            .form(COUNT).default("20")),
        Some(Variable::new("WAITING_PER_CONNECTION", LAMBDA_WAITING, &[Deliver])
            .default("20").parameter("WaitingPerConnection"));
    REQUESTS_PER_LINK_MAX: u16 = parse_value,
        Some(ServeOption::new("requests-per-link-max", "POSTHASTE_REQUESTS_PER_LINK_MAX", "NUMBER",
            "Most requests that are open at once to one scheme, host and port, however many wait.")
            .under(DELIVERY)
            .form(COUNT).default("64")
            .more("A quarter of them is kept for subscriptions that have none open.")),
        Some(Variable::new("REQUESTS_PER_LINK_MAX", LAMBDA_REQUESTS, &[Deliver])
            .default("64").parameter("RequestsPerLinkMax"));
    LINK_SETTINGS_FILE: PathBuf = parse_value,
        Some(ServeOption::new("link-settings", "POSTHASTE_LINK_SETTINGS", "FILE",
            "A YAML file with settings of failing endpoints. docs/src/reference/link-settings.md lists \
             its keys.")
            .under(DELIVERY)
            .form(ValueForm::File)),
        None;
    EXTRA_CA: PathBuf = parse_value,
        Some(ServeOption::new("extra-ca", "POSTHASTE_EXTRA_CA", "FILE",
            "A file with root certificates for endpoints, beside those of the system: PEM, or one in DER. It is \
             read whole or refused.")
            .under(DELIVERY)
            .form(ValueForm::File)),
        None;
    DNS_SERVER: SocketAddr = |text| Ok(parse_dns_server(text)?),
        Some(ServeOption::new("dns-server", "POSTHASTE_DNS_SERVER", "ADDRESS",
            "The only name server for endpoints' host names, such as 10.0.0.2:53. The hosts file is not read \
             then [default: as the system does].")
            .under(DELIVERY)),
        Some(Variable::new("DNS_SERVER", ValueForm::Text("an address and port such as 10.0.0.2:53"),
            &[Deliver, Manage])
            .optional().parameter("DnsServer"));
    WEBHOOK_ORIGIN: HeaderValue = |text| Ok(origin::parse(text)?),
        Some(ServeOption::new("webhook-origin", "WEBHOOK_ORIGIN", "NAME",
            "The host name that requests to endpoints carry as `WebHook-Request-Origin`, and to which \
             endpoints consent [default: the public URL's, else posthaste].")
            .under(DELIVERY)),
        Some(Variable::new("WEBHOOK_ORIGIN", ValueForm::Text("a host name such as hooks.example.com"),
            &[Deliver, Manage])
            .optional().parameter("WebhookOrigin"));
    SENDER_HEADERS: SenderHeaders = parse::sender_headers,
        Some(ServeOption::new("sender-headers", "SENDER_HEADERS", "JSON",
            "Which headers of requests say who sends them, and by which names, such as \
             {\"prefix\":\"acme\",\"omit\":[\"eventGrid\"]}. A topic may have its own [default: all of them].")
            .under(DELIVERY)),
        Some(Variable::new("SENDER_HEADERS", ValueForm::Json, &[Deliver, Manage])
            .optional().parameter("SenderHeaders"));
    DEAD_LETTER_RETENTION: Duration = parse::dead_letter_retention,
        Some(ServeOption::new("dead-letter-retention", "POSTHASTE_DEAD_LETTER_RETENTION", "DURATION",
            "How long dead letters are kept: at least an hour. They are looked at once an hour \
             [default: forever].")
            .under(DELIVERY)),
        None;
    DISABLED_KEPT_MAX: DiskShare = parse::disk_share,
        Some(ServeOption::new("disabled-kept-max", "POSTHASTE_DISABLED_KEPT_MAX", "SIZE",
            "The most that dead letters of events take which disabled subscriptions miss: a share of the \
             disk of the data folder such as 10%, or a size such as 20GB. What is missed beyond is skipped.")
            .under(DELIVERY).default("10%")),
        None;
    DELIVERY_LOG: DeliveryLogMode = parse::delivery_log_mode,
        Some(ServeOption::new("delivery-log", "POSTHASTE_DELIVERY_LOG", "MODE",
            "How much the delivery log keeps of topics that do not set `deliveryLog`.")
            .under(DELIVERY_LOG_HEADING)
            .form(DELIVERY_LOG_MODES).default("payloads")),
        Some(Variable::new("DELIVERY_LOG", DELIVERY_LOG_MODES, &[Publish, Deliver, Deadletter, Manage])
            .default("payloads").parameter("DeliveryLog"));
    DELIVERY_LOG_RETENTION: Duration = parse::log_retention,
        Some(ServeOption::new("delivery-log-retention", "POSTHASTE_DELIVERY_LOG_RETENTION", "DURATION",
            "How long the delivery log keeps records: at least an hour. Whole hours go at a time.")
            .under(DELIVERY_LOG_HEADING).default("P7D")),
        None;
    DELIVERY_LOG_MAX: DiskShare = parse::log_size,
        Some(ServeOption::new("delivery-log-max", "POSTHASTE_DELIVERY_LOG_MAX", "SIZE",
            "The most that the delivery log takes: a share of its disk such as 5%, or a size such as 20GB. \
             The oldest hours go first, and earlier where the disk fills up.")
            .under(DELIVERY_LOG_HEADING).default("5%")),
        None;
    PRESSURE_PROFILE: PressureSettings = parse::pressure_profile,
        Some(ServeOption::new("pressure-profile", "POSTHASTE_PRESSURE_PROFILE", "PROFILE",
            "The thresholds from which producers are slowed and refused.")
            .under(BACK_PRESSURE)
            .form(PRESSURE_PROFILES).default("scaled")),
        Some(Variable::new("PRESSURE_PROFILE", PRESSURE_PROFILES, &[Monitor])
            .default("scaled").parameter("PressureProfile"));
    PRESSURE_SETTINGS_FILE: PathBuf = parse_value,
        Some(ServeOption::new("pressure-settings", "POSTHASTE_PRESSURE_SETTINGS", "FILE",
            "A YAML file with settings of back pressure under Exchange's names, over the profile's \
             defaults. docs/src/reference/pressure-settings.md lists its keys.")
            .under(BACK_PRESSURE)
            .form(ValueForm::File)),
        None;
    SUBSCRIPTION_DISK_PERCENT: u64 = parse_value,
        Some(ServeOption::new("subscription-disk-percent", "POSTHASTE_SUBSCRIPTION_DISK_PERCENT", "PERCENT",
            "The share of the free disk above which the waiting messages of one subscription slow its \
             topic's producers, however well the topic's other subscriptions are.")
            .under(BACK_PRESSURE)
            .form(ValueForm::Number(1, 100)).default("10")),
        None;
    CONNECTIONS_MAX: u32 = parse_value,
        Some(ServeOption::new("connections-max", "POSTHASTE_CONNECTIONS_MAX", "NUMBER",
            "Most requests that are answered at once. Beyond them health, metrics and requests with the \
             admin key are still answered, and all others get 503.")
            .under(CONNECTIONS)
            .form(ValueForm::Number(1, u32::MAX as i64)).default("4096")
            .more("Fewer where the limit of open files is low: a quarter of it and 64 are kept free.")),
        None;
    TRUSTED_PROXIES: IpNet = parse::network,
        Some(ServeOption::new("trusted-proxies", "POSTHASTE_TRUSTED_PROXIES", "CIDR",
            "Addresses of proxies in front of this server, such as 10.0.0.0/8. Any other address may have \
             only few connections without a request. May be given more than once, or as a \
             list with commas.")
            .under(CONNECTIONS)
            .form(NETWORKS).more("These few are 64.")),
        None;
    METRICS_BY: String = parse_value,
        Some(ServeOption::new("metrics-by", "POSTHASTE_METRICS_BY", "CHOICE",
            "How finely `/metrics` tells events apart [default: by topic while there are up to 200; of more, \
             100 keep series of their own].")
            .under(METRICS_HEADING)
            .form(SERIES_PER)
            .more("All others share the series of `_other`, so that sums stay right. With `topic` and \
                   `subscription` up to 20,000 series are of their own.")),
        Some(Variable::new("METRICS_BY", METRICS_PER, &Function::ALL).default("stack")
            .parameter("MetricsBy"));
    OTLP_ENDPOINT: Url = parse::web_url,
        Some(ServeOption::new("otlp-endpoint", "OTEL_EXPORTER_OTLP_ENDPOINT", "URL",
            "The collector that gets traces and metrics by OTLP over HTTP, such as http://127.0.0.1:4318 \
             [default: none].")
            .under(TRACES)),
        Some(Variable::new("OTEL_EXPORTER_OTLP_ENDPOINT", WEB_URL, &Function::ALL).optional()
            .parameter("OtlpEndpoint"));
    OTLP_HEADERS: HeaderMap = parse::otlp_headers,
        Some(ServeOption::new("otlp-headers", "OTEL_EXPORTER_OTLP_HEADERS", "HEADERS",
            "Headers for the collector, as name=value with commas in between.")
            .under(TRACES)
            .form(OTLP_HEADERS_FORM)
            .more("Characters of a value that have a meaning there are percent-encoded.")),
        Some(Variable::new("OTEL_EXPORTER_OTLP_HEADERS", OTLP_HEADERS_FORM, &Function::ALL).optional()
            .parameter("OtlpHeaders"));
    OTLP_RESOURCE: ResourceAttributes = parse::otlp_resource,
        Some(ServeOption::new("otlp-resource", "OTEL_RESOURCE_ATTRIBUTES", "ATTRIBUTES",
            "Attributes of all traces and metrics, such as deployment.environment.name=production,region=eu.")
            .under(TRACES)),
        Some(Variable::new("OTEL_RESOURCE_ATTRIBUTES", OTLP_RESOURCE_FORM, &Function::ALL).optional()
            .parameter("OtlpResource"));
    TRACE_RATIO: SampleRatio = parse_value,
        Some(ServeOption::new("trace-ratio", "OTEL_TRACES_SAMPLER_ARG", "SHARE",
            "The share of the events without a `traceparent` that are traced, from 0 to 1. The others say it \
             themselves.")
            .under(TRACES)
            .default("1")),
        Some(Variable::new("OTEL_TRACES_SAMPLER_ARG", ValueForm::Text("a number from 0 to 1"), &Function::ALL)
            .default("1").parameter("TraceRatio"));
    TRACE_ENDPOINTS: bool = parse::on_off,
        Some(ServeOption::new("trace-endpoints", "POSTHASTE_TRACE_ENDPOINTS", "CHOICE",
            "Whether requests with one event carry the span of their attempt as `traceparent`, in place of \
             the event's own.")
            .under(TRACES)
            .form(ON_OFF)
            .default("off")),
        Some(Variable::new("TRACE_ENDPOINTS", ON_OFF, &Function::ALL).default("off").parameter("TraceEndpoints"));
    LOG: LogFormat = parse::log_format,
        Some(ServeOption::new("log", "POSTHASTE_LOG_FORMAT", "FORMAT",
            "How the log is written, on standard error [default: pretty on a terminal, else json].")
            .under(THE_LOG)
            .form(LOG_FORMATS)
            .more("A line that cannot be written is lost and counted (`posthaste_log_lines_lost_total`).")),
        None;
    LOG_FILTER: String = parse_value,
        Some(ServeOption::new("log-filter", "POSTHASTE_LOG", "FILTER",
            "What is logged, such as `debug` or `info,posthaste_deliver=debug`.")
            .under(THE_LOG)
            .default("info")),
        None;

    ADMIN_KEY_SHA256: KeyDigest = parse::key_digest, None,
        Some(Variable::new("ADMIN_KEY_SHA256", KEY_DIGEST, &[Manage]).parameter("AdminKeySha256"));
    STATE_BUCKET: String = parse::bucket_name, None,
        Some(Variable::new("STATE_BUCKET", BUCKET, &Function::ALL));
    DEAD_LETTER_BUCKET: String = parse::bucket_name, None,
        Some(Variable::new("DEAD_LETTER_BUCKET", BUCKET, &[Wake, Deadletter, Manage]));
    LOG_BUCKET: String = parse::bucket_name, None,
        Some(Variable::new("LOG_BUCKET", BUCKET, &[Wake, Manage, Record]));
    STACK_ID: String = parse_value, None,
        Some(Variable::new("STACK_ID", ValueForm::Text("the id of a stack"), &[Monitor]).optional());
    DELIVERIES_QUEUE_URL: String = parse::queue_url, None,
        Some(Variable::new("DELIVERIES_QUEUE_URL", QUEUE_URL,
            &[Publish, Deliver, Wake, Deadletter, Monitor, Manage, Record]));
    SLOW_DELIVERIES_QUEUE_URL: String = parse::queue_url, None,
        Some(Variable::new("SLOW_DELIVERIES_QUEUE_URL", QUEUE_URL,
            &[Publish, Deliver, Wake, Deadletter, Monitor, Manage, Record]).optional());
    DEADLETTERS_QUEUE_URL: String = parse::queue_url, None,
        Some(Variable::new("DEADLETTERS_QUEUE_URL", QUEUE_URL, &[Deliver, Deadletter, Monitor, Record]));
    REDRIVE_QUEUE_URL: String = parse::queue_url, None,
        Some(Variable::new("REDRIVE_QUEUE_URL", QUEUE_URL, &[Deadletter, Record]));
    RECORDS_QUEUE_URL: String = parse::queue_url, None,
        Some(Variable::new("RECORDS_QUEUE_URL", QUEUE_URL, &[Publish, Deliver, Deadletter, Record]));
    PUBLISH_URL: Url = parse::web_url, None,
        Some(Variable::new("PUBLISH_URL", WEB_URL, &[Manage]).optional());
    MANAGE_URL: Url = parse::web_url, None,
        Some(Variable::new("MANAGE_URL", WEB_URL, &[Manage]).optional().parameter("ManagePublicUrl"));
    DASHBOARD_URL: Url = parse::web_url, None,
        Some(Variable::new("DASHBOARD_URL", WEB_URL, &[Manage]).optional());
    REGISTRY_MAX_AGE_SECONDS: u16 = parse_value, None,
        Some(Variable::new("REGISTRY_MAX_AGE_SECONDS", MAX_AGE_SECS, &[Publish, Deliver, Deadletter])
            .default("5").parameter("RegistryMaxAge"));
    DISABLED_KEPT_BYTES_MAX: u64 = parse::size_bytes, None,
        Some(Variable::new("DISABLED_KEPT_BYTES_MAX", ValueForm::Text("a size such as 20GB"), &[Deadletter])
            .default("100GB").parameter("DisabledKeptMax"));
    DELIVERY_LOG_RETENTION_DAYS: u16 = parse_value, None,
        Some(Variable::new("DELIVERY_LOG_RETENTION_DAYS", ValueForm::Number(1, 3650), &[Manage])
            .default("7").parameter("DeliveryLogRetentionDays"));
    DELIVER_BATCH_SIZE: u16 = parse_value, None,
        Some(Variable::new("DELIVER_BATCH_SIZE", BATCH_SIZE, &Function::ALL).default("10")
            .parameter("DeliverBatchSize"));
    REQUESTS_MAX: u16 = parse_value, None,
        Some(Variable::new("REQUESTS_MAX", LAMBDA_REQUESTS, &[Deliver]).default("256")
            .parameter("RequestsMax"));
    LINK_SETTINGS: LinkSettings = parse::json_settings, None,
        Some(Variable::new("LINK_SETTINGS", ValueForm::Json, &[Deliver, Wake, Manage, Record]).optional()
            .parameter("LinkSettings"));
    PRESSURE_SETTINGS: ExchangeSettings = parse::json_settings, None,
        Some(Variable::new("PRESSURE_SETTINGS", ValueForm::Json, &[Monitor]).optional()
            .parameter("PressureSettings"));
    DELIVER_SLOW: SlowLaneMode = parse::slow_lane, None,
        Some(Variable::new("DELIVER_SLOW", SLOW_LANES, &[Deliver]).default("on").parameter("DeliverSlow"));
    SLOW_AFTER_SECONDS: u16 = parse_value, None,
        Some(Variable::new("SLOW_AFTER_SECONDS", SLOW_AFTER_SECS, &[Deliver])
            .default("2").parameter("SlowAfter"));
    DELIVER_SLOW_MAXIMUM_CONCURRENCY: u16 = parse_value, None,
        Some(Variable::new("DELIVER_SLOW_MAXIMUM_CONCURRENCY", ValueForm::Number(2, 1000), &[Monitor])
            .default("10").parameter("DeliverSlowMaximumConcurrency"));
    DELIVER_MAXIMUM_CONCURRENCY: u16 = parse_value, None,
        Some(Variable::new("DELIVER_MAXIMUM_CONCURRENCY", ValueForm::Number(2, 1000), &[Monitor])
            .default("50").parameter("DeliverMaximumConcurrency"));
    PRESSURE_INTERVAL_SECONDS: u16 = parse_value, None,
        Some(Variable::new("PRESSURE_INTERVAL_SECONDS", INTERVAL_SECS, &[Monitor])
            .optional().parameter("PressureInterval"));
    TARPIT: TarpitMode = parse::tarpit, None,
        Some(Variable::new("TARPIT", TARPITS, &[Publish]).default("advise").parameter("Tarpit"));
    LOG_LEVEL: LevelFilter = parse_value, None,
        Some(Variable::new("LOG_LEVEL", LOG_LEVELS, &Function::ALL).default("info").parameter("LogLevel"));
    METRICS_NAMESPACE: String = parse::metrics_namespace, None,
        Some(Variable::new("METRICS_NAMESPACE", NAMESPACE, &Function::ALL).default("posthaste"));
}

/// The settings of publish: `base`, changed by what is given.
pub fn publish_settings(values: &mut impl SettingValues, base: PublishSettings) -> PublishSettings {
    PublishSettings {
        tarpit: values.get(&TARPIT).unwrap_or(base.tarpit),
        delivery_log: values.get(&DELIVERY_LOG).unwrap_or(base.delivery_log),
        ..base
    }
}

/// The settings of deliver: `base`, changed by what is given.
pub fn deliver_settings(values: &mut impl SettingValues, base: DeliverSettings) -> DeliverSettings {
    DeliverSettings {
        requests_max: count_value(values, &REQUESTS_MAX, base.requests_max),
        requests_per_link_start: count_value(
            values,
            &REQUESTS_PER_LINK_START,
            base.requests_per_link_start,
        ),
        requests_per_link_max: count_value(
            values,
            &REQUESTS_PER_LINK_MAX,
            base.requests_per_link_max,
        ),
        waiting_per_connection: count_value(
            values,
            &WAITING_PER_CONNECTION,
            base.waiting_per_connection,
        ),
        origin: values.get(&WEBHOOK_ORIGIN).unwrap_or(base.origin),
        sender_headers: values.get(&SENDER_HEADERS).unwrap_or(base.sender_headers),
        delivery_log: values.get(&DELIVERY_LOG).unwrap_or(base.delivery_log),
        slow_lane: values.get(&DELIVER_SLOW).unwrap_or(base.slow_lane),
        slow_after: values
            .get(&SLOW_AFTER_SECONDS)
            .map_or(base.slow_after, |secs| Duration::from_secs(secs.into())),
        ..base
    }
}

fn count_value(
    values: &mut impl SettingValues,
    setting: &'static Setting<u16>,
    default: usize,
) -> usize {
    values.get(setting).map_or(default, usize::from)
}

/// The settings of record: `base`, changed by what is given.
pub fn record_settings(values: &mut impl SettingValues, base: RecordSettings) -> RecordSettings {
    RecordSettings {
        retention: values.get(&DELIVERY_LOG_RETENTION).or(base.retention),
        size_max: values.get(&DELIVERY_LOG_MAX).or(base.size_max),
        ..base
    }
}

/// The settings of wake.
pub fn wake_settings(values: &mut impl SettingValues) -> WakeSettings {
    WakeSettings {
        notices_topic: values.get(&NOTICES_TOPIC),
        dead_letter_retention: values.get(&DEAD_LETTER_RETENTION),
    }
}

/// The settings of monitor, with those of back pressure, which each host reads in its own way.
pub fn monitor_settings(
    values: &mut impl SettingValues,
    pressure: PressureSettings,
) -> MonitorSettings {
    let subscription_disk_percent = values
        .get(&SUBSCRIPTION_DISK_PERCENT)
        .unwrap_or(pressure.subscription_disk_percent);
    // Only on AWS: elsewhere there is a disk.
    let invocations = values.get(&DELIVER_MAXIMUM_CONCURRENCY);
    let places = invocations.zip(values.get(&DELIVER_BATCH_SIZE));
    let in_flight_max = places.map_or(SQS_IN_FLIGHT_MAX, |(invocations, batch)| {
        (u64::from(invocations) * u64::from(batch)).min(SQS_IN_FLIGHT_MAX)
    });
    MonitorSettings {
        pressure: PressureSettings {
            subscription_disk_percent,
            in_flight_max,
            ..pressure
        },
        notices_topic: values.get(&NOTICES_TOPIC),
        slow_places: values
            .get(&DELIVER_SLOW_MAXIMUM_CONCURRENCY)
            .map_or(0, |invocations| u64::from(invocations) * SLOW_BATCH_SIZE),
    }
}

/// The settings of manage: `base`, changed by what is given.
pub fn manage_settings(values: &mut impl SettingValues, base: ManageSettings) -> ManageSettings {
    ManageSettings {
        publish_url: values.get(&PUBLISH_URL),
        // Each host has a setting of its own for the public URL.
        public_url: values.get(&PUBLIC_URL).or_else(|| values.get(&MANAGE_URL)),
        origin: values.get(&WEBHOOK_ORIGIN).unwrap_or(base.origin),
        sender_headers: values.get(&SENDER_HEADERS).unwrap_or(base.sender_headers),
        notices_topic: values.get(&NOTICES_TOPIC),
        log: log_settings(values, &base.log),
    }
}

/// What manage knows about the delivery log. On AWS the days are those of the bucket's lifecycle.
fn log_settings(values: &mut impl SettingValues, base: &LogSettings) -> LogSettings {
    let days = values.get(&DELIVERY_LOG_RETENTION_DAYS);
    LogSettings {
        mode: values.get(&DELIVERY_LOG).unwrap_or(base.mode),
        retention: days
            .map(|days| Duration::from_hours(24) * u32::from(days))
            .or(base.retention),
        ..base.clone()
    }
}

/// The way of traces and metrics to a collector; `None` without one.
pub fn export_settings(values: &mut impl SettingValues) -> Option<ExportSettings> {
    // All of them are looked at, so that one that is wrong is refused in any case.
    let endpoint = values.get(&OTLP_ENDPOINT);
    let headers = values.get(&OTLP_HEADERS).unwrap_or_default();
    let resource = values.get(&OTLP_RESOURCE).unwrap_or_default();
    let ratio = values.get(&TRACE_RATIO).unwrap_or(SampleRatio::ALL);
    let tells_endpoints = values.get(&TRACE_ENDPOINTS).unwrap_or_default();
    Some(ExportSettings {
        collector: CollectorSettings {
            endpoint: endpoint?,
            headers,
            resource,
        },
        ratio,
        tells_endpoints,
    })
}

/// The settings of the webhook client: `base`, changed by what is given.
pub fn client_settings(values: &mut impl SettingValues, base: ClientSettings) -> ClientSettings {
    ClientSettings {
        addresses: AddressPolicy {
            allowed: values.get_list(&ALLOW_ENDPOINTS),
            ..base.addresses
        },
        extra_root_file: values.get(&EXTRA_CA),
        dns_server: values.get(&DNS_SERVER),
        ..base
    }
}
