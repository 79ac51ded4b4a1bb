//! The `posthaste` binary. The library of the same name chooses what to run.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// A delivery makes many short-lived values, and hands them from thread to thread. The allocator of
/// the C library spends a fifth of the processor time on that (decision 0163).
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    posthaste::run(std::env::args_os())
}
