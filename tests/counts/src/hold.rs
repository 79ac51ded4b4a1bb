//! Figures of several windows, held against their bounds.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use crate::bounds::{Bound, commits_beyond_known};
use crate::case::Case;
use crate::figure::Figure;

/// Windows that are counted in any case.
const WINDOWS: u32 = 6;

/// Most windows. There are more than [`WINDOWS`] only while a figure is above its bound: on a busy
/// machine, few windows are free of what the server does by time.
const WINDOWS_MAX: u32 = 160;

/// The counts of one window.
#[derive(Debug, Clone, Copy)]
pub struct WindowCounts<const N: usize> {
    /// The counts of the figures.
    pub counts: [u32; N],
    /// Times that the store waited for the disk: about one a commit.
    pub syncs: u32,
    /// The time that the window took.
    pub time: Duration,
}

/// Counts windows, prints the least count of each figure, and panics if one is above its bound.
/// `count` is called for each window.
#[expect(
    clippy::print_stdout,
    reason = "shown with --nocapture, and when the test fails"
)]
pub fn hold<const N: usize>(
    case: Case,
    figures: [Figure; N],
    mut count: impl FnMut() -> WindowCounts<N>,
) {
    let mut least = figures.map(|figure| LeastCount::new(figure, case));
    let mut windows = 0;
    while windows < WINDOWS || windows < WINDOWS_MAX && least.iter().any(LeastCount::is_above) {
        let window = count();
        let commits = commits_beyond_known(case, window.syncs, window.time);
        for (least, count) in least.iter_mut().zip(window.counts) {
            least.note(count, commits);
        }
        windows += 1;
    }
    println!("{case:?}, the least of {windows} windows:");
    for figure in &least {
        println!("  {figure}");
    }
    for figure in &least {
        assert!(
            !figure.is_above(),
            "{case:?}: in each of {windows} windows above the bound: {figure}"
        );
        let advice =
            "if the program does so much less now, lower src/bounds.rs; if not, mend the count";
        assert!(!figure.is_far_below(), "{case:?}: {figure}: {advice}");
    }
}

/// The least count of a figure.
struct LeastCount {
    figure: Figure,
    case: Case,
    bound: Bound,
    /// As it was counted.
    counted: f64,
    /// Without what the commits cost that the time of its window made.
    held: f64,
}

impl LeastCount {
    fn new(figure: Figure, case: Case) -> Self {
        Self {
            figure,
            case,
            bound: Bound::of(figure, case),
            counted: f64::INFINITY,
            held: f64::INFINITY,
        }
    }

    /// Notes the count of a window, and its commits beyond those that are known.
    fn note(&mut self, count: u32, commits: f64) {
        let count = f64::from(count);
        let without = (count - commits * self.bound.per_commit).max(0.0);
        self.counted = self.counted.min(count);
        self.held = self.held.min(without);
    }

    fn average(&self, count: f64) -> f64 {
        self.figure.average(count, self.case)
    }

    fn is_above(&self) -> bool {
        self.average(self.held) > self.bound.most
    }

    fn is_far_below(&self) -> bool {
        self.average(self.counted) < self.bound.least
    }
}

impl Display for LeastCount {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let name = format!("{:?}", self.figure);
        let per = self.figure.per();
        let Bound { known, most, .. } = self.bound;
        let held = self.average(self.held);
        write!(
            f,
            "{name:<15} {held:>9.2} per {per:<8} known {known:>9.2}, at most {most:>9.2}, \
                counted {:>9.2}",
            self.average(self.counted)
        )
    }
}
