"""The programs, built for every machine that a release is for: static ones, so that they run on any Linux."""

import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
TOOLS = pathlib.Path(os.environ.get("POSTHASTE_TOOLS", TARGET / "tools"))

# A machine: its name in Debian and Go, the one in Rust and RPM, and the one in AWS.
MACHINES = {
    "amd64": ("x86_64", "x86_64"),
    "arm64": ("aarch64", "arm64"),
}

FUNCTIONS = ("posthaste-delivery", "posthaste-log")


class Trouble(Exception):
    """What went wrong, for the person at the terminal."""


def run(*command, **options):
    """Runs a command whose failure ends everything."""
    try:
        return subprocess.run([str(word) for word in command], check=True, text=True, **options)
    except FileNotFoundError as error:
        raise Trouble(f"{command[0]} is not there; tests/install installs it") from error
    except subprocess.CalledProcessError as error:
        raise Trouble(f"{' '.join(str(word) for word in command)} ended with {error.returncode}") from error


def version():
    """The version of the workspace."""
    return of_workspace("version")


def repository():
    """The address of the repository."""
    return of_workspace("repository")


def of_workspace(member):
    for line in (ROOT / "Cargo.toml").read_text().splitlines():
        if line.startswith(f"{member} = "):
            return line.split('"')[1]
    raise Trouble(f"Cargo.toml names no {member}")


def commit():
    """The commit of the source, which `/version` says."""
    return run("git", "rev-parse", "HEAD", cwd=ROOT, stdout=subprocess.PIPE).stdout.strip()


def build(package, programs, machine, profile):
    """Builds the programs of a package for a machine, and answers where each lies."""
    rust, _ = MACHINES[machine]
    target = f"{rust}-unknown-linux-musl"
    tools = TOOLS / "cross/bin"
    environment = dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}", POSTHASTE_COMMIT=commit())
    run(ROOT / "tests/install", "cross")
    run("rustup", "target", "add", target)
    run("cargo", "zigbuild", "--locked", "--profile", profile, "--package", package, "--bins",
        "--target", target, cwd=ROOT, env=environment)
    return {name: TARGET / target / profile / name for name in programs}


def stripped(program, path):
    """A copy without symbols, where it has some: they are most of a program that was built quickly."""
    shutil.copyfile(program, path)
    path.chmod(0o755)
    subprocess.run(["strip", path], stderr=subprocess.DEVNULL, check=False)
    return path
