//! Help, completion scripts and manual pages, which are all made of one definition.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::common::{failure, run};
use clap::CommandFactory;
use posthaste_cli::cli::CommandLine;

const SHELLS: [&str; 5] = ["bash", "elvish", "fish", "powershell", "zsh"];

fn stdout(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert_eq!(failure(&output), (0, String::new()), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Every command, as it is called, with its definition.
fn commands() -> Vec<(Vec<String>, clap::Command)> {
    fn collect(
        path: &[String],
        command: &clap::Command,
        found: &mut Vec<(Vec<String>, clap::Command)>,
    ) {
        found.push((path.to_owned(), command.clone()));
        for below in command
            .get_subcommands()
            .filter(|it| it.get_name() != "help")
        {
            collect(
                &[path, &[below.get_name().to_owned()]].concat(),
                below,
                found,
            );
        }
    }
    let mut root = CommandLine::command();
    let mut found = Vec::new();
    root.build();
    collect(&[], &root, &mut found);
    found
}

#[test]
fn help_fits_a_terminal_and_has_the_global_options_last() {
    for (path, _) in commands() {
        let help = stdout(
            &[
                path.iter().map(String::as_str).collect::<Vec<_>>(),
                vec!["--help"],
            ]
            .concat(),
        );
        let headings: Vec<_> = help
            .lines()
            .take_while(|line| !line.starts_with("Example") && !line.starts_with("First"))
            .filter(|line| line.ends_with(':') && !line.starts_with(' '))
            .collect();
        let global = headings.iter().position(|it| *it == "Global options:");
        assert!(
            global > headings.iter().position(|it| *it == "Options:"),
            "{path:?}: {headings:?}"
        );
        let own = help.split("Global options:").next().unwrap();
        let is_global = |line: &str| {
            ["--json", "--data-dir"]
                .iter()
                .any(|it| line.trim().starts_with(it))
        };
        assert!(!own.lines().any(is_global), "{path:?}: {own}");
        assert!(
            help.lines().all(|line| line.chars().count() <= 100),
            "{path:?}: {help}"
        );
    }
}

#[test]
fn help_of_serve_has_headings() {
    let help = stdout(&["serve", "--help"]);
    let place = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text}: {help}"));
    let order = [
        "\nOptions:",
        "--listen",
        "\nDelivery:",
        "--requests-per-link-max",
        "\nBack pressure:",
        "--pressure-profile",
        "\nIncoming connections:",
        "\nLog:",
        "--log-filter",
        "\nGlobal options:",
        "\nExamples:",
    ];
    assert!(order.map(place).is_sorted(), "{help}");
}

#[test]
fn each_shell_gets_a_script_that_names_every_command() {
    for shell in SHELLS {
        let script = stdout(&["completions", shell]);
        for (path, _) in commands() {
            assert!(
                path.last().is_none_or(|name| script.contains(name)),
                "{shell}: {path:?}"
            );
        }
    }
    let (code, error) = failure(&run(&["completions", "tcsh"]));
    assert!(
        code == 2 && SHELLS.iter().all(|shell| error.contains(shell)),
        "{error}"
    );
}

/// The completions that bash offers after these words, the last of which is begun.
fn completed(words: &[&str]) -> Vec<String> {
    let script = stdout(&["completions", "bash"]);
    let last = words.len() - 1;
    let ask = format!(
        "COMP_WORDS=({})\nCOMP_CWORD={last}\n_posthaste posthaste '{}' '{}'\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.join(" "),
        words[last],
        words[last - 1],
    );
    let mut bash = Command::new("bash");
    let bash = bash
        .args(["--norc", "-s"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut bash = bash.spawn().unwrap();
    write!(bash.stdin.take().unwrap(), "{script}\n{ask}\n").unwrap();
    let output = bash.wait_with_output().unwrap();
    assert_eq!(failure(&output), (0, String::new()));
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn bash_completes_commands_options_and_values() {
    assert_eq!(completed(&["posthaste", "pub"]), ["publish"]);
    assert_eq!(
        completed(&["posthaste", "subscriptions", "ro"]),
        ["rotate-secret"]
    );
    assert_eq!(
        completed(&["posthaste", "serve", "--allow"]),
        ["--allow-endpoints"]
    );
    assert_eq!(completed(&["posthaste", "serve", "--log", "p"]), ["pretty"]);
    assert_eq!(
        completed(&["posthaste", "dead-letters", "list", "--reason", "End"]),
        ["EndpointGone"]
    );
    assert_eq!(completed(&["posthaste", "nothing-like-this"]), [""]);
}

#[test]
fn man_writes_a_page_for_every_command_that_names_each_option() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("share/man/man1");
    let said = stdout(&["man", pages.to_str().unwrap()]);
    let file =
        |path: &[String]| format!("{}.1", [&["posthaste".to_owned()], path].concat().join("-"));
    let expected: BTreeSet<_> = commands().iter().map(|(path, _)| file(path)).collect();
    let names = fs::read_dir(&pages)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.collect::<BTreeSet<_>>(), expected);
    assert_eq!(
        said,
        format!("wrote {} pages to {}\n", expected.len(), pages.display())
    );
    for (path, command) in commands() {
        let page = fs::read_to_string(pages.join(file(&path)))
            .unwrap()
            .replace("\\-", "-");
        for option in command.get_arguments().filter_map(clap::Arg::get_long) {
            assert!(
                page.contains(&format!("--{option}")),
                "{path:?}: --{option}"
            );
        }
        assert!(!page.contains("posthaste-help"), "{path:?}");
        let after = command
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        let examples = after.lines().filter(|line| line.starts_with("  posthaste"));
        examples.for_each(|line| assert!(page.contains(line), "{path:?}: {line}"));
    }
}

#[test]
fn a_page_is_one_for_groff() {
    let Ok(groff) = Command::new("groff").arg("--version").output() else {
        eprintln!("no groff here: the pages are not rendered");
        return;
    };
    assert!(groff.status.success());
    let folder = tempfile::tempdir().unwrap();
    stdout(&["man", folder.path().to_str().unwrap()]);
    for entry in fs::read_dir(folder.path()).unwrap() {
        let page = entry.unwrap().path();
        let output = Command::new("groff")
            .args(["-man", "-Tutf8", "-P-cbou", "-ww"])
            .arg(&page)
            .output()
            .unwrap();
        assert_eq!(failure(&output), (0, String::new()), "{}", page.display());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            ["NAME", "SYNOPSIS", "OPTIONS"]
                .iter()
                .all(|word| text.contains(word)),
            "{text}"
        );
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_1_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let (code, error) = failure(&run(&["man", file.join("man1").to_str().unwrap()]));
    assert!(code == 1 && error.contains("file/man1"), "{error}");
}
