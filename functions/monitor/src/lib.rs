#![doc = include_str!("../README.md")]

mod change_notices;
mod monitor;
mod report;

pub use crate::monitor::{Monitor, MonitorError, MonitorPorts, MonitorSettings};
