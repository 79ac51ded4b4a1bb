"""The programs of the functions, built by cargo and packed as Lambda wants them: a zip with one program named
`bootstrap`."""

import json
import pathlib
import shutil
import subprocess
import tempfile
import zipfile

from emulator import Trouble

PROGRAMS = ("posthaste-delivery", "posthaste-log")

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A handler that no program has, and what each program says of such a one before it ends.
NO_HANDLER, REFUSAL = "none", "is not in this program"

# A program that refuses its handler ends within milliseconds; this is for a machine that is busy.
REFUSAL_SECS_MAX = 30


def build(profile):
    """Builds the programs for this machine, and answers where each lies."""
    if not shutil.which("cargo"):
        raise Trouble(
            "cargo is not on the PATH, and the functions are built with it: install Rust (https://rustup.rs), "
            "or give programs that are there with --binaries"
        )
    command = ["cargo", "build", "--locked", "--package", "posthaste-lambda", "--bins", "--profile", profile]
    messages = subprocess.run(
        [*command, "--message-format", "json-render-diagnostics"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
    )
    if messages.returncode != 0:
        raise Trouble(f"cargo build ended with {messages.returncode}; what it said stands above")
    # cargo says where it put them, which depends on CARGO_TARGET_DIR, the profile and cargo's own
    # configuration.
    built = {}
    for line in messages.stdout.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["executable"]:
            built[message["target"]["name"]] = pathlib.Path(message["executable"])
    return {name: built[name] for name in PROGRAMS}


def check(programs):
    """Starts each program with a handler that it does not have. One that cannot run here, or is another
    program, would otherwise show as an error of the deployed function."""
    for name, path in programs.items():
        if not path.is_file():
            raise Trouble(f"{path} is not there: --binaries takes a folder with {' and '.join(PROGRAMS)}")
        try:
            done = subprocess.run(
                [path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, errors="replace", timeout=REFUSAL_SECS_MAX, env={"_HANDLER": NO_HANDLER},
            )
        except OSError as error:
            raise Trouble(f"{path} does not run on this machine: {error.strerror}") from error
        except subprocess.TimeoutExpired as error:
            raise Trouble(f"{path} is not {name}: it does not end without a handler") from error
        if REFUSAL not in done.stdout:
            said = next(iter(done.stdout.splitlines()), "nothing")
            raise Trouble(
                f"{path} is not {name}, or cannot run here: it ended with {done.returncode}, and said {said}"
            )


def pack(program, archive):
    """Packs one program, without its symbols where `strip` is there: they are most of a quick build."""
    with tempfile.TemporaryDirectory() as folder:
        bootstrap = pathlib.Path(folder) / "bootstrap"
        shutil.copyfile(program, bootstrap)
        bootstrap.chmod(0o755)
        if shutil.which("strip"):
            subprocess.run(["strip", bootstrap], stderr=subprocess.DEVNULL, check=False)
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
            packed.write(bootstrap, "bootstrap")
