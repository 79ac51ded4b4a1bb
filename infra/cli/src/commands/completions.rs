//! `completions`: the script by which a shell completes commands and options.

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::cli::CommandLine;
use crate::output::CommandReply;

pub fn run(shell: Shell) -> CommandReply {
    let mut script = Vec::new();
    generate(shell, &mut CommandLine::command(), "posthaste", &mut script);
    CommandReply::without_json().line(String::from_utf8_lossy(&script).trim_end())
}
