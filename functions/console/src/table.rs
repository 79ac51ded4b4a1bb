//! Tables.

use maud::{Markup, html};

/// A column and its heading.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TableColumn {
    Text(&'static str),
    /// Numbers, aligned at their end. The cells are `td.number`.
    Number(&'static str),
}

/// A table of `rows`, each a `tr`. Where the window is too narrow for it, it scrolls sideways, by
/// the keyboard too.
pub(crate) fn table(
    label: &str,
    columns: &[TableColumn],
    rows: impl IntoIterator<Item = Markup>,
) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) {
            table {
                thead { tr { @for column in columns { (column_heading(*column)) } } }
                tbody { @for row in rows { (row) } }
            }
        }
    }
}

fn column_heading(column: TableColumn) -> Markup {
    match column {
        TableColumn::Text(name) => html! { th scope="col" { (name) } },
        TableColumn::Number(name) => html! { th.number scope="col" { (name) } },
    }
}
