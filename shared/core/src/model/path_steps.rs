//! Segments of a path that are steps: `.` and `..`.

/// Whether a path, or a text that is to be a part of one, has a segment that is a step. A backslash
/// separates segments too, as it does for some readers of paths.
pub fn has_steps(path: &str) -> bool {
    path.split(['/', '\\'])
        .any(|segment| matches!(segment, "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_whole_segments_of_dots() {
        for steps in [".", "..", "a/../b", "../a", "a\\..", "/./"] {
            assert!(has_steps(steps), "{steps}");
        }
        for none in ["", "...", "a.b", "a..", "..a/b", "a/.well-known"] {
            assert!(!has_steps(none), "{none}");
        }
    }
}
