# The commands of the project. `tests/install kit` brings `just` and what these call; `just` lists them.

target := env("CARGO_TARGET_DIR", justfile_directory() / "target")

export PATH := target / "tools/kit/bin" + ":" + env("PATH")

# The program that the suites start. It is built with the tests, with the same features.
export POSTHASTE_BIN := env("POSTHASTE_BIN", target / "debug/posthaste")

# Builds the whole workspace, whichever tests it runs: other packages would mean other features of what they
# share, and everything built again. The packages of a bare `cargo test` happen to have the same features.
nextest := "cargo nextest run --workspace --locked"
slow := "(package(/^posthaste-tests/) + package(posthaste-simulation-long)) - package(posthaste-tests-aws)"

[private]
default:
    @just --list --unsorted

# Format, spelling, workflows, and the lints of what changed since they last ran
check: kit
    prek run --all-files
    cargo clippy --workspace --all-targets --locked -- -D warnings

# Unit tests and the quick simulation (no network), or a SUITE: aws, docs, console, clients (and those of tests/suite)
test suite="quick" *args: kit
    @just test-{{ if suite == "quick" { "quick" } else { "suite " + suite } }} {{ args }}

[private]
test-quick *args:
    cargo nextest run --locked {{ args }}

[private]
test-suite suite *args: programs
    tests/suite {{ suite }} {{ args }}

# Long simulations, end to end, kill -9, counts, conformance; or those whose own or program's name has NAME in it
test-slow name="" *args: programs
    tests/counts/strace
    {{ nextest }} -E '({{ slow }}) & {{ if name == "" { "all()" } else { "(test(~" + name + ") | binary(~" + name + "))" } }}' {{ args }}

# Everything that must pass, as CI runs it
ci:
    tests/run

# Repeat the tests whose own or program's name has NAME in it, each time in a process of its own
stress name="" count="30": programs
    tests/counts/strace
    {{ nextest }} --profile stress --stress-count {{ count }} -E 'not package(posthaste-tests-aws) & {{ if name == "" { "all()" } else { "(test(~" + name + ") | binary(~" + name + "))" } }}'

# A bench by its name, of the program as it is given to others
bench name *args:
    cargo bench -p posthaste-tests --bench {{ name }} -- {{ args }}

[private]
kit:
    @tests/install kit

[private]
programs: kit
    {{ nextest }} --no-run
