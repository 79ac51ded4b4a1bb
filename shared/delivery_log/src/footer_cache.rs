//! Footers that were read before. Files never change, so a footer stays true until its file is
//! gone.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use posthaste_ports::EvictedAmount;

use crate::footer::FileFooter;

/// Footers by key, the oldest dropped first.
#[derive(Debug)]
pub(crate) struct FooterCache {
    cached: Mutex<CachedFooters>,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct CachedFooters {
    footers: HashMap<String, (Arc<FileFooter>, usize)>,
    order: VecDeque<String>,
    bytes: usize,
}

impl FooterCache {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            cached: Mutex::default(),
            bytes_max,
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<Arc<FileFooter>> {
        self.cached
            .lock()
            .footers
            .get(key)
            .map(|(footer, _)| footer.clone())
    }

    pub(crate) fn put(&self, key: &str, footer: &Arc<FileFooter>) {
        let bytes = footer.meta.memory_size() + key.len();
        let mut cached = self.cached.lock();
        if cached
            .footers
            .insert(key.to_owned(), (footer.clone(), bytes))
            .is_none()
        {
            cached.order.push_back(key.to_owned());
            cached.bytes += bytes;
        }
        while cached.bytes > self.bytes_max && cached.drop_oldest() {}
    }

    /// The bytes that the footers take.
    pub(crate) fn bytes(&self) -> usize {
        self.cached.lock().bytes
    }

    pub(crate) fn clear(&self) -> EvictedAmount {
        let cached = std::mem::take(&mut *self.cached.lock());
        EvictedAmount {
            entries: cached.footers.len(),
            bytes: cached.bytes,
        }
    }
}

impl CachedFooters {
    fn drop_oldest(&mut self) -> bool {
        let Some(key) = self.order.pop_front() else {
            return false;
        };
        if let Some((_, bytes)) = self.footers.remove(&key) {
            self.bytes -= bytes;
        }
        true
    }
}
