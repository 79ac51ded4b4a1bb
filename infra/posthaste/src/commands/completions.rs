//! `completions`: the script by which a shell completes commands and options.

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::cli::Cli;
use crate::output::Reply;

pub(crate) fn run(shell: Shell) -> Reply {
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "posthaste", &mut script);
    Reply::silent().line(String::from_utf8_lossy(&script).trim_end())
}
