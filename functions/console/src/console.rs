//! The state that the pages share, and their path.

use std::convert::Infallible;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use posthaste_core::api::AuditCaller;
use url::Url;

use crate::api::ManageApi;
use crate::history::InstallationHistory;

/// The path of the console.
pub const PATH: &str = "/console";

/// Time between two refreshes of a live page unless the program sets another.
const REFRESH: Duration = Duration::from_secs(5);

/// Routes of pages.
pub(crate) type PageRoutes = Router<Arc<ConsoleState>>;

/// The state that the pages share.
#[derive(Debug, Clone)]
pub struct ConsoleState {
    pub(crate) api: ManageApi,
    /// The recent past, if this installation keeps one.
    pub(crate) history: Option<Arc<dyn InstallationHistory>>,
    /// The page that shows the metrics where no history is kept.
    pub(crate) dashboard_url: Option<Url>,
    /// Time between two refreshes of a live page.
    pub(crate) refresh: Duration,
}

/// The state as a handler receives it: its API knows the visitor.
pub(crate) struct PageContext(ConsoleState);

impl Deref for PageContext {
    type Target = ConsoleState;

    fn deref(&self) -> &ConsoleState {
        &self.0
    }
}

impl FromRequestParts<Arc<ConsoleState>> for PageContext {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        console: &Arc<ConsoleState>,
    ) -> Result<Self, Infallible> {
        let console = ConsoleState::clone(console);
        let caller = parts.extensions.get::<AuditCaller>().cloned();
        Ok(Self(ConsoleState {
            api: console.api.for_caller(caller.unwrap_or_default()),
            ..console
        }))
    }
}

impl ConsoleState {
    /// A console over the management API, which comes as a router without keys: the console itself
    /// checks its visitors.
    pub fn new(api: Router) -> Self {
        Self {
            api: ManageApi::new(api),
            history: None,
            dashboard_url: None,
            refresh: REFRESH,
        }
    }

    /// The same with charts of what this history keeps.
    #[must_use]
    pub fn with_history(self, history: Arc<dyn InstallationHistory>) -> Self {
        Self {
            history: Some(history),
            ..self
        }
    }

    /// The same with a link to a page that shows the metrics, such as CloudWatch's dashboard.
    #[must_use]
    pub fn with_dashboard(self, url: Option<Url>) -> Self {
        Self {
            dashboard_url: url,
            ..self
        }
    }

    /// The same where live pages refresh once in this time, in whole seconds. A request costs
    /// something on AWS.
    #[must_use]
    pub fn with_refresh(self, refresh: Duration) -> Self {
        Self { refresh, ..self }
    }
}
