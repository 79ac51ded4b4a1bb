#![doc = include_str!("../README.md")]

mod change_notices;
mod drain;
mod monitor;
mod refused;
mod report;

pub use crate::monitor::{Monitor, MonitorError, MonitorPorts, MonitorSettings};
