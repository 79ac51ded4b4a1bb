//! The state that the pages share, and their path.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use url::Url;

use crate::api::Api;
use crate::history::History;

/// The path of the console.
pub const PATH: &str = "/console";

/// Time between two refreshes of a live page where nothing else is said.
const REFRESH: Duration = Duration::from_secs(5);

/// The state that the pages share.
#[derive(Debug, Clone)]
pub struct Console {
    pub(crate) api: Api,
    /// The recent past, where somebody keeps it.
    pub(crate) history: Option<Arc<dyn History>>,
    /// The page that shows the metrics where nobody does.
    pub(crate) dashboard_url: Option<Url>,
    /// Time between two refreshes of a live page.
    pub(crate) refresh: Duration,
}

/// The pages, as handlers receive them.
pub(crate) type Pages = axum::extract::State<Arc<Console>>;

impl Console {
    /// A console over the management API, as a router that asks for no key: the console asks its
    /// visitors.
    pub fn new(api: Router) -> Self {
        Self {
            api: Api::new(api),
            history: None,
            dashboard_url: None,
            refresh: REFRESH,
        }
    }

    /// The same with charts of what this history keeps.
    #[must_use]
    pub fn with_history(self, history: Arc<dyn History>) -> Self {
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
