//! Allocations of a server in this process. The endpoint and the publisher beside it allocate
//! nothing.

use std::alloc::System;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::time::Duration;

use posthaste_cli::cli::{CliCommand, CommandLine};
use posthaste_core::circuit::HealthSettings;
use posthaste_core::pressure::PressureSettings;
use posthaste_server::{RunningServer, ServeSettings};
use posthaste_tests::api::Api;
use posthaste_tests::home::Home;
use posthaste_tests_counts::{Case, Endpoint, Figure, Load, WindowCounts, each_case, hold};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::runtime;

/// Counts what every thread of the process asks for.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Worker threads of the server, so that it has the same number on every machine.
const WORKERS: usize = 2;

const DRAIN_TIMEOUT: Duration = Duration::from_mins(1);

each_case!(check);

fn check(case: Case) {
    let endpoint = Endpoint::take();
    let home = Home::new();
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime starts");
    let app = runtime
        .block_on(RunningServer::start(&settings(case, home.path())))
        .expect("the server starts");
    let api = Api::new(app.publish_url(), app.admin_key().expose());
    let mut load = Load::start(case, &api, &endpoint);
    let count = || {
        let syncs = app.sync_count();
        let region = Region::new(ALLOCATOR);
        let time = load.run_window();
        let change = region.change();
        let syncs = app.sync_count() - syncs;
        let counts = [
            change.allocations + change.reallocations,
            change.bytes_allocated,
        ];
        WindowCounts {
            counts: counts.map(|count| u32::try_from(count).expect("a window is short")),
            syncs: u32::try_from(syncs).expect("a window is short"),
            time,
        }
    };
    let figures = [Figure::Allocations, Figure::AllocatedBytes];
    let held = catch_unwind(AssertUnwindSafe(|| hold(case, figures, count)));
    // A runtime with a server that was not drained may wait for ever when it is dropped.
    runtime
        .block_on(app.drain(DRAIN_TIMEOUT))
        .expect("the server ends well");
    if let Err(panic) = held {
        resume_unwind(panic);
    }
}

/// The settings of `posthaste serve` with the options of a case.
fn settings(case: Case, data_dir: &Path) -> ServeSettings {
    let line = [
        "posthaste",
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--allow-endpoints",
        "127.0.0.0/8",
    ];
    let line = line.iter().chain(case.options()).map(Into::into);
    let line = line.chain(["--data-dir".into(), data_dir.into()]);
    let CommandLine { global, command } =
        CommandLine::from_arguments(line).expect("serve has these options");
    let CliCommand::Serve(options) = command else {
        panic!("not the command serve")
    };
    let settings = ServeSettings::from_arguments(
        &global,
        &options,
        PressureSettings::default(),
        HealthSettings::default(),
    );
    settings.expect("the settings fit each other")
}
