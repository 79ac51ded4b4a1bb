//! Values that many requests share, by key.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;

/// Above this number, values that no request uses are forgotten.
const KEPT_MAX: usize = 4096;

/// Values by key. A value is kept while a request uses it, and mostly longer.
#[derive(Debug)]
pub(crate) struct SharedValues<K, V>(Mutex<HashMap<K, Arc<V>>>);

impl<K: Eq + Hash + Clone, V> SharedValues<K, V> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(HashMap::new()))
    }

    /// The value of a key, made now if there is none.
    pub(crate) fn get(&self, key: &K, make: impl FnOnce() -> V) -> Arc<V> {
        let mut kept = self.0.lock();
        if let Some(known) = kept.get(key) {
            return Arc::clone(known);
        }
        if kept.len() >= KEPT_MAX {
            kept.retain(|_, value| Arc::strong_count(value) > 1);
        }
        let value = Arc::new(make());
        kept.insert(key.clone(), Arc::clone(&value));
        value
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_value_is_made_once_and_shared() {
        let kept = SharedValues::new();
        let first = kept.get(&1, || "first");
        assert!(Arc::ptr_eq(&first, &kept.get(&1, || panic!("made twice"))));
        assert_eq!(*kept.get(&2, || "second"), "second");
    }

    #[test]
    fn above_the_limit_only_values_in_use_are_kept() {
        let kept = SharedValues::new();
        let used = kept.get(&0, || 0);
        (1..KEPT_MAX).for_each(|key| drop(kept.get(&key, || key)));
        kept.get(&KEPT_MAX, || 7);
        assert_eq!(
            kept.0.lock().keys().copied().collect::<BTreeSet<_>>(),
            [0, KEPT_MAX].into()
        );
        assert!(Arc::ptr_eq(&used, &kept.get(&0, || panic!("made twice"))));
    }
}
