//! The process around a server: its log, its signals, its end.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use posthaste_cli::cli::{GlobalOptions, ServeArgs};
use posthaste_cli::commands::{ADMIN_KEY_FILE, CheckedFile, check_files};
use posthaste_cli::error::CommandError;
use posthaste_cli::signals::SignalListener;
use posthaste_cli::threads::server_runtime;
use posthaste_core::model::Secret;
use posthaste_local::EmbeddedStore;
use posthaste_ports::Clock;
use posthaste_services::timeout;
use posthaste_settings::{SettingValues, table};
use posthaste_system::SystemClock;

use super::app::RunningServer;
use super::error::ServeError;
use super::left::{InFlight, LeftBehind};
use super::readiness::Readiness;
use super::settings::ServeSettings;
use super::{config, descriptors, huge_pages, links, log, pressure};

/// Longest wait, once all is durable, for work on other threads: a merge of the delivery log, which
/// leaves nothing behind if it is cut short.
const BLOCKING_AT_END_MAX: Duration = Duration::from_secs(1);

/// Longest wait for the count of what is left, where the end is to be at once.
const COUNT_AT_END_MAX: Duration = Duration::from_secs(1);

/// Serves until a signal comes.
pub fn run(global: &GlobalOptions, mut arguments: &ServeArgs) -> Result<(), CommandError> {
    // A typo in a file is found before the data folder is touched.
    let files = check_files(&arguments.get_list(&table::CONFIG))?;
    let profile = arguments.get(&table::PRESSURE_PROFILE).unwrap_or_default();
    let pressure = pressure::read_settings(
        profile,
        arguments.get(&table::PRESSURE_SETTINGS_FILE).as_deref(),
    )?;
    let links = links::read_settings(arguments.get(&table::LINK_SETTINGS_FILE).as_deref())?;
    let mut settings = ServeSettings::from_arguments(global, arguments, pressure, links)?;
    log::start(
        arguments.get(&table::LOG),
        &arguments.get(&table::LOG_FILTER).unwrap_or_default(),
    );
    huge_pages::turn_off();
    let files_max = descriptors::raise_limit();
    descriptors::divide(settings.connections.requests_max, files_max).limit_settings(&mut settings);
    let runtime = server_runtime().map_err(ServeError::Process)?;
    let ended = runtime.block_on(serve_until_signal(&settings, files));
    runtime.shutdown_timeout(BLOCKING_AT_END_MAX);
    ended?;
    Ok(())
}

async fn serve_until_signal(
    settings: &ServeSettings,
    files: Vec<CheckedFile>,
) -> Result<(), ServeError> {
    let mut signals = SignalListener::listen_with_hangup().map_err(ServeError::Process)?;
    let mut app = RunningServer::start(settings).await?;
    let url = app.publish_url();
    let manage_url = app.manage_url();
    let metrics_url = app.metrics_url();
    tracing::info!(
        %url, %manage_url, %metrics_url, data_dir = %absolute_path(&settings.data_dir).display(), admin_key_from = %admin_key_from(settings),
        "listening on {url}"
    );
    let readiness = Arc::clone(app.readiness());
    let configured = apply_then_wait(
        &manage_url,
        app.admin_key().clone(),
        files,
        Arc::clone(&readiness),
    );
    let mut configured = std::pin::pin!(configured);
    let mut outcome = tokio::select! {
        failed = configured.as_mut() => Err(failed),
        failed = app.wait_for_failure() => Err(failed),
        _ = signals.next() => Ok(()),
    };
    readiness.mark_ending();
    let local = app.store();
    let in_flight = app.in_flight();
    let delay = settings.shutdown_delay;
    if outcome.is_ok() && !delay.is_zero() {
        tracing::info!(
            delay_s = delay.as_secs_f64(),
            "not ready any more, and answering until the drain; a second signal ends at once"
        );
        let began = SystemClock.monotonic();
        tokio::select! {
            () = SystemClock.sleep(delay) => {}
            failed = configured => outcome = Err(failed),
            failed = app.wait_for_failure() => outcome = Err(failed),
            code = signals.next() => end_at_once(&local, &in_flight, began, code).await,
        }
    }
    let timeout_s = settings.drain_timeout.as_secs_f64();
    tracing::info!(timeout_s, "draining; a second signal ends at once");
    let began = SystemClock.monotonic();
    tokio::select! {
        drained = app.drain(settings.drain_timeout) => outcome.and(drained),
        code = signals.next() => end_at_once(&local, &in_flight, began, code).await,
    }
}

/// Ends the process at the second signal. The log says what is left.
async fn end_at_once(
    local: &EmbeddedStore<SystemClock>,
    in_flight: &InFlight,
    began: Duration,
    exit_code: i32,
) -> ! {
    let cut = in_flight.cut_short_now();
    tracing::warn!(exit_code, "ended at once");
    let left = timeout(&SystemClock, COUNT_AT_END_MAX, LeftBehind::count(local)).await;
    if let Some(left) = left {
        left.log_left(cut, SystemClock.monotonic().saturating_sub(began));
    }
    log::flush();
    std::process::exit(exit_code)
}

/// The place of the admin key: its file, or the command line.
fn admin_key_from(settings: &ServeSettings) -> String {
    match settings.admin_key {
        Some(_) => "--key or POSTHASTE_KEY".to_owned(),
        None => absolute_path(&settings.data_dir.join(ADMIN_KEY_FILE))
            .display()
            .to_string(),
    }
}

/// The path from the root: the folder in which the server was started is not in the log.
fn absolute_path(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Applies the files and then waits for ever. Completes only if they cannot be applied.
async fn apply_then_wait(
    url: &str,
    admin_key: Secret,
    files: Vec<CheckedFile>,
    readiness: Arc<Readiness>,
) -> ServeError {
    match config::apply_files(url, admin_key, files).await {
        Ok(()) => {
            readiness.mark_ready();
            std::future::pending().await
        }
        Err(error) => error,
    }
}
