//! Messages that are durable before they can be received.

use std::fmt;

/// Messages that are durable, and that cannot be received before they are shown. Dropped instead,
/// they are deleted. If the process dies before either, they are received after its next start.
pub struct WithheldMessages(Option<FateCallback>);

/// The callback that ends the withholding.
type FateCallback = Box<dyn FnOnce(WithheldFate) + Send>;

/// The fate of messages that were withheld.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithheldFate {
    /// The messages can be received from now on.
    Shown,
    /// The messages are deleted.
    Deleted,
}

impl WithheldMessages {
    /// Messages whose fate is told to `end`, once.
    pub fn new(end: impl FnOnce(WithheldFate) + Send + 'static) -> Self {
        Self(Some(Box::new(end)))
    }

    /// Lets the messages be received.
    pub fn show(mut self) {
        if let Some(end) = self.0.take() {
            end(WithheldFate::Shown);
        }
    }
}

impl Drop for WithheldMessages {
    fn drop(&mut self) {
        if let Some(end) = self.0.take() {
            end(WithheldFate::Deleted);
        }
    }
}

impl fmt::Debug for WithheldMessages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Withheld").finish_non_exhaustive()
    }
}
