//! File descriptors: every connection takes one, and the usual soft limit of 1024 is too few for a
//! server.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::http::limits::OPERATORS_MAX;

/// With fewer descriptors than this, slow endpoints and many producers compete for them.
const DESCRIPTORS_ENOUGH: u64 = 16_384;

/// One descriptor in four is kept for requests to endpoints, the store and the log.
const KEPT_PART: usize = 4;

/// Raises the soft limit to the hard one, says so in the log if that is still little, and answers
/// it if there is one.
pub(super) fn raise_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    ) {
        tracing::warn!(%error, "the limit of open files cannot be raised");
    }
    let limit = getrlimit(Resource::Nofile).current;
    if limit.is_some_and(|limit| limit < DESCRIPTORS_ENOUGH) {
        tracing::warn!(
            open_files_max = limit,
            open_files_max_before = current,
            "few open files are allowed; raise the hard limit (ulimit -Hn)"
        );
    }
    limit
}

/// Most ordinary requests at once that fit into the limit of open files, at most `wanted`: with
/// more of them there would be no descriptor left for those who operate the server. The log says so
/// where that is fewer.
pub(super) fn requests_max(wanted: usize, limit: Option<u64>) -> usize {
    let limit = limit.map_or(usize::MAX, |limit| {
        usize::try_from(limit).unwrap_or(usize::MAX)
    });
    let fit = (limit - limit / KEPT_PART)
        .saturating_sub(OPERATORS_MAX)
        .max(1);
    if fit < wanted {
        tracing::warn!(
            requests_max = fit,
            connections_max = wanted,
            open_files_max = limit,
            "the limit of open files allows fewer requests at once than --connections-max"
        );
    }
    wanted.min(fit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_leave_descriptors_for_operators_and_endpoints() {
        let check = |wanted, limit, expected| {
            assert_eq!(requests_max(wanted, limit), expected, "{limit:?}");
        };
        check(4096, None, 4096);
        check(4096, Some(u64::MAX), 4096);
        check(4096, Some(16_384), 4096);
        check(4096, Some(4096), 3072 - 64);
        check(4096, Some(1024), 768 - 64);
        check(100, Some(1024), 100);
        check(4096, Some(50), 1);
    }
}
