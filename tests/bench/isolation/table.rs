//! The table, as Markdown.

use crate::case::{Case, Measured};

/// The head of the table.
pub(crate) const HEADER: &str = "\
| the hundredth | healthy: p50 | p99 | most | p99 of nine on one link | hundredth: taken | \
    attempts failed | link, subscription left alone | in the queue at the end | held |
|---|---|---|---|---|---|---|---|---|---|";

/// A row.
pub(crate) fn row(case: &Case, measured: &Measured) -> String {
    let Measured {
        seen,
        failed,
        left_alone,
        held,
        queued,
    } = measured;
    let [link, subscription] = left_alone;
    let [p50, p99, most] = seen.took_ms.map(|ms| format!("{ms:.1} ms"));
    format!(
        "| {} | {p50} | {p99} | {most} | {:.1} ms | {} | {failed} | {link}, {subscription} | {queued} | \
            {held} |",
        case.name, seen.nine_p99_ms, seen.taken
    )
}
