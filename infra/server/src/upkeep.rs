//! The thread of what takes the processor for longer than producers can wait: the API of operators,
//! the console, wake, and the files of the delivery log. On a thread of its own it shares the
//! processor with the workers, which publish and deliver, and never holds one.

use std::io;

use tokio::runtime::{Builder, Handle, Runtime};

/// The thread. What still runs at its end is cut short.
#[derive(Debug)]
pub(super) struct UpkeepThread(Option<Runtime>);

impl UpkeepThread {
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("posthaste-upkeep")
            .enable_all()
            .build()?;
        Ok(Self(Some(runtime)))
    }

    /// The handle with which tasks are spawned. The runtime of the caller, once this has ended.
    pub(super) fn handle(&self) -> Handle {
        let own = self.0.as_ref().map(|runtime| runtime.handle().clone());
        own.unwrap_or_else(Handle::current)
    }
}

impl Drop for UpkeepThread {
    fn drop(&mut self) {
        // A runtime must not wait for its threads where others run.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
