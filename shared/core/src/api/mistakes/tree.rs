//! The settings that a user wrote, as a tree in which mistakes are repaired. Each node knows where
//! it was written.

use std::collections::BTreeSet;

use serde_json::Value;
use serde_path_to_error::{Path, Segment};

use super::fault::{ValueFault, shorten_name};
use super::written::WrittenValue;
use crate::model::MISTAKES_MAX;

/// A value of the tree.
#[derive(Debug)]
pub(super) struct InputNode {
    /// The last step to it, as it was written.
    step: NodeStep,
    /// Whether a mistake was repaired in it or below it.
    is_repaired: bool,
    /// Whether a word in it was taken out, so that it is unknown which rules hold for its other
    /// members.
    has_lost_word: bool,
    /// Whether it is nothing, and its object must have it: then it is read as it is.
    is_required: bool,
    /// The value, or the values below it.
    pub(super) content: NodeContent,
}

/// The step from a value to one below it.
#[derive(Debug)]
enum NodeStep {
    /// No step: the whole value.
    Root,
    Index(usize),
    Name(String),
}

impl NodeStep {
    /// The path extended by this step.
    fn append_to(&self, path: String) -> String {
        match self {
            Self::Root => path,
            Self::Index(index) => format!("{path}[{index}]"),
            Self::Name(name) => join_path(path, name),
        }
    }
}

/// The content of a node.
#[derive(Debug)]
pub(super) enum NodeContent {
    /// No list and no object. The text is its characters, where they may be meant as a text.
    Scalar(Value, Option<String>),
    List(Vec<InputNode>),
    /// The members by name, which may be repaired, and the names of those that were taken out.
    Object {
        members: Vec<(String, InputNode)>,
        removed: Vec<String>,
    },
}

impl InputNode {
    /// The tree of a value.
    pub(super) fn from_written(written: WrittenValue) -> Self {
        Self::at_step(NodeStep::Root, written)
    }

    fn at_step(step: NodeStep, written: WrittenValue) -> Self {
        let content = match written {
            WrittenValue::List(items) => {
                let item = |(index, item)| Self::at_step(NodeStep::Index(index), item);
                NodeContent::List(items.into_iter().enumerate().map(item).collect())
            }
            WrittenValue::Object(members) => {
                let member = |(name, value): (String, _)| {
                    (name.clone(), Self::at_step(NodeStep::Name(name), value))
                };
                NodeContent::Object {
                    members: members.into_iter().map(member).collect(),
                    removed: Vec::new(),
                }
            }
            WrittenValue::Scalar { value, text } => NodeContent::Scalar(value, text),
        };
        Self {
            step,
            is_repaired: false,
            has_lost_word: false,
            is_required: false,
            content,
        }
    }

    /// The number of values: this one and all below it.
    pub(super) fn value_count(&self) -> usize {
        1 + match &self.content {
            NodeContent::List(items) => items.iter().map(Self::value_count).sum(),
            NodeContent::Object { members, .. } => {
                members.iter().map(|(_, node)| node.value_count()).sum()
            }
            NodeContent::Scalar(..) => 0,
        }
    }

    /// Takes out each member whose name its object has already, and returns the steps to them: of
    /// the first [`MISTAKES_MAX`], each name once.
    pub(super) fn take_out_repeated(&mut self) -> Vec<Vec<String>> {
        let mut found = Vec::new();
        self.take_out_repeated_below(&mut found);
        for steps in &mut found {
            steps.reverse();
        }
        found
    }

