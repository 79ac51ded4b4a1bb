//! Requests under way to targets that are recovering.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use posthaste_core::circuit::Target;

/// The requests under way, by target. Targets without any are not kept.
#[derive(Debug, Default)]
pub(crate) struct Ramps(Arc<Mutex<HashMap<Target, u32>>>);

/// One of them. Dropping it makes room for another.
#[derive(Debug)]
pub(crate) struct RampPermit {
    ramps: Arc<Mutex<HashMap<Target, u32>>>,
    target: Target,
}

impl Ramps {
    /// The right to one request, while fewer than `at_once` are under way.
    pub(crate) fn try_enter(&self, target: Target, at_once: u32) -> Option<RampPermit> {
        let mut under_way = self.0.lock();
        let count = under_way.get(&target).copied().unwrap_or_default();
        if count >= at_once {
            return None;
        }
        under_way.insert(target.clone(), count + 1);
        drop(under_way);
        Some(RampPermit {
            ramps: Arc::clone(&self.0),
            target,
        })
    }
}

impl Drop for RampPermit {
    fn drop(&mut self) {
        let mut under_way = self.ramps.lock();
        match under_way.get_mut(&self.target) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(under_way.remove(&self.target)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_admits_its_number_of_requests_and_no_more() {
        let ramps = Ramps::default();
        let target = |host: &str| Target::parse(&format!("https://{host}:443")).unwrap();
        let enter = |host: &str, at_once| ramps.try_enter(target(host), at_once);
        let first = enter("a.example", 1);
        assert!(
            first.is_some() && enter("a.example", 1).is_none() && enter("b.example", 1).is_some()
        );
        let second = enter("a.example", 2);
        assert!(second.is_some() && enter("a.example", 2).is_none());
        drop(first);
        assert!(enter("a.example", 2).is_some());
        drop(second);
        assert!(ramps.0.lock().is_empty());
    }
}
