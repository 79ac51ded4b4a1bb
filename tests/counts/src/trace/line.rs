//! A line of a trace.

/// A line of strace. A call that other threads' calls interrupt has two lines.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line<'t> {
    /// The number of the thread.
    pub(crate) thread: &'t str,
    /// The name of the call.
    pub(crate) name: &'t str,
    /// The first argument, with the path or kind of a file; `None` in the second line of a call.
    pub(crate) target: Option<&'t str>,
    /// The result if it is a number that is not negative; `None` in the first line of two, too.
    pub(crate) result: Option<u32>,
}

impl<'t> Line<'t> {
    /// Reads a line; `None` if it is about no call, such as the end of a thread.
    pub(crate) fn parse(line: &'t str) -> Option<Self> {
        let (thread, call) = line.split_once(' ')?;
        let call = call.trim_start();
        let result = line
            .rsplit_once(" = ")
            .and_then(|(_, it)| it.split(' ').next()?.parse().ok());
        if let Some(resumed) = call.strip_prefix("<... ") {
            let (name, _) = resumed.split_once(' ')?;
            return Some(Self {
                thread,
                name,
                target: None,
                result,
            });
        }
        let (name, arguments) = call.split_once('(')?;
        let is_name = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let target = arguments.split([',', ')']).next()?;
        is_name.then_some(Self {
            thread,
            name,
            target: Some(target),
            result,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Option<(&str, Option<&str>, Option<u32>)>) {
        let expected = expected.map(|(name, target, result)| Line {
            thread: "7",
            name,
            target,
            result,
        });
        assert_eq!(Line::parse(line), expected);
    }

    #[test]
    fn a_line_has_its_call_its_target_and_its_result() {
        let path = r#"7  pwrite64(9</data/posthaste.redb>, ""..., 4096, 8192) = 4096"#;
        check(
            path,
            Some(("pwrite64", Some("9</data/posthaste.redb>"), Some(4096))),
        );
        let event = r#"7  write(4<anon_inode:[eventfd]>, ""..., 8) = 8"#;
        check(
            event,
            Some(("write", Some("4<anon_inode:[eventfd]>"), Some(8))),
        );
        let failed =
            r"7  recvfrom(14<socket:[1]>, 0x7, 8192, 0, NULL, NULL) = -1 EAGAIN (Resource t...)";
        check(failed, Some(("recvfrom", Some("14<socket:[1]>"), None)));
        check(
            "7  sched_yield()     = 0",
            Some(("sched_yield", Some(""), Some(0))),
        );
    }

    #[test]
    fn a_call_may_have_two_lines() {
        let begun = r#"7  pwrite64(9</data/posthaste.redb>, ""..., 4096, 8192 <unfinished ...>"#;
        check(
            begun,
            Some(("pwrite64", Some("9</data/posthaste.redb>"), None)),
        );
        check(
            "7  <... pwrite64 resumed>)  = 4096",
            Some(("pwrite64", None, Some(4096))),
        );
    }

    #[test]
    fn other_lines_are_no_calls() {
        check("7  +++ exited with 0 +++", None);
        check("", None);
    }
}
