//! The table of what is known, and the bounds that follow from it. The README says how to lower them.

use crate::case::Case;
use crate::figure::Figure;

/// A row of the table.
struct Row {
    figure: Figure,
    /// Per cent above what is known that are no failure: first in requests of one event, then of 100. Such a
    /// request takes longer, and what the server does by time weighs more.
    margins: [f64; 2],
    /// What is known, by case.
    known: [f64; Case::COUNT],
}

const fn row(figure: Figure, margins: [f64; 2], known: [f64; Case::COUNT]) -> Row {
    Row { figure, margins, known }
}

/// What is known: the least of six windows on two idle cores, debug build. Above it, what was seen in 60
/// runs, most of them beside two to four busy loops.
#[rustfmt::skip]
const TABLE: [Row; 11] = [
    //                                       with the delivery log          without it
    //                                           one   hundred   fan-out       one   hundred   fan-out
    // 2026-11-26: 674 to 696; 167 to 177; 264 to 277 | 599 to 607; 157 to 161; 250 to 256.
    row(Figure::Allocations, [3.0, 5.0],    [    686.0,    170.0,    272.0,    604.0,    158.0,    254.0]),
    // 2026-11-26: 172 to 194 KB; 37 to 39; 64 to 69 | 137 to 138; 29 to 30; 52 to 53.
    row(Figure::AllocatedBytes, [8.0, 5.0], [185_000.0, 38_400.0, 68_000.0, 137_700.0, 29_700.0, 53_300.0]),
    // 2026-11-26: varies by 0.02, and beside busy loops in the fan-out by 0.1 downwards.
    row(Figure::Receives, [5.0, 5.0],       [     2.00,     1.01,     1.10,     2.00,     1.01,     1.10]),
    // 2026-11-26: varies by 0.02.
    row(Figure::Sends, [5.0, 5.0],          [     2.00,     1.01,     1.10,     2.00,     1.01,     1.10]),
    // 2026-11-26: 2.2 to 3.4; 0.07 to 0.14; 0.08 to 0.34 | 1.7 to 3.3; 0.06 to 0.25; 0.11 to 0.24.
    row(Figure::Wakes, [80.0, 250.0],       [     3.10,     0.10,     0.24,     2.90,     0.09,     0.21]),
    // 2026-11-26: 3.5 to 5.1; 0.65 to 1.07; 0.4 to 1.3 | 3.4 to 4.5; 0.6 to 1.2; 0.7 to 1.3.
    row(Figure::Polls, [25.0, 25.0],        [     4.50,     1.02,     1.27,     4.30,     1.12,     1.32]),
    // 2026-11-26: 7.8 to 10.0; 0.10 to 0.26; 0.6 to 1.3 | 5.4 to 7.0; 0.08 to 0.17; 0.5 to 1.0.
    row(Figure::Locks, [60.0, 100.0],       [     9.30,     0.16,     0.95,     6.60,     0.12,     0.75]),
    // 2026-11-26: getrandom, and statfs and newfstatat once a commit; 4.0 to 4.3; 0.04 to 0.1 | 4.0; 0.04.
    row(Figure::OtherCalls, [8.0, 100.0],   [     4.00,     0.06,     1.30,     4.00,     0.04,     1.30]),
    // 2026-11-26: 9 to 10.2; 18 to 31; 12 | 7; 17 to 27; 11 to 11.7. Acknowledgements wait 25 ms for a
    // commit. While the endpoint gets 100 events, they have commits of their own.
    row(Figure::FileWrites, [12.0, 60.0],   [     9.60,    22.00,    12.00,     7.00,    18.00,    11.00]),
    // 2026-11-26: 1; 1 to 2.75; 1 | 1; 1 to 2.5; 1.
    row(Figure::Syncs, [5.0, 130.0],        [     1.00,     1.50,     1.00,     1.00,     1.25,     1.00]),
    // 2026-11-26: 33,088 to 38,168; 3,775 to 4,758; 56 to 59 KB | 24,896; 1,887 to 2,251; 41,280 to 43,770.
    row(Figure::FileBytes, [12.0, 25.0],    [ 35_500.0,  4_050.0, 57_664.0, 24_896.0,  1_887.4, 41_280.0]),
];

/// Share of what is known below which a count is doubted.
const DOUBTED: f64 = 0.5;

/// The bounds of a figure in a case.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound {
    /// What is known.
    pub(crate) known: f64,
    /// The most that is no failure.
    pub(crate) most: f64,
    /// The least that is believed.
    pub(crate) least: f64,
}

impl Bound {
    pub(crate) fn of(figure: Figure, case: Case) -> Self {
        let row = TABLE.iter().find(|row| row.figure == figure).expect("each figure has a row");
        let known = row.known[case as usize];
        let [one, hundred] = row.margins;
        let margin = if case.events() == 1 { one } else { hundred };
        let doubted = if figure.depends_on_threads() { 0.0 } else { DOUBTED };
        Self { known, most: known * (1.0 + margin / 100.0), least: known * doubted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_what_is_known_and_its_margin() {
        let check = |figure, case, margin: f64| {
            let Bound { known, most, least } = Bound::of(figure, case);
            assert!((most / known - margin).abs() < 1e-9 && least < known, "{figure:?} {case:?}");
        };
        check(Figure::FileBytes, Case::One, 1.12);
        check(Figure::FileBytes, Case::HundredUnlogged, 1.25);
        check(Figure::Locks, Case::FanOut, 1.6);
    }
}
