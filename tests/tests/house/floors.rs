//! The rooms of core are floors: production code of a room names its own room and lower ones. Tests
//! may name any room.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::modules::Modules;
use crate::workspace::root;

/// The rooms that core's README lists, the lowest first.
fn listed_floors(readme: &str) -> Vec<String> {
    readme.lines().filter_map(listed_room).collect()
}

/// The room of a line like "3. `events`: …".
fn listed_room(line: &str) -> Option<String> {
    let (number, rest) = line.split_once(". `")?;
    let (room, _) = rest.split_once("`:")?;
    number.parse::<usize>().ok()?;
    Some(room.to_owned())
}

/// The room that a path leads to from a module; `None` if it stays where it begins, or leads to
/// another crate.
fn named_room<'a>(path: &'a [String], module: &'a [String]) -> Option<&'a str> {
    let steps_up = path.iter().take_while(|name| *name == "super").count();
    let (rest, is_from_root) = match path.split_first()? {
        (first, rest) if first == "crate" => (rest, true),
        _ => (&path[steps_up..], steps_up > 0 && steps_up >= module.len()),
    };
    if is_from_root {
        rest.first().map(String::as_str)
    } else {
        None
    }
}

/// The paths that lead to a higher floor, or to none: file, line, and the two rooms.
fn upward_arrows(modules: &Modules, floors: &[String], folder: &Path) -> BTreeSet<String> {
    let floor_of = |room: &str| floors.iter().position(|floor| floor == room);
    let mut arrows = BTreeSet::new();
    for (module_path, module) in modules.iter() {
        let Some(room) = module_path.first() else {
            continue;
        };
        let own_floor = floor_of(room);
        for named in module
            .paths
            .iter()
            .filter_map(|path| named_room(path, module_path))
        {
            let is_allowed = named == room || (own_floor.is_some() && floor_of(named) < own_floor);
            if !is_allowed || floor_of(named).is_none() {
                let file = module.file.strip_prefix(folder).unwrap_or(&module.file);
                let line = first_line_with(&module.file, named);
                arrows.insert(format!("{}:{line}: {room} names {named}\n", file.display()));
            }
        }
    }
    arrows
}

/// The first line of a file that has a room's name in a path.
fn first_line_with(file: &Path, room: &str) -> usize {
    let text = fs::read_to_string(file).expect("it was read before");
    let position = |part: &str| text.lines().position(|line| line.contains(part));
    let line = position(&format!("crate::{room}")).or_else(|| position(&format!("{room}::")));
    line.map_or(1, |index| index + 1)
}

/// The top modules of a crate.
fn top_modules(modules: &Modules) -> BTreeSet<&String> {
    modules
        .iter()
        .filter_map(|(path, _)| path.first())
        .collect()
}

#[test]
fn rooms_of_core_name_no_higher_room() {
    let core = root().join("shared/core");
    let readme = fs::read_to_string(core.join("README.md")).expect("core has a README");
    let floors = listed_floors(&readme);
    let modules = Modules::of(&core.join("src/lib.rs"));
    assert_eq!(top_modules(&modules), floors.iter().collect());
    let arrows = upward_arrows(&modules, &floors, &root());
    assert!(
        arrows.is_empty(),
        "{}",
        arrows.into_iter().collect::<String>()
    );
}

/// The upward arrows of a crate with the floors `low` and `high`, whose files have these texts.
fn arrows_between(low: &str, high: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("there is room for it");
    for (name, text) in [
        ("lib.rs", "mod high; mod low;"),
        ("low.rs", "mod inner;"),
        ("low/inner.rs", low),
        ("high.rs", high),
    ] {
        let file = folder.path().join(name);
        fs::create_dir_all(file.with_file_name("")).expect("it is made");
        fs::write(file, text).expect("it is written");
    }
    let floors = listed_floors("1. `low`: data\n2. `high`: rules\n");
    let modules = Modules::of(&folder.path().join("lib.rs"));
    let arrows = upward_arrows(&modules, &floors, folder.path());
    arrows.into_iter().collect()
}

const UPWARD: &str = "low/inner.rs:2: low names high\n";

#[test]
fn upward_path_is_named_with_file_line_and_rooms() {
    for low in [
        "\nuse crate::high::Rule;",
        "\nuse crate::high;",
        "\nfn rule() { crate::high::rule(); }",
        "\nstruct Data(crate::high::Rule);",
        "\nuse super::super::high::Rule;",
    ] {
        assert_eq!(arrows_between(low, ""), [UPWARD], "{low}");
    }
}

#[test]
fn path_to_the_own_or_a_lower_floor_is_no_arrow_upward() {
    let low = "use super::inner; use crate::low::Data; use std::fmt;";
    let high = "use crate::low::Data; fn rule() { crate::low::data(); }";
    assert!(arrows_between(low, high).is_empty());
}

#[test]
fn test_may_look_up() {
    let low = "#[cfg(test)] mod tests { use crate::high::Rule; } #[cfg(test)] use crate::high;";
    assert!(arrows_between(low, "").is_empty());
}

#[test]
fn room_without_a_floor_is_named() {
    let high = "\nuse crate::cellar::Data;";
    let expected = "high.rs:2: high names cellar\n";
    assert_eq!(arrows_between("", high), [expected]);
}
