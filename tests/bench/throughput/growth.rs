//! Growth of costs: each dimension is doubled five or six times, and a power law is fitted to what
//! that costs in all.

mod chart;
mod dimension;
mod measuring;
mod series;

use std::fs;

pub(crate) use dimension::Dimension;

use crate::arguments::Arguments;
use crate::goal::{Goal, Verdict};
use crate::sink::Sink;
use crate::table;
use measuring::Bench;
use series::{EXPONENT_MAX, Series};

const HEAD: [&str; 7] = [
    "dimension",
    "from",
    "to",
    "points of the fit",
    "exponent",
    "last doubling",
    "bound",
];

/// Measures each dimension, prints the table, and draws the charts.
pub(crate) fn measure(sink: &Sink, arguments: &Arguments) -> Vec<Verdict> {
    let bench = Bench::new(sink, arguments);
    let all: Vec<_> = arguments
        .dimensions
        .iter()
        .flat_map(|dimension| bench.measure(*dimension))
        .collect();
    let (rows, verdicts): (Vec<_>, Vec<_>) = all.iter().map(row).unzip();
    table::print(
        "Growth: the exponent of a cost, without what an idle server costs",
        &HEAD,
        &rows,
    );
    if let Some(folder) = &arguments.charts {
        fs::create_dir_all(folder).expect("the folder of the charts can be made");
        fs::write(folder.join("growth.svg"), chart::draw(&all)).expect("the chart can be written");
    }
    verdicts.into_iter().flatten().collect()
}

fn row(series: &Series) -> (Vec<String>, Option<Verdict>) {
    let end = |at: usize| {
        let point = &series.points[at];
        format!("{}: {:.3} {}", point.at, point.cost(), series.unit)
    };
    let fit = series.fit();
    let goal = Goal::AtMost(EXPONENT_MAX, "");
    let name = format!("growth: {} by {}", series.cost, series.dimension);
    let verdict = fit.map(|fit| goal.judge(name, fit.exponent));
    let number = |exponent: Option<f64>| {
        exponent.map_or("-".to_owned(), |exponent| format!("{exponent:.2}"))
    };
    let cells = vec![
        format!("{} by {}", series.cost, series.dimension),
        end(0),
        end(series.points.len() - 1),
        format!("{} of {}", series.clear().len(), series.points.len()),
        number(fit.map(|fit| fit.exponent)),
        number(series.last_doubling()),
        verdict
            .as_ref()
            .map_or("too little to fit".to_owned(), ToString::to_string),
    ];
    (cells, verdict)
}
