//! Figures of system calls.

use posthaste_tests::home::Home;

use crate::case::Case;
use crate::endpoint::Endpoint;
use crate::figure::Figure;
use crate::hold::{WindowCounts, hold};
use crate::load::Load;
use crate::trace::{Calls, Trace};

/// Counts system calls of a server of its own, and panics if a figure is above its bound. `names`
/// are the calls that strace looks at; `None` for all. The server is slow while it looks at many.
#[expect(
    clippy::print_stdout,
    reason = "shown with --nocapture, and when the test fails"
)]
pub fn hold_traced<const N: usize>(case: Case, figures: [Figure; N], names: Option<&str>) {
    let endpoint = Endpoint::take();
    let home = Home::new();
    let (server, mut trace) = Trace::start(names, home.path(), case.options());
    let mut load = Load::start(case, server.api(), &endpoint);
    trace.next_calls();
    let mut calls = Calls::default();
    hold(case, figures, || {
        let time = load.run_window();
        calls = trace.next_calls();
        WindowCounts {
            counts: figures.map(|figure| calls.count(figure)),
            syncs: calls.count(Figure::Syncs),
            time,
        }
    });
    println!("  by name, in the last window:");
    for figure in figures
        .into_iter()
        .filter(|figure| calls.names(*figure).next().is_some())
    {
        let name = |(name, count)| format!("{name} {:.2}", figure.average(f64::from(count), case));
        let names: Vec<_> = calls.names(figure).map(name).collect();
        println!("    {figure:?} per {}: {}", figure.per(), names.join(", "));
    }
    server.stop();
}
