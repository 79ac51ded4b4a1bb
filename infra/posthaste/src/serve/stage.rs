//! How far the program is on its way out, as everything that runs on its own sees it.

use tokio::sync::watch;

/// Whether to go on. Clones see the same.
#[derive(Debug, Clone)]
pub struct Stage(watch::Receiver<bool>);

/// The one that ends it.
#[derive(Debug)]
pub struct StageControl(watch::Sender<bool>);

impl StageControl {
    /// A program that runs.
    pub fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    /// A view of it.
    pub fn stage(&self) -> Stage {
        Stage(self.0.subscribe())
    }

    /// Asks everything to come to its end.
    pub fn drain(&self) {
        self.0.send_replace(true);
    }
}

impl Default for StageControl {
    fn default() -> Self {
        Self::new()
    }
}

impl Stage {
    /// Whether new work may be begun.
    pub fn is_run(&self) -> bool {
        !*self.0.borrow()
    }

    /// Completes when no new work may be begun.
    pub async fn drained(&mut self) {
        // An error means that the control is gone, and then nobody wants us to go on either.
        let _ = self.0.wait_for(|drained| *drained).await;
    }
}
