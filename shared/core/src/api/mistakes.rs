//! Every mistake in what a user wrote, not only the first.
//!
//! Serde stops at the first mistake, and so do the rules. So the value is kept as a tree, and each
//! mistake is repaired in it: a mistyped name or word becomes the likely one, and anything else is
//! taken out. Then the tree is read again, until it has no mistake.

mod fault;
mod reader;
mod tree;
mod written;

use serde::de::DeserializeOwned;
use serde_json::Value;

use self::fault::Fault;
pub use self::reader::Notation;
use self::reader::Reader;
use self::tree::{Node, steps_of_member, steps_of_path};
pub use self::written::Written;
use super::SettingsError;
use crate::model::MISTAKES_MAX;

/// Most values that are read to find the mistakes of a whole, over all times that it is read: about
/// half a second of work. The more values it has, the fewer of its mistakes are named at once.
const VALUES_READ_MAX: usize = 2_000_000;

/// A mistake in what a user wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The member at fault, as it is written:
    /// `topics.orders.subscriptions.billing.retryPolicy.schedule[1]`. Empty for the whole.
    pub member: String,
    /// Whether the place of the mistake is the member's name. If not, it is the member's value.
    pub is_at_name: bool,
    /// The fault and the remedy. Never the value itself, which may be a secret.
    pub text: String,
}

/// The mistakes that keep `written` from being a `T` that passes `check`: the first
/// [`MISTAKES_MAX`], and fewer of a whole that is long to read. None if there are no mistakes.
///
/// A mistake that only follows from another one is left out.
pub fn mistakes<T: DeserializeOwned>(
    written: &Value,
    notation: Notation,
    check: impl Fn(&T) -> Result<(), SettingsError>,
) -> Vec<Mistake> {
    read_written(written.into(), notation, check)
        .err()
        .unwrap_or_default()
}

/// Reads `written` as a `T` that passes `check`.
///
/// # Errors
/// The [`mistakes`] in it.
pub fn read_written<T: DeserializeOwned>(
    written: Written,
    notation: Notation,
    check: impl Fn(&T) -> Result<(), SettingsError>,
) -> Result<T, Vec<Mistake>> {
    let mut tree = Node::of(written);
    let mut next = match read_tree(&tree, notation, &check) {
        Ok(value) => return Ok(value),
        Err(fault) => Some(fault),
    };
    let mut found = Vec::new();
    let mut reads_left = VALUES_READ_MAX / tree.size();
    while let Some((steps, fault)) = next {
        if !tree.explains(&steps, &fault) {
            found.push(mistake(&tree, &steps, &fault));
        }
        if found.len() == MISTAKES_MAX || reads_left == 0 || !tree.repair(&steps, &fault) {
            break;
        }
        reads_left -= 1;
        next = read_tree(&tree, notation, &check).err();
    }
    Err(found)
}

/// The tree as a `T` that passes `check`, or its first fault with the way to it.
fn read_tree<T: DeserializeOwned>(
    tree: &Node,
    notation: Notation,
    check: impl Fn(&T) -> Result<(), SettingsError>,
) -> Result<T, (Vec<String>, Fault)> {
    let value: T = serde_path_to_error::deserialize(Reader::of(tree, notation))
        .map_err(|error| (steps_of_path(error.path()), error.into_inner()))?;
    let checked = check(&value);
    checked.map_err(|error| {
        (
            steps_of_member(&error.member),
            Fault::Rule(error.problem.to_string()),
        )
    })?;
    Ok(value)
}

fn mistake(tree: &Node, steps: &[String], fault: &Fault) -> Mistake {
    let is_at_name = matches!(fault, Fault::UnknownMember { .. } | Fault::Missing(_));
    Mistake {
        member: tree.member(steps),
        is_at_name,
        text: fault.to_string(),
    }
}

#[cfg(test)]
mod tests;
