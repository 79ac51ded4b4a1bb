//! Relief of this process under pressure: its caches free memory, and resolved names are forgotten.
//! `posthaste_core::pressure` decides when; this module carries it out, counts it and logs it.

#[cfg(test)]
mod tests;

use parking_lot::Mutex;
use posthaste_core::pressure::{DueRelief, PressureState, ReliefTimes};

use posthaste_ports::{Clock, EvictableCache, EvictedAmount};

/// Relieves one process.
pub struct MemoryReliever<C> {
    clock: C,
    resident_bytes: fn() -> Option<u64>,
    caches: Vec<(&'static str, Box<dyn EvictableCache>)>,
    relief: Mutex<ReliefTimes>,
}

/// The relief that was carried out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReliefResult {
    /// The memory that the caches freed, if they were trimmed.
    pub trimmed: Option<EvictedAmount>,
    /// The number of names that were forgotten, if they were.
    pub names: Option<usize>,
}

impl<C: Clock> MemoryReliever<C> {
    /// Relieves a process without caches so far. `resident_bytes` reads its resident size, if that
    /// can be known.
    pub fn new(clock: C, resident_bytes: fn() -> Option<u64>) -> Self {
        Self {
            clock,
            resident_bytes,
            caches: Vec::new(),
            relief: Mutex::default(),
        }
    }

    /// Adds a cache. Its name is for the log.
    #[must_use]
    pub fn with_cache(mut self, name: &'static str, cache: impl EvictableCache + 'static) -> Self {
        self.caches.push((name, Box::new(cache)));
        self
    }

    /// The relief that is due in this state. It counts as done from now on.
    pub fn take_due_relief(&self, state: &PressureState) -> DueRelief {
        self.relief.lock().take_due(state, self.clock.monotonic())
    }

    /// Does what is due.
    pub fn relieve(&self, due: DueRelief) -> ReliefResult {
        ReliefResult {
            trimmed: due.trim_caches.then(|| self.trim_caches()),
            names: due.flush_dns.then(|| self.flush_dns()),
        }
    }

    fn trim_caches(&self) -> EvictedAmount {
        let before = (self.resident_bytes)();
        let EvictedAmount { entries, bytes } = self
            .caches
            .iter()
            .map(|(name, cache)| trim_cache(name, &**cache))
            .sum();
        let after = (self.resident_bytes)();
        metrics::counter!("TrimmedBytes").increment(bytes as u64);
        tracing::info!(
            entries,
            bytes,
            resident_bytes_before = before,
            resident_bytes_after = after,
            "caches trimmed"
        );
        EvictedAmount { entries, bytes }
    }

    fn flush_dns(&self) -> usize {
        let names = self.caches.iter().map(|(_, cache)| cache.flush_dns()).sum();
        tracing::info!(names, "resolved names forgotten");
        names
    }
}

fn trim_cache(name: &'static str, cache: &dyn EvictableCache) -> EvictedAmount {
    let freed = cache.trim();
    tracing::debug!(
        cache = name,
        entries = freed.entries,
        bytes = freed.bytes,
        "cache trimmed"
    );
    freed
}

impl<C> std::fmt::Debug for MemoryReliever<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.caches.iter().map(|(name, _)| name);
        f.debug_list().entries(names).finish()
    }
}
