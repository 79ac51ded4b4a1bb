//! The data of the overview, as the API returns it.

use futures_util::future::join3;
use posthaste_core::api::{FailingView, PressureView, ReplayPage};

use crate::api::{ApiRefusal, RequestTarget};
use crate::console::ConsoleState;

/// Rows of what fails that the page shows. One with its buttons takes up to 2,500 bytes, and eight
/// charts take 40,000.
const ROWS_SHOWN_MAX: usize = 15;

/// The responses of the API. A request that fails leaves the others as they are.
pub(super) struct OverviewData {
    pub(super) pressure: Result<PressureView, ApiRefusal>,
    pub(super) failing: Result<FailingView, ApiRefusal>,
    pub(super) replays: Result<ReplayPage, ApiRefusal>,
}

/// Loads all parts at once.
pub(super) async fn load_overview(pages: &ConsoleState) -> OverviewData {
    let failing = RequestTarget::new(&["failing"]).query("limit", Some(ROWS_SHOWN_MAX));
    let active = RequestTarget::new(&["replays"]).query("active", Some(true));
    let asked = join3(
        pages.api.get(RequestTarget::new(&["pressure"])),
        pages.api.get(failing),
        pages.api.get(active),
    );
    let (pressure, failing, replays) = asked.await;
    OverviewData {
        pressure,
        failing,
        replays,
    }
}
