//! The part of `parking_lot` that the product has a use for, on shuttle's locks.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use shuttle::rand::{Rng, thread_rng};
use shuttle::sync as stepped;
use shuttle::thread::yield_now;

/// Turns of others after which a wait with a time is over at the latest.
const TURNS_MAX: u32 = 3;

/// A lock without poison. Each `lock` is a place where another thread may go on.
#[derive(Default)]
pub struct Mutex<T>(stepped::Mutex<T>);

/// The right to what a [`Mutex`] guards.
pub struct MutexGuard<'a, T> {
    lock: &'a Mutex<T>,
    /// `None` only while a [`Condvar`] waits.
    guard: Option<stepped::MutexGuard<'a, T>>,
}

/// A condition that threads wait for. A wait with a time ends after some turns of other threads,
/// whether it was notified or not: in the product, time passes.
#[derive(Debug, Default)]
pub struct Condvar(stepped::Condvar);

impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Self(stepped::Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        MutexGuard {
            lock: self,
            guard: Some(guard),
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock().fmt(f)
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.guard.as_ref().expect("nobody waits")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.guard.as_mut().expect("nobody waits")
    }
}

impl Condvar {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.guard.take().expect("nobody waits");
        let held = self.0.wait(held);
        guard.guard = Some(held.unwrap_or_else(PoisonError::into_inner));
    }

    pub fn wait_while_for<T>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut is_waiting: impl FnMut(&mut T) -> bool,
        _: Duration,
    ) {
        for _ in 0..thread_rng().gen_range(0..=TURNS_MAX) {
            if !is_waiting(guard) {
                return;
            }
            drop(guard.guard.take());
            yield_now();
            guard.guard = guard.lock.lock().guard;
        }
    }

    pub fn wait_while_until<T>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        is_waiting: impl FnMut(&mut T) -> bool,
        _: Instant,
    ) {
        self.wait_while_for(guard, is_waiting, Duration::ZERO);
    }
}
