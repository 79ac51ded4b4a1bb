//! The time that charts and figures of a page show: one hour or a day.

use maud::{Markup, html};
use serde::Deserialize;

use crate::page::ConsolePage;

/// The times that can be shown, in hours.
const HOURS: [u32; 2] = [1, 24];

/// The query of a page with charts.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct HoursQuery {
    hours: Option<u32>,
}

/// The hours that a page shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShownHours(u32);

impl HoursQuery {
    /// The hours that are asked for: one hour unless the query says more.
    pub(crate) fn shown_hours(&self) -> Result<ShownHours, ConsolePage> {
        let hours = self.hours.unwrap_or(HOURS[0]);
        if !HOURS.contains(&hours) {
            return Err(ConsolePage::bad_request("hours is 1 or 24"));
        }
        Ok(ShownHours(hours))
    }
}

impl ShownHours {
    pub(crate) fn number(self) -> u32 {
        self.0
    }

    /// The time of filters that begins with the hours that are shown.
    pub(crate) fn filter_time(self) -> String {
        format!("{}h", self.0)
    }

    /// The times to choose from, on the page of this address.
    pub(crate) fn choice(self, page: &str) -> Markup {
        html! {
            nav.actions aria-label="Time of the charts" {
                @for hours in HOURS {
                    a.button href={ (page) "?hours=" (hours) }
                        aria-current=[(hours == self.0).then_some("true")] {
                        @if hours == 1 { "Last hour" } @else { "Last " (hours) " hours" }
                    }
                }
            }
        }
    }
}
