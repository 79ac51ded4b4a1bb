//! Small crates that show which circles the test finds.

use std::fs;
use std::path::Path;

use crate::circles::circles;
use crate::modules::Modules;
use crate::needs::arrows;

/// The circles of a crate with these files, each a name and its text.
fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().expect("there is room for it");
    for (name, text) in files {
        let file = folder.path().join(name);
        fs::create_dir_all(file.with_file_name("")).expect("it is made");
        fs::write(file, text).expect("it is written");
    }
    let name = |file: &Path| {
        let name = file.strip_prefix(folder.path());
        name.expect("all files are in it").display().to_string()
    };
    let arrows = arrows(&Modules::of(&folder.path().join("lib.rs")));
    circles(&arrows)
        .iter()
        .map(|circle| circle.iter().map(|file| name(file)).collect())
        .collect()
}

/// The circles of a crate in which `run.rs` gives `answer`, and `batch/event.rs` has `EventError`.
fn circles_of_batch_and_run(batch: &str, run: &str) -> Vec<Vec<String>> {
    circles_of(&[
        ("lib.rs", "mod batch; mod run;"),
        ("batch.rs", batch),
        ("batch/event.rs", "pub struct EventError;"),
        ("run.rs", run),
    ])
}

const CIRCLE: [[&str; 2]; 1] = [["batch.rs", "run.rs"]];

#[test]
fn files_that_mention_one_another_are_a_circle() {
    let batch = "pub struct Batch; fn batch() { crate::run::answer() }";
    let run = "pub fn answer() { let _ = crate::batch::Batch; }";
    assert_eq!(circles_of_batch_and_run(batch, run), CIRCLE);
}

#[test]
fn single_direction_is_no_circle() {
    let batch = "mod event; fn batch() { crate::run::answer() }";
    let run = "pub fn answer() { let _ = crate::batch::event::EventError; }";
    assert!(circles_of_batch_and_run(batch, run).is_empty());
}

#[test]
fn names_alike_in_two_functions_need_both_files() {
    let batch = "mod event; pub struct Batch; \
        fn first() { use crate::run::answer; } fn second() { use self::event::answer; }";
    let run = "pub fn answer() { let _ = crate::batch::Batch; }";
    assert_eq!(circles_of_batch_and_run(batch, run), CIRCLE);
}

#[test]
fn name_from_a_file_with_code_needs_that_file() {
    let batch = "mod event; pub use event::EventError; fn batch() { crate::run::answer() }";
    let imported = "use crate::batch::EventError; pub fn answer() {}";
    let mentioned = "pub fn answer() { let _ = crate::batch::EventError; }";
    assert_eq!(circles_of_batch_and_run(batch, imported), CIRCLE);
    assert_eq!(circles_of_batch_and_run(batch, mentioned), CIRCLE);
}

#[test]
fn name_through_a_glob_of_a_file_with_code_needs_that_file() {
    let batch = "mod event; pub use event::*; fn batch() { crate::run::answer() }";
    let run = "use crate::batch::EventError; pub fn answer() {}";
    assert_eq!(circles_of_batch_and_run(batch, run), CIRCLE);
}

#[test]
fn name_through_two_globs_needs_the_file_that_defines_it() {
    let files = [
        ("lib.rs", "mod model;"),
        ("model.rs", "mod name; mod topic; pub use topic::*;"),
        ("model/name.rs", "pub struct Name(super::Kind);"),
        ("model/topic.rs", "mod kind; pub use kind::*;"),
        (
            "model/topic/kind.rs",
            "pub struct Kind(crate::model::name::Name);",
        ),
    ];
    assert_eq!(
        circles_of(&files),
        [["model/name.rs", "model/topic/kind.rs"]]
    );
}

#[test]
fn function_named_like_its_module_needs_the_file_handing_it_on() {
    let files = [
        ("lib.rs", "mod batch; mod run;"),
        (
            "batch.rs",
            "mod event; pub use event::event; fn batch() { crate::run::answer() }",
        ),
        ("batch/event.rs", "pub fn event() {}"),
        ("run.rs", "pub fn answer() { crate::batch::event() }"),
    ];
    assert_eq!(circles_of(&files), CIRCLE);
}

#[test]
fn name_of_another_crate_needs_the_file_that_hands_it_on() {
    let batch = "use std::time::Duration; fn batch() { crate::run::answer() }";
    let run = "use crate::batch::Duration; pub fn answer() {}";
    assert_eq!(circles_of_batch_and_run(batch, run), CIRCLE);
}

#[test]
fn code_of_an_inline_module_is_code_of_its_file() {
    let batch =
        "mod event; pub use event::EventError; mod inline { use crate::run::answer; fn f() {} }";
    let run = "use crate::batch::EventError; pub fn answer() {}";
    assert_eq!(circles_of_batch_and_run(batch, run), CIRCLE);
}

/// The circles of a crate whose file `model.rs` is a mere list, with the text of one file in it.
fn circles_of_list(name: &str) -> Vec<Vec<String>> {
    circles_of(&[
        ("lib.rs", "mod model;"),
        (
            "model.rs",
            "mod name; mod topic; pub use name::*; pub use topic::Topic; #[cfg(test)] mod tests { fn test() {} }",
        ),
        ("model/name.rs", name),
        ("model/topic.rs", "use super::Name; pub struct Topic(Name);"),
    ])
}

#[test]
fn mere_list_of_names_is_in_no_circle() {
    assert!(circles_of_list("pub struct Name;").is_empty());
}

#[test]
fn name_from_a_mere_list_needs_the_file_that_defines_it() {
    let name = "use super::Topic; pub struct Name(Topic);";
    assert_eq!(circles_of_list(name), [["model/name.rs", "model/topic.rs"]]);
}

#[test]
fn name_of_another_crate_from_a_mere_list_needs_no_file() {
    let files = [
        (
            "lib.rs",
            "mod name; pub use name::Name; use std::time::Duration;",
        ),
        ("name.rs", "pub struct Name(crate::Duration);"),
    ];
    assert!(circles_of(&files).is_empty());
}

#[test]
fn name_needs_no_file_whose_glob_does_not_have_it() {
    let files = [
        ("lib.rs", "mod model;"),
        (
            "model.rs",
            "mod kind; mod name; mod topic; pub use name::*; pub use topic::*;",
        ),
        ("model/kind.rs", "pub struct Kind(super::Topic);"),
        ("model/name.rs", "pub struct Name(super::kind::Kind);"),
        ("model/topic.rs", "pub struct Topic;"),
    ];
    assert!(circles_of(&files).is_empty());
}

#[test]
fn globs_of_one_another_come_to_an_end() {
    let batch = "pub use crate::run::*; pub fn batch() {}";
    let run = "pub use crate::batch::*; fn run() { crate::batch::missing() }";
    assert_eq!(circles_of_batch_and_run(batch, run), CIRCLE);
}
