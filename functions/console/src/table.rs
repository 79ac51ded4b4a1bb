//! Tables.

use maud::{Markup, html};

/// A column and its heading.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TableColumn {
    Text(&'static str),
    /// Numbers, aligned at their end. The cells are `td.number`.
    Number(&'static str),
}

/// A table of rows that have one cell for each column. Where the window is narrow, each row is a card
/// whose facts stand below each other, with the headings of their columns before them. In between it
/// scrolls sideways, by the keyboard too.
pub(crate) fn data_table<const COLUMNS: usize>(
    label: &str,
    columns: &[TableColumn; COLUMNS],
    rows: impl IntoIterator<Item = [Markup; COLUMNS]>,
) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) {
            table.cards role="table" {
                thead role="rowgroup" { tr role="row" { @for column in columns { (column_heading(*column)) } } }
                tbody role="rowgroup" {
                    @for cells in rows {
                        tr role="row" { @for (column, cell) in columns.iter().zip(cells) { (data_cell(*column, &cell)) } }
                    }
                }
            }
        }
    }
}

fn data_cell(column: TableColumn, content: &Markup) -> Markup {
    match column {
        TableColumn::Text(name) => html! { td role="cell" data-label=(name) { (content) } },
        TableColumn::Number(name) => {
            html! { td.number role="cell" data-label=(name) { (content) } }
        }
    }
}

fn column_heading(column: TableColumn) -> Markup {
    match column {
        TableColumn::Text(name) => html! { th scope="col" role="columnheader" { (name) } },
        TableColumn::Number(name) => html! { th.number scope="col" role="columnheader" { (name) } },
    }
}
