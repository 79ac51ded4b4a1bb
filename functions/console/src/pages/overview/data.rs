//! The data of the overview, as the API returns it.

use futures_util::future::join3;
use posthaste_core::api::{LinksView, PressureView, ReplayPage};

use crate::api::{ApiRefusal, RequestTarget};
use crate::console::ConsoleState;

/// The responses of the API. A request that fails leaves the others as they are.
pub(super) struct OverviewData {
    pub(super) pressure: Result<PressureView, ApiRefusal>,
    pub(super) links: Result<LinksView, ApiRefusal>,
    pub(super) replays: Result<ReplayPage, ApiRefusal>,
}

/// Loads all parts at once.
pub(super) async fn load_overview(pages: &ConsoleState) -> OverviewData {
    let active = RequestTarget::new(&["replays"]).query("active", Some(true));
    let [pressure, links] = ["pressure", "links"].map(|resource| RequestTarget::new(&[resource]));
    let asked = join3(
        pages.api.get(pressure),
        pages.api.get(links),
        pages.api.get(active),
    );
    let (pressure, links, replays) = asked.await;
    OverviewData {
        pressure,
        links,
        replays,
    }
}
