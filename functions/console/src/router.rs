//! The routes of the console, under [`PATH`].

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::response::Redirect;
use axum::routing::{get, post};
use posthaste_ports::{Clock, Entropy, ObjectStore};
use url::Url;

use crate::access::{self, Access};
use crate::api::Api;
use crate::assets;
use crate::history::History;
use crate::pages::{links, not_found, overview, pressure};

/// The path of the console.
pub const PATH: &str = "/console";

/// What the pages need.
#[derive(Debug, Clone)]
pub struct Console {
    pub(crate) api: Api,
    /// The recent past, where somebody keeps it.
    pub(crate) history: Option<Arc<dyn History>>,
    /// The page that shows the metrics where nobody does.
    pub(crate) dashboard_url: Option<Url>,
}

/// The pages, as handlers receive them.
pub(crate) type Pages = axum::extract::State<Arc<Console>>;

impl Console {
    /// A console over the management API, as a router that asks for no key: the console asks its visitors.
    pub fn new(api: Router) -> Self {
        Self { api: Api::new(api), history: None, dashboard_url: None }
    }

    /// The same with charts of what this history keeps.
    #[must_use]
    pub fn with_history(self, history: Arc<dyn History>) -> Self {
        Self { history: Some(history), ..self }
    }

    /// The same with a link to a page that shows the metrics, such as CloudWatch's dashboard.
    #[must_use]
    pub fn with_dashboard(self, url: Option<Url>) -> Self {
        Self { dashboard_url: url, ..self }
    }
}

/// The routes of the console, for visitors that `access` lets in.
pub fn router<S, C, E>(access: Access<S, C, E>, console: Console) -> Router
where
    S: ObjectStore + fmt::Debug + 'static,
    C: Clock,
    E: Entropy,
{
    let access = Arc::new(access);
    let sign_in = get(access::show_sign_in).post(access::sign_in::<S, C, E>);
    let doors = Router::new()
        .route("/sign-in", sign_in)
        .route("/sign-out", post(access::sign_out))
        .with_state(Arc::clone(&access));
    let pages = Router::new()
        .route("/", get(overview::overview))
        .route("/links", get(links::links))
        .route("/pressure", get(pressure::pressure))
        .fallback(not_found)
        .with_state(Arc::new(console));
    let guarded = doors.merge(pages).layer(from_fn_with_state(access, access::guard::<S, C, E>));
    let open = Router::new().route("/assets/{file}", get(assets::asset));
    Router::new().route("/", get(|| async { Redirect::to(PATH) })).nest(PATH, open.merge(guarded))
}
