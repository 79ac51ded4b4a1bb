//! The part of `tokio` that the product has a use for. What waits is tokio's own: an operation of it
//! happens in one step, and before each one another thread may go on.

use std::sync::Arc;

use real_tokio::sync as real;
pub use real_tokio::sync::{
    AcquireError, OwnedSemaphorePermit, SemaphorePermit, TryAcquireError, oneshot,
};
use shuttle::sync::atomic::{AtomicBool, Ordering};

/// A place where another thread may go on.
pub(crate) fn turn() {
    AtomicBool::new(false).load(Ordering::SeqCst);
}

/// Begins a task, which goes on by itself.
pub fn spawn<F>(task: F)
where
    F: Future<Output = ()> + Send + 'static,
{
    drop(shuttle::future::spawn(task));
}

#[derive(Debug)]
pub struct Semaphore(Arc<real::Semaphore>);

impl Semaphore {
    pub const MAX_PERMITS: usize = real::Semaphore::MAX_PERMITS;

    pub fn new(permits: usize) -> Self {
        Self(Arc::new(real::Semaphore::new(permits)))
    }

    pub fn add_permits(&self, count: usize) {
        turn();
        self.0.add_permits(count);
    }

    pub fn forget_permits(&self, count: usize) -> usize {
        turn();
        self.0.forget_permits(count)
    }

    pub async fn acquire(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        turn();
        self.0.acquire().await
    }

    pub async fn acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, AcquireError> {
        self.acquire_many_owned(1).await
    }

    pub async fn acquire_many_owned(
        self: Arc<Self>,
        count: u32,
    ) -> Result<OwnedSemaphorePermit, AcquireError> {
        turn();
        Arc::clone(&self.0).acquire_many_owned(count).await
    }

    pub fn try_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        turn();
        Arc::clone(&self.0).try_acquire_owned()
    }
}

/// A value that is made once.
#[derive(Debug)]
pub struct OnceCell<T>(real::OnceCell<T>);

impl<T> Default for OnceCell<T> {
    fn default() -> Self {
        Self(real::OnceCell::new())
    }
}

impl<T> OnceCell<T> {
    pub async fn get_or_init<F: Future<Output = T>>(&self, make: impl FnOnce() -> F) -> &T {
        turn();
        self.0.get_or_init(make).await
    }

    pub fn initialized(&self) -> bool {
        turn();
        self.0.initialized()
    }
}
