//! The parts of a subscription's page, as its tabs lead to them.

use maud::{Markup, html};

use super::in_url::SubscriptionInUrl;

/// The value of the query for the part that takes something away.
pub(super) const DANGER: &str = "danger";

/// The part of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SubscriptionTab {
    Now,
    Danger,
}

/// The tabs. Settings have a page of their own.
pub(super) fn tab_links(named: SubscriptionInUrl<'_>, shown: SubscriptionTab) -> Markup {
    let now = named.page_path(&[]);
    let settings = named.page_path(&["edit"]);
    let [is_now, is_danger] =
        [SubscriptionTab::Now, SubscriptionTab::Danger].map(|tab| (shown == tab).then_some("page"));
    html! {
        nav.actions aria-label="Parts of the subscription" {
            a.button href=(now) aria-current=[is_now] { "Now" }
            a.button href=(settings) { "Settings" }
            a.button href={ (settings) "?tab=yaml" } { "YAML" }
            a.button href={ (now) "?tab=" (DANGER) } aria-current=[is_danger] { "Danger" }
        }
    }
}
