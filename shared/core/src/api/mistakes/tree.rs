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
    /// The likely name, if the one that was written is none.
    likely_name: Option<&'static str>,
    /// Whether a mistake was repaired in it or below it.
    is_repaired: bool,
    /// Whether a word in it was taken out, so that it is unknown which rules hold for its other
    /// members.
    has_lost_word: bool,
    /// Whether it is nothing, and its object must have it: then it is read as it is.
    is_required: bool,
    pub(super) content: NodeContent,
    /// The items of a list or the members of an object.
    pub(super) children: Vec<InputNode>,
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
    List,
    /// With the names of the members that were taken out.
    Object {
        removed: Vec<String>,
    },
}

impl InputNode {
    /// The tree of a value.
    pub(super) fn from_written(written: WrittenValue) -> Self {
        Self::at_step(NodeStep::Root, written)
    }

    fn at_step(step: NodeStep, written: WrittenValue) -> Self {
        let (content, children) = match written {
            WrittenValue::List(items) => {
                let items = items.into_iter().enumerate();
                let item = |(index, item)| Self::at_step(NodeStep::Index(index), item);
                (NodeContent::List, items.map(item).collect())
            }
            WrittenValue::Object(members) => {
                let members = members.into_iter();
                let member = |(name, value)| Self::at_step(NodeStep::Name(name), value);
                let removed = Vec::new();
                (
                    NodeContent::Object { removed },
                    members.map(member).collect(),
                )
            }
            WrittenValue::Scalar { value, text } => (NodeContent::Scalar(value, text), Vec::new()),
        };
        Self {
            step,
            likely_name: None,
            is_repaired: false,
            has_lost_word: false,
            is_required: false,
            content,
            children,
        }
    }

    /// The number of values: this one and all below it.
    pub(super) fn value_count(&self) -> usize {
        1 + self.children.iter().map(Self::value_count).sum::<usize>()
    }

    /// The name by which its object has it.
    pub(super) fn name(&self) -> &str {
        match (&self.step, self.likely_name) {
            (_, Some(likely)) => likely,
            (NodeStep::Name(name), None) => name,
            (NodeStep::Root | NodeStep::Index(_), None) => "",
        }
    }

    /// Takes out each member whose name its object has already, and returns the paths of the first
    /// [`MISTAKES_MAX`], each once.
    pub(super) fn take_out_repeated(&mut self) -> Vec<String> {
        let mut found = Vec::new();
        self.take_out_repeated_below(&String::new, &mut found);
        found
    }

    fn take_out_repeated_below(
        &mut self,
        path_of_parent: &dyn Fn() -> String,
        found: &mut Vec<String>,
    ) {
        let Self { step, children, .. } = self;
        let path = || step.append_to(path_of_parent());
        let mut names = BTreeSet::new();
        let mut repeated = BTreeSet::new();
        children.retain(|child| match &child.step {
            NodeStep::Name(name) if !names.insert(name.clone()) => {
                repeated.insert(name.clone());
                false
            }
            NodeStep::Root | NodeStep::Index(_) | NodeStep::Name(_) => true,
        });
        let room = MISTAKES_MAX.saturating_sub(found.len());
        let repeated = repeated.iter().take(room);
        found.extend(repeated.map(|name| join_path(path(), name)));
        for child in children {
            child.take_out_repeated_below(&path, found);
        }
    }

    /// Whether a fault says that a member is missing which is there and nothing. It counts as
    /// required from then on.
    pub(super) fn requires_nothing(&mut self, steps: &[String], fault: &ValueFault) -> bool {
        let ValueFault::Missing(name) = fault else {
            return false;
        };
        let object = self.descendant_mut(steps);
        match object.and_then(|object| object.child_mut(name)) {
            Some(member) if member.is_left_out() => {
                member.is_required = true;
                true
            }
            Some(_) | None => false,
        }
    }

    /// Whether it counts as left out where its object need not have it.
    pub(super) fn is_left_out(&self) -> bool {
        matches!(self.content, NodeContent::Scalar(Value::Null, _)) && !self.is_required
    }

