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

use self::fault::ValueFault;
pub use self::reader::InputNotation;
use self::reader::NodeReader;
pub(super) use self::tree::path_text;
use self::tree::{InputNode, steps_of_member, steps_of_path};
pub use self::written::WrittenValue;
use super::SettingsError;
use crate::model::MISTAKES_MAX;

/// Most values that are read to find the mistakes of a whole, over all times that it is read: about
/// half a second of work. The more values it has, the fewer of its mistakes are named at once.
const VALUES_READ_MAX: usize = 2_000_000;

/// The fault of a name that an object has more than once. A reader that took the first and one that
/// took the last would not agree.
const TWICE: &str = "is there twice, remove or rename one";

/// A mistake in what a user wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputMistake {
    /// The member at fault, as it is written:
    /// `topics.orders.subscriptions.billing.retryPolicy.schedule[1]`. Empty for the whole.
    pub member: String,
    /// Whether the place of the mistake is the member's name. If not, it is the member's value.
    pub is_at_name: bool,
    /// The fault and the remedy. Never the value itself, which may be a secret.
    pub text: String,
}

/// Reads `written` as a `T` that passes `check`.
///
/// # Errors
/// The mistakes that keep it from being one: the first [`MISTAKES_MAX`], and fewer of a whole that
/// is long to read. A mistake that only follows from another one is left out.
pub fn read_written<T: DeserializeOwned>(
    written: WrittenValue,
    notation: InputNotation,
    check: impl Fn(&T) -> Result<(), SettingsError>,
) -> Result<T, Vec<InputMistake>> {
    let mut tree = InputNode::from_written(written);
    let repeated = tree.take_out_repeated().into_iter();
    let mut found: Vec<_> = repeated.map(InputMistake::of_repeated_name).collect();
    let mut reads_left = 1 + VALUES_READ_MAX / tree.value_count();
    while found.len() < MISTAKES_MAX && reads_left > 0 {
        reads_left -= 1;
        match read_tree(&mut tree, notation, &check) {
            Ok(value) if found.is_empty() => return Ok(value),
            Ok(_) => break,
            Err((steps, fault)) => {
                if !tree.explains_fault(&steps, &fault) {
                    found.push(InputMistake::of_fault(&tree, &steps, &fault));
                }
                if !tree.repair_fault(&steps, &fault) {
                    break;
                }
            }
        }
    }
    Err(found)
}

impl InputMistake {
    /// The mistake of a member whose name its object has already.
    fn of_repeated_name(member: String) -> Self {
        Self {
            member,
            is_at_name: true,
            text: TWICE.to_owned(),
        }
    }

    fn of_fault(tree: &InputNode, steps: &[String], fault: &ValueFault) -> Self {
        Self {
            member: tree.member_path(steps),
            is_at_name: matches!(
                fault,
                ValueFault::UnknownMember { .. } | ValueFault::Missing(_)
            ),
            text: fault.to_string(),
        }
    }
}

/// Reads the answer of a server, which may be newer than this program. Members that a `T` does not
/// have are left out. So is a member with a word that only the server knows, or the object that
/// needs it, as if the server had not written it. An item of a list never is.
///
/// # Errors
/// The first fault of an answer that is no `T` even so.
pub fn read_answer<T: DeserializeOwned>(json: &[u8]) -> Result<T, serde_json::Error> {
    let error = match serde_json::from_slice(json) {
        Ok(answer) => return Ok(answer),
        Err(error) => error,
    };
    let Ok(written) = serde_json::from_slice::<WrittenValue>(json) else {
        return Err(error);
    };
    let mut tree = InputNode::from_written(written);
    loop {
        match read_tree(&mut tree, InputNotation::Answer, |_| Ok(())) {
            Ok(answer) => return Ok(answer),
            Err((steps, fault))
                if is_only_in_newer_program(&tree, &steps, &fault) && tree.leave_out(&steps) => {}
            Err(_) => return Err(error),
        }
    }
}

/// Whether a fault is a word that only a newer program knows, or follows from one.
fn is_only_in_newer_program(tree: &InputNode, steps: &[String], fault: &ValueFault) -> bool {
    matches!(fault, ValueFault::UnknownWord { .. }) || tree.explains_fault(steps, fault)
}

/// The tree as a `T` that passes `check`, or its first fault with the way to it.
///
/// An optional member that is nothing counts as left out. Which members are optional, only the
/// types know: so each of them is left out at first, and read as it is once it turns out to be
/// missing.
fn read_tree<T: DeserializeOwned>(
    tree: &mut InputNode,
    notation: InputNotation,
    check: impl Fn(&T) -> Result<(), SettingsError>,
) -> Result<T, (Vec<String>, ValueFault)> {
    let value: T = loop {
        match serde_path_to_error::deserialize(NodeReader::for_node(tree, notation)) {
            Ok(value) => break value,
            Err(error) => {
                let steps = steps_of_path(error.path());
                let fault = error.into_inner();
                if !tree.requires_nothing(&steps, &fault) {
                    return Err((steps, fault));
                }
            }
        }
    };
    let checked = check(&value);
    checked.map_err(|error| {
        (
            steps_of_member(&error.member),
            ValueFault::Rule(error.problem.to_string()),
        )
    })?;
    Ok(value)
}

#[cfg(test)]
mod tests;
