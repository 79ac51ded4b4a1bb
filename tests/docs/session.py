"""One page's commands, as a reader would copy them: in order, in one folder, with ports of their own."""

import contextlib
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import pages

# Far longer than anything takes, so that a busy machine fails no test.
SECONDS_MAX = 120
POLL_SECONDS = 0.05

# The package that builds the examples in Rust.
RUST_EXAMPLE = "posthaste-docs-example"

# Ports that documents name; each becomes a free one. The first is the server's.
SERVER_PORT = "8080"
PORTS = re.compile(r"\b(8080|900\d)\b")

# Free ports are taken from here: below those that the system gives to outgoing connections.
PORTS_TAKEN = range(20_000, 32_000)

# Keeps what `export` and `cd` did for the next block.
FRAME = """
[ ! -f "$STATE/exports" ] || . "$STATE/exports"
[ ! -f "$STATE/folder" ] || cd "$(cat "$STATE/folder")"
set -eo pipefail
{text}
export -p >"$STATE/exports"
pwd >"$STATE/folder"
"""


class Failed(Exception):
    """A block that did not end as the document says."""


class Session:
    """A reader's terminals. Use it in a `with`: what runs in the background is stopped at the end."""

    def __init__(self, programs, node):
        self.node = node
        self.ports, self.background, self.scripts = {}, [], []
        # Beside the build: a document shows a disk of which more than 1 % is used.
        self.temporary = tempfile.TemporaryDirectory(prefix="docs-", dir=programs.parent)
        top = pathlib.Path(self.temporary.name)
        self.folder, state = top / "work", top / "state"
        for folder in (self.folder, state, top / "home"):
            folder.mkdir()
        for shared in ("samples", "tests"):
            (self.folder / shared).symlink_to(pages.ROOT / shared)
        interpreter = pathlib.Path(sys.executable).parent
        path = f"{pages.ROOT / 'tests' / 'docs' / 'stubs'}:{interpreter}:{programs}:{os.environ['PATH']}"
        self.environment = {
            "PATH": path, "HOME": str(top / "home"), "STATE": str(state), "LANG": "C.UTF-8",
            "POSTHASTE_LISTEN": f"127.0.0.1:{self.port(SERVER_PORT)}",
            "POSTHASTE_URL": f"http://127.0.0.1:{self.port(SERVER_PORT)}",
        }

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process, _ in reversed(self.background):
            stop(process)
        for script in self.scripts:
            script.unlink()
        self.temporary.cleanup()

    def run(self, block):
        """Runs one block. Raises `Failed` if it does not end as the document says."""
        text = PORTS.sub(lambda found: str(self.port(found[1])), block.text)
        if block.remark == "background":
            self._start(block, text)
            return
        expected = int(block.reason) if block.remark == "fails" else 0
        process = subprocess.Popen(self._command(block, text), start_new_session=True, **self._options())
        try:
            output, _ = process.communicate(timeout=SECONDS_MAX)
        except subprocess.TimeoutExpired as error:
            stop(process)
            raise Failed(f"did not end within {SECONDS_MAX} s{self._logs()}") from error
        if process.returncode != expected:
            raise Failed(f"ended with {process.returncode} instead of {expected}\n{output}{self._logs()}")

    def port(self, written):
        """The free port that takes the place of the one in the document."""
        if written not in self.ports:
            begin = PORTS_TAKEN.start + os.getpid() % len(PORTS_TAKEN)
            candidates = (*range(begin, PORTS_TAKEN.stop), *PORTS_TAKEN)
            self.ports[written] = next(one for one in candidates if self._is_free(one))
        return self.ports[written]

    def _is_free(self, port):
        if port in self.ports.values():
            return False
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) != 0

    def _command(self, block, text):
        if block.language == "sh":
            return ["bash", "-c", FRAME.replace("{text}", text)]
        if block.language == "rust":
            program = self._build(text, f"block-{block.line}")
            return ["bash", "-c", FRAME.replace("{text}", shlex.quote(str(program)))]
        # A module of Node looks for its packages beside itself.
        kind, folder = ("py", self.folder.parent) if block.language == "python" else ("mjs", self.node)
        script = folder / f"block-{os.getpid()}-{block.line}.{kind}"
        script.write_text(text)
        self.scripts.append(script)
        program = "python3" if kind == "py" else "node"
        return ["bash", "-c", FRAME.replace("{text}", f"{program} {shlex.quote(str(script))}")]

    def _build(self, text, name):
        """Builds an example in Rust with the crates that documents name. Returns the program."""
        source, program = self.folder.parent / f"{name}.rs", self.folder.parent / name
        source.write_text(text)
        target = programs().parent
        built = subprocess.run(
            ["cargo", "build", "--locked", "--package", RUST_EXAMPLE, "--target-dir", target],
            cwd=pages.ROOT, env={**os.environ, "POSTHASTE_DOCS_EXAMPLE": str(source)},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        if built.returncode != 0:
            raise Failed(f"is not built\n{built.stdout}")
        shutil.copy(target / "debug" / RUST_EXAMPLE, program)
        return program

    def _start(self, block, text):
        log = tempfile.TemporaryFile("w+", dir=self.temporary.name)
        command = self._command(block, text)
        options = {**self._options(), "stdout": log, "stderr": subprocess.STDOUT}
        process = subprocess.Popen(command, start_new_session=True, **options)
        self.background.append((process, log))
        named = PORTS.findall(block.text) or [SERVER_PORT]
        until = time.monotonic() + SECONDS_MAX
        while not answers(self.port(named[0])):
            if process.poll() is not None or time.monotonic() > until:
                raise Failed(f"does not listen on port {named[0]}\n{self._logs()}")
            time.sleep(POLL_SECONDS)

    def _options(self):
        return {
            "cwd": self.folder, "env": self.environment, "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True,
        }

    def _logs(self):
        """What ran in the background has printed."""
        texts = []
        for _, log in self.background:
            log.seek(0)
            texts.append(log.read())
        return "\n--- in the background:\n" + "\n".join(texts) if texts else ""


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


def stop(process):
    """Ends a process and what it started, and waits until all of it is gone."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        until = time.monotonic() + SECONDS_MAX
        # Once: a second signal would end the server without its drain.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        while is_alive(process) and time.monotonic() < until:
            time.sleep(POLL_SECONDS)
        if not is_alive(process):
            return


def is_alive(process):
    """Whether anything of the process's group runs. What has ended and waits for its parent does not."""
    process.poll()
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, group = status.read_text().rpartition(")")[2].split()[:3]
            if int(group) == process.pid and state != "Z":
                return True
    return False


def programs():
    """The folder of the built `posthaste`."""
    return pathlib.Path(os.environ["POSTHASTE_BIN"]).resolve().parent

