//! The search box in the header of every page.

use maud::{Markup, html};

use crate::console::PATH;

/// Longest text that the box shows again, in bytes. More could make the page long.
const SHOWN_BYTES_MAX: usize = 2_048;

/// The box, with the text of the search that the page shows.
pub(super) fn search_box(text: Option<&str>) -> Markup {
    let shown = text.filter(|text| text.len() <= SHOWN_BYTES_MAX);
    html! {
        form.search method="get" action={ (PATH) "/search" } role="search" {
            label.unseen for="search-text" {
                "Search: event id, webhook-id, dead-letter key, subscription or endpoint URL"
            }
            input #search-text type="search" name="q" value=[shown] placeholder="Event id, subscription, URL …"
                autocomplete="off" spellcheck="false";
            button type="submit" { "Search" }
        }
    }
}
