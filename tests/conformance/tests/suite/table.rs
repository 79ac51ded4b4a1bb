//! Holds the tables of `requirements.md` equal to the tests that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The file of this module, whose own tests check no requirement.
const THIS: &str = "table";

/// The first line of the section in which nothing is named that is tested.
const BY_PEOPLE: &str = "## What only people can check";

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The rows of the tables of tests: what stands between their bars.
fn rows(requirements: &str) -> Vec<Vec<&str>> {
    let tested = requirements.split(BY_PEOPLE).next().unwrap_or_default();
    let rows = tested
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    rows.filter(|row| !row.starts_with("Requirement |"))
        .map(|row| row.split(" | ").collect())
        .collect()
}

/// The tests that a row names.
fn tests_of<'a>(row: &[&'a str]) -> Vec<&'a str> {
    let [_, _, tests] = row else {
        panic!("a row has three columns: {row:?}")
    };
    tests
        .split('`')
        .filter(|piece| piece.contains("::"))
        .collect()
}

/// The functions of a source file that are tests.
fn tests_in(source: &str) -> BTreeSet<String> {
    let name = |line: &str| {
        let rest = line.trim_start_matches("async ").strip_prefix("fn ")?;
        rest.split(['(', '<']).next().map(str::to_owned)
    };
    let lines: Vec<_> = source.lines().map(str::trim).collect();
    let marked = |at: usize| {
        lines[..at]
            .iter()
            .rev()
            .take_while(|line| line.starts_with('#'))
            .any(|line| line.contains("test"))
    };
    lines
        .iter()
        .enumerate()
        .filter(|(at, _)| marked(*at))
        .filter_map(|(_, line)| name(line))
        .collect()
}

/// Every test of this folder stands in a table, and every test in a table exists.
#[test]
fn table_names_every_test_of_this_folder_and_no_other() {
    let requirements = read(&folder().join("requirements.md"));
    let named: BTreeSet<_> = rows(&requirements)
        .iter()
        .flat_map(|row| tests_of(row))
        .filter(|test| !test.contains('/'))
        .map(str::to_owned)
        .collect();
    let mut exist = BTreeSet::new();
    for entry in fs::read_dir(folder().join("tests/suite")).expect("the folder can be read") {
        let path = entry.expect("its entries too").path();
        let module = path
            .file_stem()
            .expect("a file has a name")
            .to_string_lossy()
            .into_owned();
        if path.extension().is_some_and(|extension| extension == "rs") && module != THIS {
            exist.extend(
                tests_in(&read(&path))
                    .into_iter()
                    .map(|test| format!("{module}::{test}")),
            );
        }
    }
    let missing: Vec<_> = exist.symmetric_difference(&named).collect();
    assert!(
        missing.is_empty(),
        "in the tables or among the tests, but not in both: {missing:#?}"
    );
}

#[test]
fn every_test_elsewhere_that_a_table_names_exists() {
    let requirements = read(&folder().join("requirements.md"));
    let rows = rows(&requirements);
    for test in rows
        .iter()
        .flat_map(|row| tests_of(row))
        .filter(|test| test.contains('/'))
    {
        let (file, name) = test.split_once("::").expect("a file and a test");
        let source = read(&folder().join("../..").join(file));
        assert!(tests_in(&source).contains(name), "{test}");
    }
}

#[test]
fn every_requirement_has_a_test() {
    let requirements = read(&folder().join("requirements.md"));
    for row in rows(&requirements) {
        assert!(!tests_of(&row).is_empty(), "{row:?}");
    }
}

#[test]
fn tests_are_found_by_their_attributes() {
    let source = "#[test]\nfn a() {}\nfn b() {}\n#[tokio::test]\n#[expect(x)]\nasync fn c() {}\n";
    assert_eq!(
        tests_in(source),
        BTreeSet::from(["a".to_owned(), "c".to_owned()])
    );
}
