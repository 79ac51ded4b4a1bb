//! The `posthaste` binary. Everything is in the library of the same name.

use std::process::ExitCode;

fn main() -> ExitCode {
    posthaste::run(std::env::args_os())
}
