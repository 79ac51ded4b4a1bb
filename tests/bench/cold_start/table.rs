//! The results, as Markdown.

use std::fmt::Write;
use std::time::Duration;

use crate::cold::Cold;
use crate::figures::Figures;
use crate::first::{First, FirstPublish};

const HEADER: &str = "\
| program | to first `/next`, median ms | p90 ms | × nothing | file MB | resident MiB | most MiB | \
    warm CPU, median µs | beside nothing's |
|---|---|---|---|---|---|---|---|---|
";

/// The head of what follows the programs.
pub(crate) const HTTPS: &str = "\
| first requests, over https | median ms | p90 ms |
|---|---|---|
";

/// One row for each program; the first does nothing, and the others are compared with it.
pub(crate) fn programs(cold: &[Cold], warm: &[Option<Duration>]) -> String {
    let least_ms = cold
        .first()
        .map_or(f64::NAN, |nothing| ms(nothing.to_next.median()));
    let nothing_us = warm.first().copied().flatten().map_or(f64::NAN, us);
    let mut table = HEADER.to_owned();
    for (cold, warm) in cold.iter().zip(warm) {
        let median = ms(cold.to_next.median());
        let p90 = ms(cold.to_next.p90());
        let mb = cold.file_bytes as f64 / 1e6;
        let [resident, most] =
            [cold.resident.now_kib, cold.resident.most_kib].map(|kib| kib as f64 / 1024.0);
        let shown =
            |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.0}"));
        let warm = warm.map(us);
        let _ = writeln!(
            table,
            "| {} | {median:.2} | {p90:.2} | {:.1} | {mb:.1} | {resident:.1} | {most:.1} | {} | {} |",
            cold.program,
            median / least_ms,
            shown(warm),
            shown(warm.map(|warm| warm - nothing_us)),
        );
    }
    table
}

/// The first delivery of a new process.
pub(crate) fn first_delivery(first: &First) -> String {
    let rows = [
        (
            "deliver: event to the topic read from S3 over https",
            &first.store,
        ),
        (
            "deliver: from there to the first webhook answered over https",
            &first.post,
        ),
        ("deliver: first invocation", &first.invocation),
        ("deliver: second invocation", &first.second),
    ];
    rows.map(row).concat()
}

/// The first publish of a new process.
pub(crate) fn first_publish(first: &FirstPublish) -> String {
    let rows = [
        (
            "publish: first invocation, S3 and SQS over https",
            &first.invocation,
        ),
        ("publish: second invocation", &first.second),
    ];
    rows.map(row).concat()
}

fn row((name, figures): (&str, &Figures)) -> String {
    format!(
        "| {name} | {:.2} | {:.2} |\n",
        ms(figures.median()),
        ms(figures.p90())
    )
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn us(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}
