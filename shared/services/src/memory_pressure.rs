//! Relief of this process under pressure: its caches give memory back, and names are forgotten. When that is
//! due is `posthaste_core::pressure`'s to say; here it is carried out, counted and logged.

#[cfg(test)]
mod tests;

use parking_lot::Mutex;
use posthaste_core::pressure::{Due, PressureState, Relief};

use posthaste_ports::{Clock, Evict, Evicted};

/// Relieves one process.
pub struct Reliever<C> {
    clock: C,
    resident_bytes: fn() -> Option<u64>,
    caches: Vec<(&'static str, Box<dyn Evict>)>,
    relief: Mutex<Relief>,
}

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Relieved {
    /// What the caches gave back, if they were trimmed.
    pub trimmed: Option<Evicted>,
    /// How many names were forgotten, if they were.
    pub names: Option<usize>,
}

impl<C: Clock> Reliever<C> {
    /// For a process without caches so far, whose resident size `resident_bytes` tells where it can be known.
    pub fn new(clock: C, resident_bytes: fn() -> Option<u64>) -> Self {
        Self { clock, resident_bytes, caches: Vec::new(), relief: Mutex::default() }
    }

    /// The same with one cache more. Its name is for the log.
    #[must_use]
    pub fn over(mut self, name: &'static str, cache: impl Evict + 'static) -> Self {
        self.caches.push((name, Box::new(cache)));
        self
    }

    /// What is due by this state, which counts as done from now on.
    pub fn due(&self, state: &PressureState) -> Due {
        self.relief.lock().due(state, self.clock.monotonic())
    }

    /// Does what is due.
    pub fn relieve(&self, due: Due) -> Relieved {
        Relieved {
            trimmed: due.trim_caches.then(|| self.trim()),
            names: due.flush_dns.then(|| self.flush_dns()),
        }
    }

    fn trim(&self) -> Evicted {
        let before = (self.resident_bytes)();
        let trim = |(name, cache): &(&'static str, Box<dyn Evict>)| {
            let freed = cache.trim();
            tracing::debug!(cache = name, entries = freed.entries, bytes = freed.bytes, "cache trimmed");
            freed
        };
        let Evicted { entries, bytes } = self.caches.iter().map(trim).sum();
        let after = (self.resident_bytes)();
        metrics::counter!("TrimmedBytes").increment(bytes as u64);
        tracing::info!(
            entries,
            bytes,
            resident_bytes_before = before,
            resident_bytes_after = after,
            "caches trimmed"
        );
        Evicted { entries, bytes }
    }

    fn flush_dns(&self) -> usize {
        let names = self.caches.iter().map(|(_, cache)| cache.flush_dns()).sum();
        tracing::info!(names, "resolved names forgotten");
        names
    }
}

impl<C> std::fmt::Debug for Reliever<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.caches.iter().map(|(name, _)| name);
        f.debug_list().entries(names).finish()
    }
}
