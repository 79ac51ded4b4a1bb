"""A copy of this checkout, in which `sam` leaves what it makes, and the shell of a user in it."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
STUBS = pathlib.Path(__file__).with_name("stubs")

# A few seconds on an idle machine; this is for one that is busy with something else.
SHELL_SECS_MAX = 600


class Checkout:
    """The files without what was built of them, a home without settings, and stubs of cargo, rustup and pip.
    Use it in a `with`."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="posthaste-sam-")
        self.path = pathlib.Path(self.folder.name, "posthaste")

    def __enter__(self):
        shutil.copytree(ROOT, self.path, ignore=shutil.ignore_patterns(".*", "target", "posthaste-data"))
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def run(self, commands, **environment):
        """Runs lines of shell, the last of which must succeed as well as every other, and answers what they
        print."""
        tools = pathlib.Path(os.environ["POSTHASTE_TOOLS"])
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands], cwd=self.path, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SHELL_SECS_MAX,
            env={
                "PATH": f"{STUBS}:{tools}/sam/bin:{os.environ['PATH']}:{tools}/cli/bin",
                "HOME": self.folder.name,
                # The toolchain that is there; under the empty home another would be fetched.
                "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(pathlib.Path.home() / ".rustup")),
                "CARGO_TARGET_DIR": str(self.path / "target"), "SAM_CLI_TELEMETRY": "0",
                "STUB_CARGO": shutil.which("cargo"), "STUB_RECORD": str(self.path / "record"),
                "STUB_PIP": str(self.path / "pip"), **environment,
            },
        )
        if done.returncode != 0:
            raise AssertionError(f"{commands}\nended with {done.returncode}:\n{done.stdout}")
        return done.stdout

    def calls(self, kind):
        """How cargo was called: the calls of one of its commands."""
        lines = (self.path / "record").read_text().splitlines()
        return [call for call in map(json.loads, lines) if call["arguments"][0] == kind]
