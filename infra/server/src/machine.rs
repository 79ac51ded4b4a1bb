//! Checks of `posthaste doctor` on this machine: the disk of the data folder, the open files, the
//! clock, and the way to endpoints.

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use posthaste_core::api::doctor::{
    CheckResult, CheckView, ConnectedEndpoint, EndpointFault, OpenFiles, disk_check,
    open_files_check,
};
use posthaste_core::model::{Link, Timestamp};
use posthaste_core::pressure::PressureSettings;
use posthaste_http::HyperWebhookClient;
use posthaste_ports::{InstallationExaminer, PendingCheck, PendingLook};
use posthaste_system::SystemClock;
use posthaste_system::probe::disk_usage;
use rustix::process::{Resource, getrlimit};
use tokio::task::spawn_blocking;

use super::machine_clock::ClockFloor;
use super::settings::ServeSettings;

/// The folder in which Linux shows the open files of a process.
const OPEN_FILES: &str = "/proc/self/fd";

/// The machine of a server.
pub(super) struct MachineExaminer {
    data_dir: PathBuf,
    pressure: PressureSettings,
    requests_max: usize,
    connections_max: usize,
    shown_time: ClockFloor,
    webhooks: HyperWebhookClient<SystemClock>,
}

impl MachineExaminer {
    /// The machine of a server with these settings, whose deliveries go out by `webhooks`.
    pub(super) fn new(
        settings: &ServeSettings,
        shown_time: ClockFloor,
        webhooks: HyperWebhookClient<SystemClock>,
    ) -> Arc<Self> {
        Arc::new(Self {
            data_dir: settings.data_dir.clone(),
            pressure: settings.monitor.pressure.clone(),
            requests_max: settings.connections.requests_max,
            connections_max: settings.client.connections_max,
            shown_time,
            webhooks,
        })
    }

    fn check_disk(&self) -> PendingCheck {
        let folder = self.data_dir.clone();
        let pressure = self.pressure.clone();
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        let of = folder.display().to_string();
        let look = {
            let of = of.clone();
            move || {
                let usage = disk_usage(&folder);
                let calm = usage.and_then(|usage| pressure.calm_disk_percent(usage));
                disk_check(&of, usage, calm)
            }
        };
        blocking_check("disk", of, look)
    }

    fn check_open_files(&self) -> PendingCheck {
        let of = format!("process {}", std::process::id());
        let requests_max = self.requests_max;
        let connections_max = self.connections_max;
        let look = {
            let of = of.clone();
            move || {
                // The look itself has the folder open.
                let now = fs::read_dir(OPEN_FILES).map(|files| files.count() as u64 - 1);
                let files = OpenFiles {
                    max: getrlimit(Resource::Nofile).current,
                    now: now.ok(),
                    requests_max,
                    connections_max,
                };
                open_files_check(&of, &files)
            }
        };
        blocking_check("open-files", of, look)
    }
}

/// A check on a thread of its own: a mount that hangs holds it up, and nothing else.
fn blocking_check(
    name: &'static str,
    of: String,
    look: impl FnOnce() -> CheckView + Send + 'static,
) -> PendingCheck {
    let whose = of.clone();
    let look = Box::pin(async move {
        spawn_blocking(look).await.unwrap_or_else(|error| {
            CheckView::passed(name, whose, error.to_string())
                .with_result(CheckResult::Unknown, "look at the server's log")
        })
    });
    PendingCheck { name, of, look }
}

impl InstallationExaminer for MachineExaminer {
    fn checks(&self) -> Vec<PendingCheck> {
        vec![self.check_disk(), self.check_open_files()]
    }

    fn clock_at_least(&self) -> Option<Timestamp> {
        Some(self.shown_time.now_at_least(&SystemClock))
    }

    fn check_link(
        &self,
        link: Link,
        timeout: Duration,
    ) -> PendingLook<Result<ConnectedEndpoint, EndpointFault>> {
        let webhooks = self.webhooks.clone();
        Box::pin(async move { webhooks.look_at(&link, timeout).await })
    }
}

impl fmt::Debug for MachineExaminer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine")
            .field("data_dir", &self.data_dir)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_http::ClientSettings;

    #[tokio::test]
    async fn machine_tells_of_its_disk_and_its_open_files() {
        let folder = tempfile::tempdir().unwrap();
        let settings = ServeSettings {
            data_dir: folder.path().to_owned(),
            ..ServeSettings::default()
        };
        let webhooks = HyperWebhookClient::new(ClientSettings::default(), SystemClock).unwrap();
        let shown_time = ClockFloor::begin(&SystemClock, None);
        let machine = MachineExaminer::new(&settings, shown_time, webhooks);
        let mut checks = Vec::new();
        for check in machine.checks() {
            let name = check.name;
            let of = check.of.clone();
            let view = check.look.await;
            assert_eq!((&*view.check, &view.of), (name, &of));
            checks.push(view);
        }
        let [disk, files] = &*checks else {
            panic!("{checks:?}")
        };
        assert_eq!(disk.of, folder.path().display().to_string());
        assert!(disk.found.contains(" % used, "), "{disk:?}");
        assert!(files.found.contains(" open, "), "{files:?}");
    }
}
