//! System calls of the real program, as strace writes them down.

use posthaste_tests_counts::{Case, Figure, hold_traced};

/// Everything but files. strace stops the server at every call and slows it, which makes it write
/// to its files more often.
mod all {
    use super::{Case, Figure, hold_traced};

    posthaste_tests_counts::each_case!(check);

    fn check(case: Case) {
        let figures = [
            Figure::Receives,
            Figure::Sends,
            Figure::Wakes,
            Figure::Polls,
            Figure::Locks,
            Figure::OtherCalls,
        ];
        hold_traced(case, figures, None);
    }
}

/// Writes to files, at nearly the speed that the server has without strace.
mod files {
    use super::{Case, Figure, hold_traced};

    /// Calls that write, and those that wait for the disk.
    const CALLS: &str = "write,writev,pwrite64,pwritev,pwritev2,fsync,fdatasync,sync_file_range";

    posthaste_tests_counts::each_case!(check);

    fn check(case: Case) {
        hold_traced(
            case,
            [Figure::FileWrites, Figure::Syncs, Figure::FileBytes],
            Some(CALLS),
        );
    }
}
