//! In place of the client's settings: those that the pool reads.

use std::time::Duration;

#[derive(Debug)]
pub(crate) struct ClientSettings {
    pub(crate) idle_per_link_max: usize,
    pub(crate) idle_max: usize,
    pub(crate) idle_kept: Duration,
    pub(crate) connections_max: usize,
}
