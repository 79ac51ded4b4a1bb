//! No files of a crate need one another in a circle: of two that do, neither is understood without
//! the other.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::modules::Modules;
use crate::needs::{Arrows, arrows};
use crate::workspace::{crate_roots, root};

/// Files each of which needs each other one.
type Circle = BTreeSet<PathBuf>;

/// The files that a file needs, and those that these need, and so on.
fn needed<'a>(file: &'a Path, arrows: &'a Arrows) -> BTreeSet<&'a Path> {
    let mut needed = BTreeSet::new();
    let mut next = vec![file];
    while let Some(file) = next.pop() {
        next.extend(
            arrows
                .get(file)
                .into_iter()
                .flatten()
                .map(PathBuf::as_path)
                .filter(|to| needed.insert(*to)),
        );
    }
    needed
}

pub(crate) fn circles(arrows: &Arrows) -> BTreeSet<Circle> {
    let is_needed = |by: &Path, file: &Path| needed(by, arrows).contains(file);
    let circle = |file: &PathBuf| -> Circle {
        needed(file, arrows)
            .into_iter()
            .filter(|other| is_needed(other, file))
            .map(Path::to_owned)
            .collect()
    };
    arrows
        .keys()
        .map(circle)
        .filter(|circle| !circle.is_empty())
        .collect()
}

/// The arrows of a circle, a file a line.
fn drawn(circle: &Circle, arrows: &Arrows) -> String {
    let inside = |from: &PathBuf| {
        arrows[from]
            .intersection(circle)
            .map(|file| shown(file))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let lines = circle
        .iter()
        .map(|file| format!("  {} needs {}\n", shown(file), inside(file)));
    format!("{} files:\n{}", circle.len(), lines.collect::<String>())
}

fn shown(file: &Path) -> String {
    file.strip_prefix(root())
        .unwrap_or(file)
        .display()
        .to_string()
}

#[test]
fn files_of_a_crate_do_not_need_one_another_in_a_circle() {
    let mut drawings = String::new();
    for first in crate_roots() {
        let arrows = arrows(&Modules::of(&first));
        for circle in circles(&arrows) {
            drawings.push_str(&drawn(&circle, &arrows));
        }
    }
    assert!(drawings.is_empty(), "{drawings}");
}
