//! The settings of a server, read once.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use posthaste_cli::cli::{DATA_DIR_DEFAULT, GlobalOptions, ServeArgs};
use posthaste_cli::commands::data_dir;
use posthaste_core::circuit::HealthSettings;
use posthaste_core::model::size::DiskShare;
use posthaste_core::model::{
    DeliveryLogMode, MISSED_DISK_PERCENT_DEFAULT, Secret, SenderHeaders, origin,
};
use posthaste_core::pressure::PressureSettings;
use posthaste_core::trace::collector::ExportSettings;
use posthaste_deliver::DeliverSettings;
use posthaste_http::ClientSettings;
use posthaste_manage::{LogSettings, ManageSettings};
use posthaste_monitor::MonitorSettings;
use posthaste_publish::PublishSettings;
use posthaste_record::RecordSettings;
use posthaste_settings::{SettingValues, table};
use posthaste_wake::WakeSettings;

use super::admin_key;
use super::error::ServeError;
use super::http::limits::ConnectionLimits;
use super::metrics::SeriesBy;
use super::tls::TlsFiles;

/// The settings of a server.
#[derive(Debug, Clone)]
pub struct ServeSettings {
    /// Address to listen on; port 0 takes a free port.
    pub listen: SocketAddr,
    /// Address of the management API and the console; `None` where `listen` answers them too.
    pub manage_listen: Option<SocketAddr>,
    /// Address of the metrics; `None` where those above answer them too.
    pub metrics_listen: Option<SocketAddr>,
    /// The files of TLS; `None` where the addresses speak plain HTTP.
    pub tls: Option<TlsFiles>,
    /// The data folder.
    pub data_dir: PathBuf,
    /// The files that are applied before the server is ready.
    pub config_files: Vec<PathBuf>,
    /// The admin key that was given; `None` for the one of the data folder.
    pub admin_key: Option<Secret>,
    /// When endpoints that fail get no requests, and for how long.
    pub links: HealthSettings,
    /// Settings of the webhook client.
    pub client: ClientSettings,
    pub publish: PublishSettings,
    /// Settings of deliver; the origin is that of handshakes too.
    pub deliver: DeliverSettings,
    pub wake: WakeSettings,
    /// Settings of monitor: when producers are slowed and refused, and the topic for notices about
    /// it.
    pub monitor: MonitorSettings,
    pub manage: ManageSettings,
    /// Whether there is a console.
    pub console: bool,
    /// Settings of record: how long the delivery log is kept, and how much it takes.
    pub record: RecordSettings,
    /// The detail in which metrics are told apart.
    pub metrics_by: SeriesBy,
    /// The way of traces and metrics to a collector; `None` without one.
    pub export: Option<ExportSettings>,
    /// Bounds of connections.
    pub connections: ConnectionLimits,
    /// Most that dead letters take of what disabled subscriptions miss.
    pub missed_max: DiskShare,
    /// The time for which the server goes on as before after the signal to end.
    pub shutdown_delay: Duration,
    /// Longest time that a drain waits for work in progress.
    pub drain_timeout: Duration,
}

/// The longest time from an attempt until the delivery log has its record: record gathers for a
/// second, and writes.
const LOG_DELAY: Duration = Duration::from_secs(5);

impl Default for ServeSettings {
    /// The settings of a command line without options.
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            manage_listen: None,
            metrics_listen: None,
            tls: None,
            data_dir: PathBuf::from(DATA_DIR_DEFAULT),
            config_files: Vec::new(),
            admin_key: None,
            links: HealthSettings::default(),
            client: ClientSettings::default(),
            publish: PublishSettings::default(),
            deliver: DeliverSettings::default(),
            wake: WakeSettings::default(),
            monitor: MonitorSettings::default(),
            manage: ManageSettings {
                publish_url: None,
                public_url: None,
                origin: origin::DEFAULT,
                sender_headers: SenderHeaders::default(),
                notices_topic: None,
                log: LogSettings {
                    mode: DeliveryLogMode::default(),
                    retention: None,
                    delay: LOG_DELAY,
                    gaps: Vec::new(),
                },
            },
            console: true,
            record: RecordSettings::default(),
            metrics_by: SeriesBy::default(),
            export: None,
            connections: ConnectionLimits::default(),
            missed_max: DiskShare::Percent(MISSED_DISK_PERCENT_DEFAULT),
            shutdown_delay: Duration::ZERO,
            drain_timeout: Duration::from_mins(1),
        }
    }
}