    /// The same, with the last step of each first.
    fn take_out_repeated_below(&mut self, found: &mut Vec<Vec<String>>) {
        match &mut self.content {
            NodeContent::Scalar(..) => {}
            NodeContent::List(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    item.take_out_repeated_at(|| index.to_string(), found);
                }
            }
            NodeContent::Object { members, .. } => {
                let repeated = take_out_repeated_names(members);
                let room = MISTAKES_MAX.saturating_sub(found.len());
                found.extend(repeated.into_iter().take(room).map(|name| vec![name]));
                for (name, member) in members {
                    member.take_out_repeated_at(|| name.clone(), found);
                }
            }
        }
    }

    fn take_out_repeated_at(&mut self, step: impl Fn() -> String, found: &mut Vec<Vec<String>>) {
        let before = found.len();
        self.take_out_repeated_below(found);
        for steps in &mut found[before..] {
            steps.push(step());
        }
    }

    /// Whether a fault says that a member is missing which is there and nothing. It counts as
    /// required from then on.
    pub(super) fn requires_nothing(&mut self, steps: &[String], fault: &ValueFault) -> bool {
        let ValueFault::Missing(name) = fault else {
            return false;
        };
        let Some(object) = self.descendant_mut(steps) else {
            return false;
        };
        match object.child_mut(name) {
            Some(member) if member.is_nothing() && !member.is_required => {
                member.is_required = true;
                true
            }
            Some(_) | None => false,
        }
    }

    /// Whether it counts as left out where its object need not have it.
    pub(super) fn is_left_out(&self) -> bool {
        self.is_nothing() && !self.is_required
    }

    fn is_nothing(&self) -> bool {
        matches!(self.content, NodeContent::Scalar(Value::Null, _))
    }

    /// The path of the member at `steps`, as it was written.
    pub(super) fn member_path(&self, steps: &[String]) -> String {
        self.member_after(String::new(), steps)
    }

    fn member_after(&self, path: String, steps: &[String]) -> String {
        let path = self.step.append_to(path);
        match self.next(steps) {
            Some((child, rest)) => child.member_after(path, rest),
            None => steps.iter().fold(path, |path, step| join_path(path, step)),
        }
    }

    /// The node after the first of these steps, if it is there, and the other steps.
    fn next<'a>(&self, steps: &'a [String]) -> Option<(&Self, &'a [String])> {
        let (step, rest) = steps.split_first()?;
        Some((self.child(step)?, rest))
    }

    /// Whether the fault only follows, or may only follow, from one that was repaired: in the same
    /// value, below it, or in a word on the way to it.
    pub(super) fn explains_fault(&self, steps: &[String], fault: &ValueFault) -> bool {
        let node = self.deepest_node(steps);
        match (fault, &node.content) {
            (ValueFault::Missing(name), NodeContent::Object { removed, .. }) => {
                removed.iter().any(|one| one == name)
            }
            (ValueFault::Rule(_), _) => node.is_repaired || self.has_lost_word_on(steps),
            _ => node.is_repaired,
        }
    }

    fn has_lost_word_on(&self, steps: &[String]) -> bool {
        self.has_lost_word
            || self
                .next(steps)
                .is_some_and(|(child, rest)| child.has_lost_word_on(rest))
    }

    /// Repairs a fault: writes the likely name or word, or takes the value out. False if that is
    /// the whole tree.
    pub(super) fn repair_fault(&mut self, steps: &[String], fault: &ValueFault) -> bool {
        let is_repaired = match (fault, fault.likely_name()) {
            (ValueFault::UnknownMember { .. }, Some(likely)) => self.rename_member(steps, likely),
            (ValueFault::UnknownWord { .. }, Some(likely)) => self.replace_word(steps, likely),
            _ => false,
        };
        if let (ValueFault::UnknownWord { .. }, Some((_, way))) = (fault, steps.split_last())
            && let Some(object) = self.mark_repaired(way)
        {
            object.has_lost_word |= !is_repaired;
        }
        is_repaired || self.take_out(steps)
    }

    /// The node at `steps`, or else the deepest one on the way to it.
    fn deepest_node(&self, steps: &[String]) -> &Self {
        match self.next(steps) {
            Some((child, rest)) => child.deepest_node(rest),
            None => self,
        }
    }

    fn child(&self, step: &str) -> Option<&Self> {
        match &self.content {
            NodeContent::List(items) => items.get(step.parse::<usize>().ok()?),
            NodeContent::Object { members, .. } => members
                .iter()
                .find(|(name, _)| name == step)
                .map(|(_, node)| node),
            NodeContent::Scalar(..) => None,
        }
    }

    fn descendant_mut(&mut self, steps: &[String]) -> Option<&mut Self> {
        match steps.split_first() {
            Some((step, rest)) => self.child_mut(step)?.descendant_mut(rest),
            None => Some(self),
        }
    }

    fn child_mut(&mut self, step: &str) -> Option<&mut Self> {
        match &mut self.content {
            NodeContent::List(items) => items.get_mut(step.parse::<usize>().ok()?),
            NodeContent::Object { members, .. } => members
                .iter_mut()
                .find(|(name, _)| name == step)
                .map(|(_, node)| node),
            NodeContent::Scalar(..) => None,
        }
    }

    /// Gives the member at `steps` another name, unless its object has one of that name.
    fn rename_member(&mut self, steps: &[String], to: &str) -> bool {
        let Some((last, way)) = steps.split_last() else {
            return false;
        };
        let Some(object) = self.mark_repaired(way) else {
            return false;
        };
        let NodeContent::Object { members, .. } = &mut object.content else {
            return false;
        };
        if members.iter().any(|(name, _)| name == to) {
            return false;
        }
        let Some((name, node)) = members.iter_mut().find(|(name, _)| name == last) else {
            return false;
        };
        to.clone_into(name);
        node.is_repaired = true;
        true
    }

    /// Writes another word at `steps`.
    fn replace_word(&mut self, steps: &[String], to: &str) -> bool {
        let Some(node) = self.mark_repaired(steps) else {
            return false;
        };
        node.content = NodeContent::Scalar(to.into(), None);
        true
    }

    /// The node at `steps`. It counts as repaired, and so does every node on the way to it.
    fn mark_repaired(&mut self, steps: &[String]) -> Option<&mut Self> {
        self.is_repaired = true;
        match steps.split_first() {
            Some((step, rest)) => self.child_mut(step)?.mark_repaired(rest),
            None => Some(self),
        }
    }

    /// Takes out the node at `steps`, or else the deepest one on the way to it. False if that is
    /// this one.
    fn take_out(&mut self, steps: &[String]) -> bool {
        let Some((step, rest)) = steps.split_first() else {
            return false;
        };
        let Some(child) = self.child_mut(step) else {
            return false;
        };
        if !child.take_out(rest) {
            self.remove_child(step);
        }
        self.is_repaired = true;
        true
    }

    /// Takes out the member at `steps`. False if no object has it.
    pub(super) fn leave_out(&mut self, steps: &[String]) -> bool {
        let Some((name, way)) = steps.split_last() else {
            return false;
        };
        let object = self.descendant_mut(way);
        let Some(object) = object.filter(|it| matches!(it.content, NodeContent::Object { .. }))
        else {
            return false;
        };
        let is_there = object.child(name).is_some();
        object.remove_child(name);
        is_there
    }

    fn remove_child(&mut self, step: &str) {
        match &mut self.content {
            NodeContent::List(items) => {
                let index: Option<usize> = step.parse().ok();
                index
                    .filter(|index| *index < items.len())
                    .map(|index| items.remove(index));
            }
            NodeContent::Object { members, removed } => {
                members.retain(|(name, _)| name != step);
                removed.push(step.to_owned());
            }
            NodeContent::Scalar(..) => {}
        }
    }
}

