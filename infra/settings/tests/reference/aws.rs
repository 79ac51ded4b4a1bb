//! `template.yaml`, put together of the parts in `infra/aws` and of the table of settings.

mod alarms;
mod entry;
mod parameters;
mod profiles;
mod shape;
mod yaml;

use std::fs;

use crate::file;
use crate::rows::variables;
use entry::{Entry, Piece, pieces};
use shape::{Blocks, fill};

/// The parts with resources, in the order of the template. That of the alarms is a table of rows.
const BEFORE_ALARMS: [&str; 11] = [
    "queues.yaml",
    "buckets.yaml",
    "stack.yaml",
    "functions/about.yaml",
    "functions/publish.yaml",
    "functions/deliver.yaml",
    "functions/wake.yaml",
    "functions/deadletter.yaml",
    "functions/monitor.yaml",
    "functions/manage.yaml",
    "functions/record.yaml",
];

const AFTER_ALARMS: [&str; 2] = ["paging.yaml", "dashboard.yaml"];

/// A part, by its path in `infra/aws`.
fn part(path: &str) -> String {
    let path = file("infra/aws").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The template.
pub(crate) fn composed_template() -> String {
    let alarm_rows = part("alarms.yaml");
    let alarms = alarms::AlarmTable::read(&alarm_rows);
    let mut resources = vec!["Resources:".to_owned()];
    for path in BEFORE_ALARMS {
        resources.extend(indented(&part_resources(path, &Blocks::new())));
        resources.push(String::new());
    }
    resources.extend(indented(&heading(&alarm_rows)));
    resources.push(String::new());
    resources.extend(indented(&alarms.resources(&part("shapes/alarm.yaml"))));
    resources.push(String::new());
    for path in AFTER_ALARMS {
        resources.extend(indented(&part_resources(path, &alarms.blocks())));
        resources.push(String::new());
    }
    let sections = [
        part("opening.yaml") + &parameters::console_groups(),
        parameters::parameters(),
        profiles::mappings(),
        part("rules.yaml"),
        part("conditions.yaml") + &profiles::conditions(),
        part("globals.yaml"),
        resources.join("\n"),
        part("outputs.yaml"),
    ];
    let sections: Vec<_> = sections.iter().map(|section| section.trim_end()).collect();
    sections.join("\n\n") + "\n"
}

/// The comment at the beginning of a part.
fn heading(part: &str) -> Vec<String> {
    let lines = part.lines().take_while(|line| line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

/// The resources of a part, each as it is written or as its shape makes it.
fn part_resources(path: &str, blocks: &Blocks) -> Vec<String> {
    let mut lines = Vec::new();
    for piece in pieces(&part(path)) {
        match piece {
            Piece::Between(line) => lines.push(line),
            Piece::Entry(entry) => lines.extend(entry_resources(&entry, blocks, path)),
        }
    }
    lines
}

fn entry_resources(entry: &Entry, blocks: &Blocks, path: &str) -> Vec<String> {
    let Some(shape) = entry.words.get("shape") else {
        return fill(&entry.written, &Entry::default(), blocks);
    };
    let mut entry = entry.clone();
    let files: Vec<_> = (entry.words.iter())
        .filter(|(_, word)| word.starts_with("shapes/"))
        .map(|(name, path)| (name.clone(), path.clone()))
        .collect();
    for (name, path) in files {
        entry.words.remove(&name);
        let lines = part(&path).lines().map(str::to_owned).collect();
        entry.blocks.insert(name, lines);
    }
    let mut blocks = blocks.clone();
    if shape == "function" {
        let memory = format!("{}Memory", entry.words["Name"]);
        blocks.insert("memory".to_owned(), profiles::member("MemorySize", &memory));
        blocks.insert("settings".to_owned(), settings_of_function(&entry));
    }
    let lines: Vec<_> = part(&format!("shapes/{shape}.yaml"))
        .lines()
        .map(str::to_owned)
        .collect();
    let unused = shape::unused(&lines, &entry);
    assert!(
        unused.is_empty(),
        "{path}: the shape {shape} has no {unused:?}"
    );
    fill(&lines, &entry, &blocks)
}

/// The variables that a function reads and that parameters give it, but for those that its part
/// gives in its own way.
fn settings_of_function(entry: &Entry) -> Vec<String> {
    let own = entry.blocks.get("environment");
    let function = &entry.words["name"];
    let mut lines = Vec::new();
    for variable in variables() {
        let is_read = variable
            .readers
            .iter()
            .any(|reader| reader.as_str() == function);
        let name = variable.name;
        let prefix = format!("{name}:");
        let is_own = own.is_some_and(|lines| lines.iter().any(|line| line.starts_with(&prefix)));
        if let (Some(parameter), true, false) = (variable.parameter, is_read, is_own) {
            lines.extend(profiles::member(name, parameter));
        }
    }
    lines
}

/// Lines as members of what they stand under.
fn indented(lines: &[String]) -> Vec<String> {
    lines
        .iter()
        .map(|line| yaml::indented_line(line, 2))
        .collect()
}
