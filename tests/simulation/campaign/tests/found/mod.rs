//! Courses that failed once, as they were shrunk, each with what it found.

use posthaste_simulation_campaign::Course;

/// All of them.
pub(crate) fn all() -> Vec<(&'static str, Course)> {
    Vec::new()
}
