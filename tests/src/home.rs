//! A data folder of a test, and what the program keeps in it for people to open.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::binary::posthaste;
use crate::patience::wait_until;
use crate::server::Server;

/// A data folder, empty at first, gone in the end.
#[derive(Debug)]
pub struct Home(TempDir);

impl Home {
    /// An empty one.
    pub fn new() -> Self {
        Self(TempDir::with_prefix("posthaste-test-").expect("there is room for a temporary folder"))
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Starts a server on it.
    pub fn serve(&self) -> Server {
        Server::start(self.path(), &[])
    }

    /// Runs a command of the program's against a server on it, and waits for its end.
    pub fn run(&self, server: &Server, arguments: &[&str]) -> Output {
        let mut command = Command::new(posthaste());
        // Before the command, so that it may end with `--` and a word.
        command
            .args(["--url", server.url()])
            .arg("--data-dir")
            .arg(self.path())
            .args(arguments);
        command.output().expect("posthaste starts")
    }

    /// The same with `--json`, for commands that must succeed.
    pub fn run_json(&self, server: &Server, arguments: &[&str]) -> Value {
        let output = self.run(server, &[&["--json"], arguments].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?} failed: {error}");
        serde_json::from_slice(&output.stdout).expect("--json answers JSON")
    }

    /// The files that hold a subscription's dead letters.
    pub fn dead_letter_files(&self, topic: &str, subscription: &str) -> Vec<PathBuf> {
        let folder = self.path().join("dead-letters");
        let mut files = Vec::new();
        collect(
            &folder
                .join(topic.to_uppercase())
                .join(subscription.to_uppercase()),
            &mut files,
        );
        files.sort();
        files
    }

    /// A subscription's dead letters until now, of all its files.
    pub fn dead_letters(&self, topic: &str, subscription: &str) -> Vec<Value> {
        let read = |file: PathBuf| -> Vec<Value> {
            let bytes = fs::read(&file).expect("a dead-letter file can be read");
            serde_json::from_slice(&bytes).expect("a dead-letter file is a whole JSON array")
        };
        self.dead_letter_files(topic, subscription)
            .into_iter()
            .flat_map(read)
            .collect()
    }

    /// Waits until a subscription has this number of dead letters.
    pub fn wait_for_dead_letters(
        &self,
        topic: &str,
        subscription: &str,
        count: usize,
    ) -> Vec<Value> {
        wait_until(
            &format!("{count} dead letters of {topic}/{subscription}"),
            || {
                let letters = self.dead_letters(topic, subscription);
                (letters.len() >= count).then_some(letters)
            },
        )
    }

    /// Waits for a subscription's only dead letter.
    pub fn wait_for_dead_letter(&self, topic: &str, subscription: &str) -> Value {
        let letters = self.wait_for_dead_letters(topic, subscription, 1);
        let [letter] = <[Value; 1]>::try_from(letters).expect("there is one dead letter only");
        letter
    }
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    // A missing folder holds no files; the program makes its folders when it needs them.
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.expect("a folder can be read").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            files.push(path);
        }
    }
}
