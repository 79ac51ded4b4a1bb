//! Figures of several windows, held against their bounds.

use std::fmt::{self, Display, Formatter};

use crate::bounds::Bound;
use crate::case::Case;
use crate::figure::Figure;

/// Windows that are counted in any case.
const WINDOWS: u32 = 6;

/// Most windows. There are more than [`WINDOWS`] only while a figure is above its bound: on a busy
/// machine, few windows are free of what the server does by time.
const WINDOWS_MAX: u32 = 80;

/// Counts windows, prints the least count of each figure, and panics if one is above its bound.
/// `count` is called for each window and returns the counts of the figures.
#[expect(
    clippy::print_stdout,
    reason = "shown with --nocapture, and when the test fails"
)]
pub fn hold<const N: usize>(case: Case, figures: [Figure; N], mut count: impl FnMut() -> [u32; N]) {
    let mut least = [u32::MAX; N];
    let mut windows = 0;
    let averages = |least| {
        let counts = figures.into_iter().zip(least);
        counts
            .map(|(figure, count)| Average::of(figure, count, case))
            .collect::<Vec<_>>()
    };
    while windows < WINDOWS
        || windows < WINDOWS_MAX && averages(least).iter().any(Average::is_above)
    {
        for (least, count) in least.iter_mut().zip(count()) {
            *least = count.min(*least);
        }
        windows += 1;
    }
    println!("{case:?}, the least of {windows} windows:");
    for average in averages(least) {
        println!("  {average}");
    }
    for average in averages(least) {
        assert!(
            !average.is_above(),
            "{case:?}: in each of {windows} windows above the bound: {average}"
        );
        let advice =
            "if the program does so much less now, lower src/bounds.rs; if not, mend the count";
        assert!(!average.is_far_below(), "{case:?}: {average}: {advice}");
    }
}

/// The average of a figure in the window in which it is least.
struct Average {
    figure: Figure,
    counted: f64,
    bound: Bound,
}

impl Average {
    fn of(figure: Figure, count: u32, case: Case) -> Self {
        Self {
            figure,
            counted: figure.average(count, case),
            bound: Bound::of(figure, case),
        }
    }

    fn is_above(&self) -> bool {
        self.counted > self.bound.most
    }

    fn is_far_below(&self) -> bool {
        self.counted < self.bound.least
    }
}

impl Display for Average {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let name = format!("{:?}", self.figure);
        let per = self.figure.per();
        let Bound { known, most, .. } = self.bound;
        write!(
            f,
            "{name:<15} {:>9.2} per {per:<8} known {known:>9.2}, at most {most:>9.2}",
            self.counted
        )
    }
}
