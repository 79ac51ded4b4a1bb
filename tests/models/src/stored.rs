//! One object of the store, as the models have it: its content and the version that an etag names.
//! A call of a port has a [`Fate`], so that each write is also one whose answer is lost, and one
//! that never happens.

use crate::step::{Condition, Fate, Version};

/// The object under one key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Stored<T> {
    content: Option<T>,
    version: Version,
}

/// The answer to a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Written {
    /// The write happened, as this version.
    As(Version),
    /// The condition did not hold.
    Refused,
    /// The write failed, or its answer was lost.
    Unknown,
}

impl<T> Default for Stored<T> {
    fn default() -> Self {
        Self {
            content: None,
            version: 0,
        }
    }
}

impl<T: Clone> Stored<T> {
    /// An object that is there from the beginning.
    pub fn of(content: T) -> Self {
        Self {
            content: Some(content),
            version: 1,
        }
    }

    /// The content, if there is an object.
    pub fn content(&self) -> Option<&T> {
        self.content.as_ref()
    }

    /// Whether there is an object.
    pub fn is_there(&self) -> bool {
        self.content.is_some()
    }

    /// The content with its version.
    pub fn get(&self) -> Option<(T, Version)> {
        let content = self.content.clone()?;
        Some((content, self.version))
    }

    /// The condition under which what was read is still there, also where that was nothing.
    pub fn unchanged(&self) -> Condition {
        if self.is_there() {
            Condition::IfMatch(self.version)
        } else {
            Condition::IfAbsent
        }
    }

    /// Whether a write of this condition would happen.
    pub fn holds(&self, condition: Condition) -> bool {
        match condition {
            Condition::Always => true,
            Condition::IfAbsent => !self.is_there(),
            Condition::IfMatch(version) => self.is_there() && self.version == version,
        }
    }

    /// Writes the object.
    pub fn put(&mut self, content: T, condition: Condition, fate: Fate) -> Written {
        if fate == Fate::NotMade {
            return Written::Unknown;
        }
        let holds = self.holds(condition);
        if holds {
            self.content = Some(content);
            self.version += 1;
        }
        match (fate, holds) {
            (Fate::Answered, true) => Written::As(self.version),
            (Fate::Answered, false) => Written::Refused,
            (Fate::AnswerLost | Fate::NotMade, _) => Written::Unknown,
        }
    }

    /// Deletes the object. A store deletes without a condition.
    pub fn delete(&mut self, fate: Fate) {
        if fate != Fate::NotMade {
            self.content = None;
        }
    }
}
