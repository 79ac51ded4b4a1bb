//! Methods of a struct or enum lie in one file, or in two: what is spread over more is several
//! things under one name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::modules::Modules;
use crate::workspace::{crate_roots, root};

/// The most files that methods of one type lie in.
const FILES_MAX: usize = 2;

/// The files with methods of each type of a crate.
type MethodFiles = BTreeMap<String, BTreeSet<PathBuf>>;

fn method_files(modules: &Modules) -> MethodFiles {
    let mut files = MethodFiles::new();
    for (_, module) in modules.iter().filter(|(_, it)| !is_for_tests(&it.file)) {
        for name in &module.types_with_methods {
            let of_type = files.entry(name.clone()).or_default();
            of_type.insert(module.file.clone());
        }
    }
    files
}

/// Whether a file is there for the tests of other crates.
fn is_for_tests(file: &Path) -> bool {
    let has_name = |name: &str| file.components().any(|part| part.as_os_str() == name);
    ["testkit", "testing", "testing.rs"]
        .iter()
        .any(|name| has_name(name))
}

/// The types whose methods lie in too many files.
fn spread_types(files: &MethodFiles) -> impl Iterator<Item = &String> {
    let spread = files.iter().filter(|(_, files)| files.len() > FILES_MAX);
    spread.map(|(name, _)| name)
}

/// The folder of a crate, as `shared/core`.
fn crate_folder(first_file: &Path) -> String {
    let file = first_file.strip_prefix(root()).unwrap_or(first_file);
    let parts = file.iter().take(2).map(|part| part.to_string_lossy());
    parts.collect::<Vec<_>>().join("/")
}

#[test]
fn methods_of_a_type_lie_in_two_files_at_most() {
    let mut by_crate = BTreeMap::<String, MethodFiles>::new();
    for first in crate_roots() {
        let folder = crate_folder(&first);
        if !["shared/", "functions/", "infra/"]
            .iter()
            .any(|it| folder.starts_with(it))
        {
            continue;
        }
        let of_crate = by_crate.entry(folder).or_default();
        for (name, files) in method_files(&Modules::of(&first)) {
            of_crate.entry(name).or_default().extend(files);
        }
    }
    let spread: BTreeSet<_> = by_crate
        .iter()
        .flat_map(|(folder, files)| spread_types(files).map(|name| (&**folder, &**name)))
        .collect();
    assert!(
        spread.is_empty(),
        "methods in more than {FILES_MAX} files: {spread:?}"
    );
}

/// The types of a crate that are spread, where three files have an item each.
fn spread_over_three(items: [&str; 3]) -> Vec<String> {
    let folder = tempfile::tempdir().expect("there is room for it");
    let first = folder.path().join("lib.rs");
    std::fs::write(&first, "mod one; mod two; mod three;").expect("it is written");
    for (name, text) in ["one.rs", "two.rs", "three.rs"].iter().zip(items) {
        std::fs::write(folder.path().join(name), text).expect("it is written");
    }
    let files = method_files(&Modules::of(&first));
    spread_types(&files).cloned().collect()
}

#[test]
fn methods_in_three_files_are_found() {
    let method = "impl<T> Struct<T> { fn method() {} }";
    assert_eq!(spread_over_three([method; 3]), ["Struct"]);
    let in_a_group = "impl super::Struct { fn method() {} } impl Other {}";
    assert_eq!(spread_over_three([method, method, in_a_group]), ["Struct"]);
}

#[test]
fn traits_tests_and_two_files_are_no_spread() {
    let method = "impl Struct { fn method() {} }";
    for other in [
        "impl Clone for Struct { fn clone(&self) -> Self { Self } }",
        "#[cfg(test)] mod tests { impl super::Struct { fn method() {} } }",
        "#[cfg(test)] impl Struct { fn method() {} }",
        "impl Other { fn method() {} }",
    ] {
        let none: [String; 0] = [];
        assert_eq!(spread_over_three([method, method, other]), none, "{other}");
    }
}
