//! The goals of the issue, and whether they are met.

use std::fmt;

/// A bound, and its unit with a space before it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Goal {
    AtMost(f64, &'static str),
    AtLeast(f64, &'static str),
}

/// A figure with its goal.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) row: String,
    pub(crate) measured: f64,
    pub(crate) goal: Goal,
}

impl Goal {
    /// Judges a figure.
    pub(crate) fn judge(self, row: impl Into<String>, measured: f64) -> Verdict {
        Verdict {
            row: row.into(),
            measured,
            goal: self,
        }
    }

    fn unit(self) -> &'static str {
        let (Self::AtMost(_, unit) | Self::AtLeast(_, unit)) = self;
        unit
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(limit, unit) => write!(f, "≤ {limit}{unit}"),
            Self::AtLeast(limit, unit) => write!(f, "≥ {limit}{unit}"),
        }
    }
}

impl Verdict {
    fn is_met(&self) -> bool {
        match self.goal {
            Goal::AtMost(limit, _) => self.measured <= limit,
            Goal::AtLeast(limit, _) => self.measured >= limit,
        }
    }

    /// Whether it is met, as a word.
    pub(crate) fn word(&self) -> &'static str {
        if self.is_met() { "met" } else { "MISSED" }
    }

    /// The figure with its unit.
    pub(crate) fn figure(&self) -> String {
        format!("{:.2}{}", self.measured, self.goal.unit())
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.goal, self.word())
    }
}

/// The goals of one row of a table.
pub(crate) fn joined<'a>(verdicts: impl IntoIterator<Item = &'a Verdict>) -> String {
    verdicts
        .into_iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}