    /// The path of the member at `steps`, as it was written.
    pub(super) fn member_path(&self, steps: &[String]) -> String {
        let nodes = self.nodes_on(steps);
        let rest = steps.iter().skip(nodes.len() - 1);
        let path = nodes
            .iter()
            .fold(String::new(), |path, node| node.step.append_to(path));
        rest.fold(path, |path, step| join_path(path, step))
    }

    /// The nodes on the way along `steps`, this one first, as far as they are there.
    fn nodes_on(&self, steps: &[String]) -> Vec<&Self> {
        let mut nodes = vec![self];
        let mut node = self;
        for step in steps {
            let Some(index) = node.position(step) else {
                break;
            };
            node = &node.children[index];
            nodes.push(node);
        }
        nodes
    }

    /// Whether the fault only follows, or may only follow, from one that was repaired: in the same
    /// value, below it, or in a word on the way to it.
    pub(super) fn explains_fault(&self, steps: &[String], fault: &ValueFault) -> bool {
        let nodes = self.nodes_on(steps);
        let deepest = nodes.last().copied().unwrap_or(self);
        match (fault, &deepest.content) {
            (ValueFault::Missing(name), NodeContent::Object { removed }) => {
                removed.iter().any(|one| one == name)
            }
            (ValueFault::Rule(_), _) => {
                deepest.is_repaired || nodes.iter().any(|node| node.has_lost_word)
            }
            _ => deepest.is_repaired,
        }
    }

    /// Repairs a fault: writes the likely name or word, or takes the value out. False if that is
    /// the whole tree.
    pub(super) fn repair_fault(&mut self, steps: &[String], fault: &ValueFault) -> bool {
        let is_word = matches!(fault, ValueFault::UnknownWord { .. });
        let is_repaired = fault.likely_name().is_some_and(|likely| {
            if is_word {
                self.replace_word(steps, likely).is_some()
            } else {
                self.rename_member(steps, likely).is_some()
            }
        });
        if is_word
            && let Some((_, way)) = steps.split_last()
            && let Some(object) = self.mark_repaired(way)
        {
            object.has_lost_word |= !is_repaired;
        }
        is_repaired || self.take_out(steps)
    }

    fn position(&self, step: &str) -> Option<usize> {
        match &self.content {
            NodeContent::List => step.parse().ok().filter(|at| *at < self.children.len()),
            NodeContent::Object { .. } => self.children.iter().position(|it| it.name() == step),
            NodeContent::Scalar(..) => None,
        }
    }

    fn child_mut(&mut self, step: &str) -> Option<&mut Self> {
        let index = self.position(step)?;
        self.children.get_mut(index)
    }

    fn descendant_mut(&mut self, steps: &[String]) -> Option<&mut Self> {
        steps
            .iter()
            .try_fold(self, |node, step| node.child_mut(step))
    }

    /// Gives the member at `steps` another name, unless its object has one of that name.
    fn rename_member(&mut self, steps: &[String], to: &'static str) -> Option<()> {
        let (last, way) = steps.split_last()?;
        let object = self.mark_repaired(way)?;
        if object.position(to).is_some() {
            return None;
        }
        let member = object.child_mut(last)?;
        member.likely_name = Some(to);
        member.is_repaired = true;
        Some(())
    }

    /// Writes another word at `steps`.
    fn replace_word(&mut self, steps: &[String], to: &str) -> Option<()> {
        self.mark_repaired(steps)?.content = NodeContent::Scalar(to.into(), None);
        Some(())
    }

    /// The node at `steps`. It counts as repaired, and so does every node on the way to it.
    fn mark_repaired(&mut self, steps: &[String]) -> Option<&mut Self> {
        self.is_repaired = true;
        steps.iter().try_fold(self, |node, step| {
            let child = node.child_mut(step)?;
            child.is_repaired = true;
            Some(child)
        })
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
        self.descendant_mut(way)
            .filter(|it| matches!(it.content, NodeContent::Object { .. }))
            .is_some_and(|object| object.remove_child(name))
    }

    /// False if it has no such child.
    fn remove_child(&mut self, step: &str) -> bool {
        let Some(index) = self.position(step) else {
            return false;
        };
        self.children.remove(index);
        if let NodeContent::Object { removed } = &mut self.content {
            removed.push(step.to_owned());
        }
        true
    }
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
