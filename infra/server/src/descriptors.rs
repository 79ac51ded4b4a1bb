//! File descriptors: every connection takes one, and the usual soft limit of 1024 is too few for a
//! server. What takes them is bounded here, all of it together.

use posthaste_core::api::doctor::DESCRIPTORS_ENOUGH;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::http::limits::OPERATORS_MAX;
use super::settings::ServeSettings;

/// One descriptor in four is kept from ordinary requests: for connections to endpoints, and for
/// files.
const KEPT_PART: usize = 4;

/// Descriptors of files: the store, the log, payloads that are read and written, look-ups of names.
/// If descriptors are few, half of what is kept.
const FILES: usize = 128;

/// One connection to an endpoint in four is left to late answers, so that endpoints that hang do not
/// take them all.
const LATE_PART: usize = 4;

/// One connection to an endpoint in sixteen is left to test events and handshakes.
const OPERATORS_PART: usize = 16;

/// The division of descriptors between all that takes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DescriptorShares {
    /// Most ordinary requests that are answered at once.
    pub(super) requests: usize,
    /// Connections to endpoints, idle ones included.
    pub(super) connections: usize,
    /// Most requests to endpoints at once.
    pub(super) deliveries: usize,
    /// Most late answers that are waited for.
    pub(super) late_answers: usize,
}

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

/// Divides the limit of open files, so that neither producers nor endpoints take what the others
/// need, or those who operate the server. The log says so where fewer than `wanted` ordinary
/// requests are answered at once.
pub(super) fn divide(wanted: usize, limit: Option<u64>) -> DescriptorShares {
    let limit = limit.map_or(usize::MAX, |limit| {
        usize::try_from(limit).unwrap_or(usize::MAX)
    });
    let division = DescriptorShares::for_limit(wanted, limit);
    if division.requests < wanted {
        tracing::warn!(
            requests_max = division.requests,
            connections_max = wanted,
            open_files_max = limit,
            "the limit of open files allows fewer requests at once than --connections-max"
        );
    }
    division
}

impl DescriptorShares {
    fn for_limit(wanted: usize, limit: usize) -> Self {
        let kept = limit / KEPT_PART;
        let requests = (limit - kept)
            .saturating_sub(OPERATORS_MAX)
            .clamp(1, wanted.max(1));
        let files = FILES.min(kept / 2);
        let connections = limit
            .saturating_sub(requests)
            .saturating_sub(OPERATORS_MAX)
            .saturating_sub(files)
            .max(1);
        let late_answers = connections / LATE_PART;
        let deliveries = connections - late_answers - connections / OPERATORS_PART;
        Self {
            requests,
            connections,
            deliveries,
            late_answers,
        }
    }

    /// Lowers the settings to what there is room for.
    pub(super) fn limit_settings(self, settings: &mut ServeSettings) {
        settings.connections.requests_max = self.requests;
        let connections = &mut settings.client.connections_max;
        *connections = (*connections).min(self.connections);
        let deliver = &mut settings.deliver;
        deliver.requests_max = deliver.requests_max.min(self.deliveries);
        deliver.late_answers_max = deliver.late_answers_max.min(self.late_answers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_divided_between_all_that_take_them() {
        let check =
            |wanted, limit, [requests, connections, deliveries, late_answers]: [usize; 4]| {
                let expected = DescriptorShares {
                    requests,
                    connections,
                    deliveries,
                    late_answers,
                };
                assert_eq!(
                    DescriptorShares::for_limit(wanted, limit),
                    expected,
                    "{limit}"
                );
            };
        check(4096, 1024, [704, 128, 88, 32]);
        check(4096, 4096, [3008, 896, 616, 224]);
        check(4096, 16_384, [4096, 12_096, 8316, 3024]);
        check(100, 1024, [100, 732, 504, 183]);
        check(4096, 256, [128, 32, 22, 8]);
        check(4096, 50, [1, 1, 1, 0]);
        check(0, 0, [1, 1, 1, 0]);
    }

    #[test]
    fn parts_never_exceed_the_limit() {
        for limit in 160..20_000 {
            let division = DescriptorShares::for_limit(4096, limit);
            let files = FILES.min(limit / KEPT_PART / 2);
            let all = division.requests + OPERATORS_MAX + division.connections + files;
            assert!(all <= limit, "{limit}");
            assert!(division.deliveries + division.late_answers <= division.connections);
        }
    }

    #[test]
    fn settings_are_lowered_and_never_raised() {
        let mut settings = ServeSettings::default();
        divide(4096, None).limit_settings(&mut settings);
        assert_eq!(settings.deliver.requests_max, 8192);
        assert_eq!(settings.deliver.late_answers_max, 512);
        divide(4096, Some(1024)).limit_settings(&mut settings);
        assert_eq!(settings.connections.requests_max, 704);
        assert_eq!(settings.client.connections_max, 128);
        assert_eq!(settings.deliver.requests_max, 88);
        assert_eq!(settings.deliver.late_answers_max, 32);
    }
}
