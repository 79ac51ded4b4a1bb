//! The handle of one port of the function, which is all that a collaborator sees of it.

use std::ops::Deref;
use std::sync::Arc;

use posthaste_ports::Ports;

use crate::manage::Manage;

/// One port or setting of the function, kept alive with the rest of it. Adapters need not be
/// [`Clone`], so a collaborator cannot have a copy of its own.
pub(crate) struct SharedPort<P: Ports, T> {
    manage: Arc<Manage<P>>,
    port: fn(&Manage<P>) -> &T,
}

impl<P: Ports, T> SharedPort<P, T> {
    /// The handle of what `port` shows of the function.
    pub(crate) fn new(manage: &Arc<Manage<P>>, port: fn(&Manage<P>) -> &T) -> Self {
        Self {
            manage: Arc::clone(manage),
            port,
        }
    }
}

impl<P: Ports, T> Deref for SharedPort<P, T> {
    type Target = T;

    fn deref(&self) -> &T {
        (self.port)(&self.manage)
    }
}
