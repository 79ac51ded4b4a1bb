//! Work on many things, several at once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Requests that are under way at once: on AWS, where one takes some 100 ms, fewer a second than the
/// 50 that the API Gateway of the template lets through.
const AT_ONCE: usize = 4;

/// The results of the work.
pub(super) struct ParallelResults<R, E> {
    /// In the order of the items. `None` for one that failed or was not begun.
    pub(super) done: Vec<Option<R>>,
    /// The failure of the first item that failed.
    pub(super) failure: Option<E>,
}

/// The items, and the ends of those that were taken.
struct SharedItems<'a, T, R, E> {
    items: &'a [T],
    next: AtomicUsize,
    has_failed: AtomicBool,
    ends: Mutex<Vec<(usize, Result<R, E>)>>,
}

impl<T, R, E> SharedItems<'_, T, R, E> {
    /// Does the work of one item after another, until none is left or one has failed.
    fn take_items(&self, work: &impl Fn(&T) -> Result<R, E>) {
        while !self.has_failed.load(Ordering::Relaxed) {
            let place = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = self.items.get(place) else {
                return;
            };
            let end = work(item);
            if end.is_err() {
                self.has_failed.store(true, Ordering::Relaxed);
            }
            if let Ok(mut ends) = self.ends.lock() {
                ends.push((place, end));
            }
        }
    }
}

/// Does the work of each item. After a failure no other one begins; what is under way ends.
pub(super) fn run_each<T: Sync, R: Send, E: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R, E> + Sync,
) -> ParallelResults<R, E> {
    let shared = SharedItems {
        items,
        next: AtomicUsize::new(0),
        has_failed: AtomicBool::new(false),
        ends: Mutex::new(Vec::with_capacity(items.len())),
    };
    thread::scope(|scope| {
        for _ in 1..AT_ONCE.min(items.len()) {
            scope.spawn(|| shared.take_items(&work));
        }
        shared.take_items(&work);
    });
    let mut ends = shared.ends.into_inner().unwrap_or_default();
    ends.sort_by_key(|(place, _)| *place);
    let mut results = ParallelResults {
        done: items.iter().map(|_| None).collect(),
        failure: None,
    };
    for (place, end) in ends {
        match end {
            Ok(done) => results.done[place] = Some(done),
            Err(failure) => results.failure = results.failure.or(Some(failure)),
        }
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<_> = (0..1000).collect();
        let all = run_each(&items, |item| Ok::<_, ()>(item * 2));
        let done: Vec<_> = all.done.into_iter().flatten().collect();
        assert_eq!(done, (0..1000).map(|item| item * 2).collect::<Vec<_>>());
        assert_eq!(all.failure, None);
    }

    #[test]
    fn failure_keeps_further_items_from_beginning() {
        let items: Vec<_> = (0..1000).collect();
        let all = run_each(&items, |item| if *item == 3 { Err(3) } else { Ok(*item) });
        assert_eq!(all.failure, Some(3));
        assert_eq!(all.done[3], None);
        assert_eq!(all.done[0], Some(0));
        let none = run_each(&[], |(): &()| Err::<(), _>(1));
        assert_eq!((none.done.len(), none.failure), (0, None));
    }
}
