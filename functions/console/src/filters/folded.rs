//! Filters of a list that are folded away, so that what they found comes first.

use maud::{Markup, html};

use crate::display::foreign_cut;

/// Most characters of a value in the summary.
const VALUE_CHARS_MAX: usize = 40;

/// The form of filters behind a summary of those that hold: `Filters: billing, from 1h`. It is open
/// where the visitor has to change something: after a mistake, or where nothing was found.
pub(crate) fn folded_filters(
    chosen: &[(&str, Option<&str>)],
    is_open: bool,
    form: &Markup,
) -> Markup {
    let held: Vec<_> = chosen
        .iter()
        .filter_map(|(label, value)| Some((*label, value.filter(|it| !it.is_empty())?)))
        .collect();
    html! {
        details.folded open[is_open] {
            summary {
                "Filters"
                @for (at, (label, value)) in held.iter().enumerate() {
                    @if at == 0 { ": " } @else { ", " }
                    @if !label.is_empty() { (label) " " }
                    (foreign_cut(value, VALUE_CHARS_MAX))
                }
            }
            (form)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_names_the_filters_that_hold() {
        let form = html! { form {} };
        let chosen = [
            ("", Some("billing")),
            ("from", Some("1h")),
            ("to", None),
            ("type", Some("")),
        ];
        assert_eq!(
            folded_filters(&chosen, false, &form).into_string(),
            "<details class=\"folded\"><summary>Filters: <bdi>billing</bdi>, from <bdi>1h</bdi></summary>\
             <form></form></details>"
        );
        assert_eq!(
            folded_filters(&[], true, &form).into_string(),
            "<details class=\"folded\" open><summary>Filters</summary><form></form></details>"
        );
    }

    #[test]
    fn hostile_value_is_escaped_and_cut() {
        let long = format!("<script>{}", "x".repeat(1_000));
        let shown = folded_filters(&[("", Some(&long))], false, &html! {}).into_string();
        assert!(shown.contains("&lt;script&gt;"), "{shown}");
        assert!(shown.len() < 300, "{} bytes", shown.len());
    }
}