/// Takes out each member whose name was there before, and returns the names.
fn take_out_repeated_names(members: &mut Vec<(String, InputNode)>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut repeated = BTreeSet::new();
    let mut is_first: Vec<bool> = Vec::with_capacity(members.len());
    for (name, _) in members.iter() {
        is_first.push(names.insert(name.as_str()));
    }
    let mut is_first = is_first.into_iter();
    members.retain(|(name, _)| {
        let is_kept = is_first.next().unwrap_or(true);
        if !is_kept {
            repeated.insert(name.clone());
        }
        is_kept
    });
    repeated
}

fn join_path(path: String, name: &str) -> String {
    let name = shorten_name(name);
    if path.is_empty() {
        name.into_owned()
    } else {
        path + "." + &name
    }
}

/// The steps to a member that a rule names, such as `retryPolicy.schedule[1]`.
pub(super) fn steps_of_member(member: &str) -> Vec<String> {
    member
        .split(['.', '[', ']'])
        .filter(|step| !step.is_empty())
        .map(str::to_owned)
        .collect()
}

/// A path as messages show it: `subscriptions.a.schedule[2]`.
pub(crate) fn path_text(path: &Path) -> String {
    path.iter()
        .fold(String::new(), |text, segment| match segment {
            Segment::Seq { index } => NodeStep::Index(*index).append_to(text),
            Segment::Map { key } => join_path(text, key),
            Segment::Enum { .. } | Segment::Unknown => text,
        })
}

/// The steps of a path.
pub(super) fn steps_of_path(path: &Path) -> Vec<String> {
    let step = |segment: &Segment| match segment {
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Map { key } => Some(key.clone()),
        Segment::Enum { .. } | Segment::Unknown => None,
    };
    path.iter().filter_map(step).collect()
}
