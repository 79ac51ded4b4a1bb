"""The template against the programs that it runs, as far as they can be read without compiling."""

import json
import tomllib

from rules import rule
from stack import ROOT

LAMBDA = ROOT / "infra/lambda"
CARGO_LAMBDA = LAMBDA / "CargoLambda.toml"


# The programs, and the functions that each has. Parquet is in the second alone.
PROGRAMS = {
    "posthaste-delivery": ("publish", "deliver", "deadletter", "monitor"),
    "posthaste-log": ("record", "manage", "wake"),
}


@rule
def each_function_is_built_from_its_program(stack):
    program_of = {function: program for program, functions in PROGRAMS.items() for function in functions}
    for name, one in stack.resources.items():
        if one["Type"] != "AWS::Lambda::Function":
            continue
        function = name.removesuffix("Function").lower()
        build = one.get("Metadata", {})
        # SAM reads `Binary` and forgets the rest without a word.
        properties = {"Binary": program_of.get(function)}
        if (build.get("BuildMethod"), build.get("BuildProperties")) != ("rust-cargolambda", properties):
            yield f"{name}: built with {build}, expected {properties}"
        if one["Properties"]["Handler"] != function:
            yield f"{name}: the handler is {one['Properties']['Handler']}, expected {function}"
    folder = stack.written["Globals"]["Function"]["CodeUri"]
    if (ROOT / folder) != LAMBDA:
        yield f"code is built in {folder}"


def measured_profile():
    """The profile `lambda` with what it inherits from `dist`."""
    profiles = tomllib.loads((ROOT / "Cargo.toml").read_text())["profile"]
    profile = {**profiles["dist"], **profiles["lambda"]}
    # `release` is the name that SAM gives it, so that is where these settings are written.
    del profile["inherits"]
    return profile


@rule
def what_sam_builds_is_what_was_measured(stack):
    """`sam build` knows the profile `release` alone, so its settings are written twice. What one profile
    inherits from another is part of both."""
    build = tomllib.loads(CARGO_LAMBDA.read_text())["build"]
    if build.get("disable_optimizations") is not True:
        yield f"{CARGO_LAMBDA.name}: cargo-lambda adds settings of its own"
    sam = tomllib.loads("\n".join(build.get("config", [])))["profile"]["release"]
    expected = {**measured_profile(), "panic": "unwind"}
    said, wanted = set(lines_of_profile(sam)), set(lines_of_profile(expected))
    for line in sorted(said - wanted):
        yield f"{CARGO_LAMBDA.name} says {line}, and the profile `lambda` of Cargo.toml does not"
    for line in sorted(wanted - said):
        yield f"the profile `lambda` of Cargo.toml says {line}, and {CARGO_LAMBDA.name} does not"


def lines_of_profile(profile, prefix=""):
    """The settings of a profile as they stand in CargoLambda.toml, without `profile.release`."""
    for name, value in profile.items():
        if isinstance(value, dict):
            yield from lines_of_profile(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}={json.dumps(value)}"


@rule
def timeouts_are_those_the_code_counts_with(stack):
    expected = {
        "Publish": 75, "Deliver": 120, "Wake": 60, "Deadletter": 60, "Monitor": 60, "Manage": 30,
        "Record": 120,
    }
    found = {
        name.removesuffix("Function"): one["Timeout"]
        for name, one in stack.of("AWS::Lambda::Function").items()
    }
    for name in sorted(
        name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name)
    ):
        yield f"{name}Function: a timeout of {found.get(name)} s, expected {expected.get(name)} s"
