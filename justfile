# The commands of the project. `tests/install kit` brings `just` and what these call; `just` lists them.

set positional-arguments

target := env("CARGO_TARGET_DIR", justfile_directory() / "target")
tools := env("POSTHASTE_TOOLS", target / "tools")

export PATH := tools / "kit/bin" + ":" + env("PATH")

# The program that the suites start: one that is given, or that of the tests, which is built with the same features.
program := env("POSTHASTE_BIN", target / "debug/posthaste")

# How often `just stress` repeats: `just count=3 stress NAME`.
count := "30"

# Builds the whole workspace, whichever tests it runs: other packages would mean other features of what they
# share, and everything built again. The packages of a bare `cargo test` happen to have the same features.
nextest := "cargo nextest run --workspace --locked"

[private]
default:
    @just --list --unsorted

# Format, spelling, workflows, dependencies, and the lints of what changed since they last ran
check: kit
    prek run --all-files
    cargo deny --locked check licenses bans sources
    cargo clippy --workspace --all-targets --locked -- -D warnings

# Unit tests and the quick simulation (no network), or a SUITE: aws, docs, console, clients (and those of tests/suite)
test suite="quick" *args: kit
    @if [ "$#" -gt 0 ]; then shift; fi; {{ if suite == "quick" { "just test-quick" } else { "just test-suite " + suite } }} "$@"

[private]
test-quick *args:
    cargo nextest run --locked "$@"

[private]
test-suite suite *args: programs
    POSTHASTE_BIN={{ program }} tests/suite "$@"

# Long simulations, end to end, kill -9, counts, conformance; or some: a part of a name, or -E 'binary(kill_nine)'
test-slow *args: programs
    tests/counts/strace
    tests/torture/faketime
    POSTHASTE_BIN={{ program }} {{ nextest }} --profile slow "$@"

# Everything that must pass, as CI runs it
ci:
    tests/run

# What a release consists of, into target/release-files: packages, images, Lambda's programs, checksums (20 minutes)
dist *args: kit
    packaging/dist "$@"

# Repeat tests, each time in a process of its own: a part of a name, or -E 'binary(kill_nine)'; without, all
stress *args: programs
    tests/counts/strace
    tests/torture/faketime
    POSTHASTE_BIN={{ program }} {{ nextest }} --profile stress --stress-count {{ count }} "$@"

# The real program under everything that can happen to it: `--minutes 60 --seed 7`, and `--former PROGRAM`
torture *args: programs
    tests/counts/strace
    POSTHASTE_BIN={{ program }} {{ target }}/debug/posthaste-tests-torture --clock "$(tests/torture/faketime)" "$@"

# The functions on the emulator, killed and frozen in the middle of their work: `--minutes 60 --seed 7`
torture-functions *args: programs
    POSTHASTE_BIN={{ program }} tests/aws/deployed/run torture "$@"

# Two faults in one run of a scenario: so many pairs of each, drawn by POSTHASTE_SEED, or `all`, which takes days
pairs number="1000": programs
    POSTHASTE_PAIRS={{ number }} {{ nextest }} --profile pairs --success-output immediate -E 'test(/^pairs::/)'

# Random histories with one checker, for as long as asked: --minutes 10 --from 1, or one: --seed 42 --shrink
campaign *args: kit
    cargo run --quiet --profile campaign --package posthaste-simulation-campaign --locked -- "$@"

# Bytes from outside into every reader of them: --minutes 30 --seed 1, --target NAME, or long ones with --growth
fuzz *args: programs
    {{ target }}/debug/posthaste-tests-parsers "$@"

# The last release, built from its commit, beside this one on the emulator, there and back
former: programs
    POSTHASTE_BIN={{ program }} tests/former/run

# A bench by its name, of the program as it is given to others, unless POSTHASTE_BIN names another
bench name *args:
    @shift; cargo bench -p posthaste-tests --bench {{ name }} -- "$@"

[private]
kit:
    @tests/install kit

[private]
programs: kit
    {{ nextest }} --no-run
