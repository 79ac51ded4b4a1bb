//! The console: its pages, who is signed in, and the history that it shows.

use std::sync::Arc;

use axum::Router;
use posthaste_console::VisitorAccess;
use posthaste_core::model::{KeyDigest, Secret};
use posthaste_local::StateStore;
use posthaste_manage::Manage;
use posthaste_system::{SystemClock, SystemEntropy};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::adapters::{EmbeddedPorts, SharedAdapters};
use super::history;
use super::metrics::MetricTotals;
use super::settings::ServeSettings;

/// The check of visitors, over the embedded store.
pub(super) type ConsoleAccess = VisitorAccess<StateStore, SystemClock, SystemEntropy>;

/// The console, wired.
pub(super) struct ServeConsole {
    pub(super) router: Router,
    pub(super) access: Arc<ConsoleAccess>,
    history: history::WiredHistory,
}

impl ServeConsole {
    /// A console over the management API. Nothing runs yet.
    pub(super) fn wire(
        settings: &ServeSettings,
        manage: &Arc<Manage<EmbeddedPorts>>,
        admin_key: &Secret,
        adapters: &SharedAdapters<'_>,
        totals: Arc<MetricTotals>,
    ) -> Self {
        let key = KeyDigest::for_key(admin_key.expose());
        let state = adapters.local.state_store();
        let access =
            VisitorAccess::new(state, SystemClock, SystemEntropy, key).slowing_wrong_keys();
        let history = history::WiredHistory::wire(settings, adapters, totals);
        let api = posthaste_manage::unguarded_router(Arc::clone(manage));
        let console = posthaste_console::ConsoleState::new(api).with_history(history.steps());
        let access = Arc::new(access);
        Self {
            router: posthaste_console::router(Arc::clone(&access), console),
            access,
            history,
        }
    }

    /// Starts what keeps the history.
    pub(super) fn spawn(&self, tasks: &mut JoinSet<()>, stop: &CancellationToken) {
        self.history.spawn(tasks, stop);
    }
}
