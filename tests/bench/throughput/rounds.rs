//! Rounds in which all cases take turns, so that a busy minute of the machine is shared by all.

/// The runs of one case, by round.
pub(crate) type Runs<T> = Vec<T>;

/// The median, least and most of a figure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// A ratio in percent.
    pub(crate) fn percent(self) -> Self {
        let Self {
            median,
            least,
            most,
        } = self;
        Self {
            median: median * 100.0,
            least: least * 100.0,
            most: most * 100.0,
        }
    }
}

/// Measures each case once a round. Each round begins with another case. Says on standard error how
/// far it is.
#[expect(
    clippy::print_stderr,
    reason = "a bench that takes minutes says how far it is"
)]
pub(crate) fn in_turns<C, T>(
    rounds: usize,
    cases: &[(String, C)],
    mut measure: impl FnMut(&C) -> T,
) -> Vec<Runs<T>> {
    let mut runs: Vec<Runs<T>> = cases.iter().map(|_| Runs::new()).collect();
    for round in 0..rounds {
        for turn in 0..cases.len() {
            let index = (round + turn) % cases.len();
            let (name, case) = &cases[index];
            eprintln!("round {} of {rounds}: {name}", round + 1);
            runs[index].push(measure(case));
        }
    }
    runs
}

/// The spread of a figure over the rounds.
pub(crate) fn spread<T>(runs: &[T], figure: impl Fn(&T) -> f64) -> Spread {
    spread_of(runs.iter().map(figure).collect())
}

/// The spread of the ratio of two cases, of each round by itself.
pub(crate) fn ratio<T>(runs: &[T], others: &[T], figure: impl Fn(&T) -> f64) -> Spread {
    spread_of(
        runs.iter()
            .zip(others)
            .map(|(run, other)| figure(run) / figure(other))
            .collect(),
    )
}

fn spread_of(mut values: Vec<f64>) -> Spread {
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
    Spread {
        median: at(values.len() / 2),
        least: at(0),
        most: at(values.len().saturating_sub(1)),
    }
}
