//! The table of what is known, and the bounds that follow from it. The README says how to lower
//! them.

use std::time::Duration;

use posthaste_local::SHARING_DELAY;

use crate::case::Case;
use crate::figure::Figure;

/// A row of the table.
struct Row {
    figure: Figure,
    /// Per cent above what is known that are no failure: first in requests of one event, then
    /// of 100. Such a request takes longer, and what the server does by time weighs more.
    margins: [f64; 2],
    /// The cost of one commit of acknowledgements.
    per_commit: f64,
    /// The known values, by case.
    known: [f64; Case::COUNT],
}

const fn row(figure: Figure, margins: [f64; 2], per_commit: f64, known: [f64; Case::COUNT]) -> Row {
    Row {
        figure,
        margins,
        per_commit,
        known,
    }
}

/// The known values: the least of six windows on two idle cores, debug build. The ranges above some
/// rows are those of 25 runs, most of them beside three or four busy loops.
#[rustfmt::skip]
const TABLE: [Row; 11] = [
    //                                    a commit   with the delivery log          without it
    //                                                 one   hundred   fan-out       one   hundred   fan-out
    // 2026-11-26. Before the event's way was made short: 682, 170, 269 | 604, 158, 254. With the log, records
    // are read on another thread. Its allocations make a request of one vary from 581 to 598.
    // 2026-11-30, a commit beside busy loops: 265 to 285 allocations, 7 to 18 KB; 6.4 writes to files, 23 KB.
    // 2026-11-28, a hundred: 75.5 | 66.2, and 82.2 | 71.4 with the header `posthaste-attempt`, until numbers in
    // headers were shared by all requests.
    row(Figure::Allocations, [8.0, 8.0],      270.0, [    588.0,     74.2,    154.5,    430.0,     63.8,    134.2]),
    // 2026-11-26. Before: 182, 38, 68 KB | 138, 30, 53 KB. With the log, one varies from 142 to 151 KB.
    // 2026-11-28, a hundred, beside a build: up to 29,622 | 23,001.
    row(Figure::AllocatedBytes, [12.0, 8.0], 12_000.0, [147_000.0, 28_800.0, 40_700.0, 90_300.0, 22_300.0, 30_400.0]),
    // 2026-11-26: varies by 0.02, and beside busy loops in the fan-out by 0.1 downwards.
    row(Figure::Receives, [5.0, 5.0],           0.0, [     2.00,     1.02,     1.10,     2.00,     1.02,     1.10]),
    // 2026-11-26: varies by 0.02.
    row(Figure::Sends, [5.0, 5.0],              0.0, [     2.00,     1.02,     1.10,     2.00,     1.02,     1.10]),
    // 2026-11-26, one thread for handlers on two cores. Two threads: 3.1, 0.1, 0.2, and little less unlogged.
    row(Figure::Wakes, [200.0, 300.0],          0.0, [     1.00,     0.08,     0.20,     1.00,     0.08,     0.20]),
    // 2026-11-26, one thread for handlers. Two threads: 4.5, 1.0, 1.3.
    row(Figure::Polls, [110.0, 300.0],          0.0, [     2.15,     0.28,     0.65,     2.10,     0.28,     0.65]),
    // 2026-11-26, one thread for handlers. Two threads: 9.3, 0.16, 0.95 | 6.6, 0.12, 0.75.
    row(Figure::Locks, [110.0, 200.0],          0.0, [     6.20,     0.12,     0.70,     3.30,     0.10,     0.50]),
    // 2026-11-26: statfs once a commit. A look at the file itself would make its sync dearer.
    row(Figure::OtherCalls, [20.0, 150.0],      1.0, [     1.02,     0.02,     0.10,     1.00,     0.01,     0.10]),
    // 2026-11-26: 10; 18 to 30.5; 12 | 6; 16 to 27; 11 to 11.2. Acknowledgements wait for a commit (`SHARING_DELAY`).
    // While the endpoint gets 100 events, they have commits of their own, which are counted apart.
    row(Figure::FileWrites, [15.0, 40.0],       6.0, [    10.00,    24.00,    11.90,     6.00,    17.00,    11.20]),
    // 2026-11-26: 1; 1 to 2.75; 1 | 1; 1 to 2.5; 1.
    row(Figure::Syncs, [10.0, 60.0],            1.0, [     1.00,     1.50,     1.00,     1.00,     1.25,     1.00]),
    // 2026-11-26: 37,184; 4,572 to 4,945; 49,472 | 20,800; 1,846 to 2,251; 40,870 to 42,099.
    row(Figure::FileBytes, [12.0, 30.0],   20_000.0, [ 37_184.0,  4_700.0, 49_500.0, 20_800.0,  1_850.0, 42_100.0]),
];

/// Share of what is known below which a count is doubted.
const DOUBTED: f64 = 0.5;

/// The bounds of a figure in a case.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound {
    /// The known value.
    pub(crate) known: f64,
    /// The most that is no failure.
    pub(crate) most: f64,
    /// The least that is believed.
    pub(crate) least: f64,
    /// The cost of one commit of acknowledgements.
    pub(crate) per_commit: f64,
}

/// The commits of a window that it has because it took long. A machine that is twice as slow makes
/// twice as many commits of acknowledgements while the endpoint gets the events of a request.
pub(crate) fn commits_beyond_known(case: Case, syncs: u32, time: Duration) -> f64 {
    let known = Bound::of(Figure::Syncs, case).known * f64::from(case.window_requests());
    let by_time = time.div_duration_f64(SHARING_DELAY);
    (f64::from(syncs) - known).clamp(0.0, by_time)
}

impl Bound {
    pub(crate) fn of(figure: Figure, case: Case) -> Self {
        let row = TABLE
            .iter()
            .find(|row| row.figure == figure)
            .expect("each figure has a row");
        let known = row.known[case as usize];
        let [one, hundred] = row.margins;
        let margin = if case.events() == 1 { one } else { hundred };
        let doubted = if figure.depends_on_threads() {
            0.0
        } else {
            DOUBTED
        };
        Self {
            known,
            most: known * (1.0 + margin / 100.0),
            least: known * doubted,
            per_commit: row.per_commit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_what_is_known_and_its_margin() {
        let check = |figure, case, margin: f64| {
            let Bound {
                known, most, least, ..
            } = Bound::of(figure, case);
            assert!(
                (most / known - margin).abs() < 1e-9 && least < known,
                "{figure:?} {case:?}"
            );
        };
        check(Figure::FileBytes, Case::One, 1.12);
        check(Figure::FileBytes, Case::HundredUnlogged, 1.3);
        check(Figure::Locks, Case::FanOut, 2.1);
    }
    #[test]
    fn commits_of_a_slow_machine_are_those_of_its_time() {
        let check = |syncs, time, expected: f64| {
            let time = Duration::from_millis(time);
            let commits = commits_beyond_known(Case::HundredUnlogged, syncs, time);
            assert!((commits - expected).abs() < 1e-9, "{commits}");
        };
        // Two and a half commits are known of a window of two requests.
        check(2, 120, 0.0);
        check(7, 120, 4.5);
        // At most one for each 25 ms.
        check(7, 50, 2.0);
        check(7, 0, 0.0);
    }
}
