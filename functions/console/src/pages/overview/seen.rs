//! The questions of the overview to the API.

use futures_util::future::join3;
use posthaste_core::api::{LinksView, PressureView, ReplayPage};

use crate::api::{Refusal, Target};
use crate::console::Console;

/// The answers of the API. A part that it cannot answer leaves the others as they are.
pub(super) struct Seen {
    pub(super) pressure: Result<PressureView, Refusal>,
    pub(super) links: Result<LinksView, Refusal>,
    pub(super) replays: Result<ReplayPage, Refusal>,
}

/// Asks.
pub(super) async fn see(pages: &Console) -> Seen {
    let active = Target::new(&["replays"]).query("active", Some(true));
    let [pressure, links] = ["pressure", "links"].map(|resource| Target::new(&[resource]));
    let asked = join3(
        pages.api.get(pressure),
        pages.api.get(links),
        pages.api.get(active),
    );
    let (pressure, links, replays) = asked.await;
    Seen {
        pressure,
        links,
        replays,
    }
}
