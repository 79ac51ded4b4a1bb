//! Tables.

use maud::{Markup, html};

/// A column and its heading.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Column {
    Text(&'static str),
    /// Numbers, aligned at their end. The cells are `td.number`.
    Number(&'static str),
}

/// A table of `rows`, each a `tr`. Where the window is too narrow for it, it scrolls sideways, by
/// the keyboard too.
pub(crate) fn table(
    label: &str,
    columns: &[Column],
    rows: impl IntoIterator<Item = Markup>,
) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) {
            table {
                thead { tr { @for column in columns { (heading(*column)) } } }
                tbody { @for row in rows { (row) } }
            }
        }
    }
}

fn heading(column: Column) -> Markup {
    match column {
        Column::Text(name) => html! { th scope="col" { (name) } },
        Column::Number(name) => html! { th.number scope="col" { (name) } },
    }
}
