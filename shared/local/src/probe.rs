//! The embedded probe: the machine's two disks and memory, and gauges from the queue's engine.

use std::path::PathBuf;

use posthaste_ports::{DatabaseResource, ProbeSample, ResourceProbe};
use posthaste_system::probe::{disk_usage, memory_usage, resident_bytes};

/// Samples this machine and this process.
#[derive(Debug)]
pub struct LocalProbe<G> {
    data: PathBuf,
    journal: PathBuf,
    gauges: G,
}

impl<G: Fn() -> (u64, u64) + Send + Sync> LocalProbe<G> {
    /// A probe of the disks that hold these two folders, and of `gauges`, which returns the
    /// engine's version buckets and batch points.
    pub fn new(data: impl Into<PathBuf>, journal: impl Into<PathBuf>, gauges: G) -> Self {
        Self {
            data: data.into(),
            journal: journal.into(),
            gauges,
        }
    }
}

impl<G: Fn() -> (u64, u64) + Send + Sync> ResourceProbe for LocalProbe<G> {
    fn sample(&self) -> ProbeSample {
        let (version_buckets, batch_points) = (self.gauges)();
        ProbeSample {
            database: disk_usage(&self.data).map(DatabaseResource::Disk),
            log_disk: disk_usage(&self.journal),
            process_bytes: resident_bytes(),
            memory: memory_usage(),
            version_buckets: Some(version_buckets),
            batch_points: Some(batch_points),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disks_of_folders_are_sampled_beside_the_gauges() {
        let folder = tempfile::tempdir().unwrap();
        let sample =
            LocalProbe::new(folder.path(), folder.path().join("missing"), || (3, 5)).sample();
        assert_eq!(
            (sample.version_buckets, sample.batch_points, sample.log_disk),
            (Some(3), Some(5), None)
        );
        let Some(DatabaseResource::Disk(disk)) = sample.database else {
            panic!("no disk: {sample:?}")
        };
        assert!(disk.total > 0 && disk.used <= disk.total, "{disk:?}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_and_machine_have_memory() {
        let sample = LocalProbe::new(".", ".", || (0, 0)).sample();
        let memory = sample.memory.unwrap();
        assert!(memory.used > 0 && memory.used <= memory.total, "{memory:?}");
        assert!(sample.process_bytes.unwrap() > 100_000);
    }
}