impl ServeSettings {
    /// The settings of a command line, with those of back pressure and of links read from their
    /// files. Fails if the bounds of requests to one link contradict each other, or one of the files
    /// of TLS is given without the other.
    pub fn from_arguments(
        global: &GlobalOptions,
        mut arguments: &ServeArgs,
        pressure: PressureSettings,
        links: HealthSettings,
    ) -> Result<Self, ServeError> {
        let default = Self::default();
        let values = &mut arguments;
        let origin = origin::from_public_url(values.get(&table::PUBLIC_URL).as_ref());
        let deliver = DeliverSettings {
            origin: origin.clone(),
            ..default.deliver
        };
        let deliver = table::deliver_settings(values, deliver);
        deliver.check_link_bounds()?;
        let certificate = values.get(&table::TLS_CERT);
        let tls = TlsFiles::from_options(certificate, values.get(&table::TLS_KEY))?;
        let admin_key = values.get(&table::ADMIN_KEY);
        let admin_key = admin_key.map_or(Ok(None), |key: Secret| admin_key::check_given(&key))?;
        let requests_max = values
            .get(&table::CONNECTIONS_MAX)
            .and_then(|max| max.try_into().ok());
        Ok(Self {
            listen: values.get(&table::LISTEN).unwrap_or(default.listen),
            manage_listen: values.get(&table::MANAGE_LISTEN),
            metrics_listen: values.get(&table::METRICS_LISTEN),
            tls,
            data_dir: data_dir(global),
            config_files: values.get_list(&table::CONFIG),
            admin_key,
            links,
            client: table::client_settings(values, default.client),
            publish: table::publish_settings(values, default.publish),
            deliver,
            wake: table::wake_settings(values),
            monitor: table::monitor_settings(values, pressure),
            manage: table::manage_settings(
                values,
                ManageSettings {
                    origin,
                    ..default.manage
                },
            ),
            console: values.get(&table::CONSOLE).unwrap_or(default.console),
            record: table::record_settings(values, default.record),
            metrics_by: values
                .get(&table::METRICS_BY)
                .and_then(|by| SeriesBy::from_name(&by))
                .unwrap_or(default.metrics_by),
            export: table::export_settings(values),
            connections: ConnectionLimits {
                requests_max: requests_max.unwrap_or(default.connections.requests_max),
                trusted_proxies: values.get_list(&table::TRUSTED_PROXIES),
            },
            missed_max: values
                .get(&table::DISABLED_KEPT_MAX)
                .unwrap_or(default.missed_max),
            shutdown_delay: values
                .get(&table::SHUTDOWN_DELAY)
                .unwrap_or(default.shutdown_delay),
            drain_timeout: values
                .get(&table::DRAIN_TIMEOUT)
                .unwrap_or(default.drain_timeout),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        global: GlobalOptions,
        #[command(flatten)]
        serve: ServeArgs,
    }

    fn settings(options: &[&str]) -> Result<ServeSettings, String> {
        let line = Line::try_parse_from(["serve"].iter().chain(options))
            .map_err(|error| error.to_string())?;
        let pressure = PressureSettings::default();
        let links = HealthSettings::default();
        ServeSettings::from_arguments(&line.global, &line.serve, pressure, links)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_command_line_without_options_is_the_default() {
        let default = ServeSettings {
            data_dir: settings(&[]).unwrap().data_dir,
            ..ServeSettings::default()
        };
        assert_eq!(
            format!("{:?}", settings(&[])),
            format!("{:?}", Ok::<_, String>(default))
        );
    }

    #[test]
    fn lists_and_texts_of_the_command_line_are_taken() {
        let options = [
            "--allow-endpoints=127.0.0.0/8,fd00::/8",
            "--allow-endpoints=10.0.0.0/8",
            "--notices-topic=ops",
            "--delivery-log=attempts",
            "--dead-letter-retention=P30D",
            "--delivery-log-retention=P1D",
            "--delivery-log-max=20GB",
            "--public-url=https://hooks.example.com",
            "--connections-max=70000",
            "--metrics-by=subscription",
            "--shutdown-delay=PT15S",
            "--drain-timeout=PT5S",
        ];
        let settings = settings(&options).unwrap();
        let networks: Vec<_> = settings
            .client
            .addresses
            .allowed
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(networks, ["127.0.0.0/8", "fd00::/8", "10.0.0.0/8"]);
        assert_eq!(settings.monitor.notices_topic.unwrap().as_str(), "ops");
        assert_eq!(settings.wake.notices_topic.unwrap().as_str(), "ops");
        let modes = [settings.deliver.delivery_log, settings.manage.log.mode];
        assert_eq!(modes, [DeliveryLogMode::Attempts; 2]);
        assert_eq!(settings.record.retention, Some(Duration::from_hours(24)));
        let month = Duration::from_hours(30 * 24);
        assert_eq!(settings.wake.dead_letter_retention, Some(month));
        assert_eq!(settings.record.size_max, Some(DiskShare::Bytes(20 << 30)));
        assert_eq!(
            [settings.deliver.origin, settings.manage.origin],
            ["hooks.example.com"; 2]
        );
        assert_eq!(
            settings.manage.public_url.unwrap().as_str(),
            "https://hooks.example.com/"
        );
        assert_eq!(settings.connections.requests_max, 70_000);
        assert_eq!(settings.metrics_by, SeriesBy::Subscription);
        assert_eq!(settings.shutdown_delay, Duration::from_secs(15));
        assert_eq!(settings.drain_timeout, Duration::from_secs(5));
    }

    #[test]
    fn dead_letters_are_kept_for_an_hour_to_a_hundred_years() {
        for bad in ["PT59M", "P36501D", "0", "never"] {
            let message = settings(&[&format!("--dead-letter-retention={bad}")]).unwrap_err();
            assert!(message.contains("--dead-letter-retention"), "{message}");
        }
        assert!(settings(&["--dead-letter-retention=PT1H"]).is_ok());
        let forever = settings(&[]).unwrap().wake.dead_letter_retention;
        assert_eq!(forever, None);
    }

    #[test]
    fn metrics_are_told_apart_as_the_command_line_says() {
        for (word, by) in [
            ("total", SeriesBy::Total),
            ("topic", SeriesBy::Topic),
            ("subscription", SeriesBy::Subscription),
        ] {
            let given = settings(&[&format!("--metrics-by={word}")]).unwrap();
            assert_eq!(given.metrics_by, by, "{word}");
        }
        assert_eq!(settings(&[]).unwrap().metrics_by, SeriesBy::FewTopics);
        // That is the word on AWS.
        for bad in ["stack", "Topic", ""] {
            let message = settings(&[&format!("--metrics-by={bad}")]).unwrap_err();
            assert!(message.contains("--metrics-by"), "{message}");
        }
    }

    fn deliver(options: &[&str]) -> Result<[usize; 3], String> {
        let it = settings(options)?.deliver;
        Ok([
            it.requests_per_link_start,
            it.waiting_per_connection,
            it.requests_per_link_max,
        ])
    }

    /// Limits that are zero or contradict each other are refused by the name of the option.
    #[test]
    fn link_request_limits_come_from_the_command_line() {
        let default = DeliverSettings::default();
        let defaults = [
            default.requests_per_link_start,
            default.waiting_per_connection,
            default.requests_per_link_max,
        ];
        assert_eq!(deliver(&[]), Ok(defaults));
        let all = [
            "--requests-per-link-start=2",
            "--waiting-per-connection=3",
            "--requests-per-link-max=4",
        ];
        assert_eq!(deliver(&all), Ok([2, 3, 4]));
        let message = deliver(&["--requests-per-link-max=9"]).unwrap_err();
        assert!(
            message.starts_with("--requests-per-link-start: 10 requests"),
            "{message}"
        );
        for bad in [
            "--requests-per-link-start=0",
            "--waiting-per-connection=0",
            "--requests-per-link-max=0",
        ] {
            assert!(
                deliver(&[bad]).unwrap_err().contains(&bad[..bad.len() - 2]),
                "{bad}"
            );
        }
    }
}
