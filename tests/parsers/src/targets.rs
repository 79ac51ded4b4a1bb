//! The table of all targets.

mod answers;
mod commands;
mod events;
mod log;
mod requests;
mod settings;
mod stored;
mod texts;
mod wire;
mod world;

use crate::target::Target;

/// Every reader of bytes from outside, by what the bytes are.
pub const ROOMS: &[(&str, &[Target])] = &[
    ("texts", texts::TARGETS),
    ("events", events::TARGETS),
    ("settings", settings::TARGETS),
    ("answers", answers::TARGETS),
    ("stored", stored::TARGETS),
    ("log", log::TARGETS),
    ("requests", requests::TARGETS),
    ("commands", commands::TARGETS),
    ("wire", wire::TARGETS),
];

/// Every target.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    ROOMS.iter().flat_map(|(_, targets)| *targets)
}
