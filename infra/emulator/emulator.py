"""The emulator's process: started, found again, and stopped with everything that it started.

Its folder holds a lock that the process keeps for as long as it lives, so that "is it running" is never a
guess from a process id that may belong to something else by now."""

import contextlib
import fcntl
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

# How long the emulator may take to answer; it takes less than a second on an idle machine.
READY_SECS_MAX = 60

# How long it may take to end after SIGTERM before it is killed.
STOP_SECS_MAX = 10

# Every client and every function shows these; to the emulator they are the account's root.
ACCESS_KEY, SECRET_KEY, REGION = "test", "test", "us-east-1"


class Trouble(Exception):
    """What a user is told, without a traceback."""


def until(answer, seconds, what):
    """Asks until there is an answer. A deadline turns into trouble named after what was waited for."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        answered = answer()
        if answered:
            return answered
        time.sleep(0.05)
    raise Trouble(f"{what}: nothing after {seconds} s")


class Emulator:
    """ministack on one port, its data in one folder."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.state = self.folder / "emulator.json"
        self.log = self.folder / "emulator.log"

    @property
    def url(self):
        return f"http://127.0.0.1:{self.running()['port']}"

    def running(self):
        """The process id and port of what runs on this folder, or None."""
        try:
            with self._lock():
                return None
        except BlockingIOError:
            # Whoever holds the lock and has written nothing yet is just starting.
            return json.loads(self.state.read_text()) if self.state.exists() else {"pid": None, "port": None}

    def start(self, port):
        """Starts it in a process group of its own, with an environment of its own: functions inherit both."""
        port = free_port(port)
        with self._lock() as lock, self.log.open("wb") as log:
            process = subprocess.Popen(
                [pathlib.Path(sys.executable).with_name("ministack")],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
                env=self._environment(port), start_new_session=True, pass_fds=[lock.fileno()],
            )
            self.state.write_text(json.dumps({"pid": process.pid, "port": port}))
        until(lambda: self._ready(process, port), READY_SECS_MAX, f"the emulator on port {port}")

    def stop(self):
        """Ends it and its functions. Answers whether there was anything to end."""
        running = self.running()
        if running is None or running["pid"] is None:
            return False
        signal_group(running["pid"], signal.SIGTERM)
        with contextlib.suppress(Trouble):
            until(lambda: self.running() is None, STOP_SECS_MAX, "the end of the emulator")
        # Also when it ended by itself: a function may outlive it for the length of an invocation.
        signal_group(running["pid"], signal.SIGKILL)
        until(lambda: self.running() is None, STOP_SECS_MAX, "the end of the emulator, killed")
        self.state.unlink(missing_ok=True)
        return True

    def tail(self):
        """The last lines of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])

    @contextlib.contextmanager
    def _lock(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield lock

    def _environment(self, port):
        """All that the emulator and, by inheritance, the functions see: nothing of the caller's, such as a
        proxy or a POSTHASTE_ variable, may reach a function that would not be there on AWS."""
        scratch = self.folder / "tmp"
        scratch.mkdir(exist_ok=True)
        return {
            "PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.folder), "TMPDIR": str(scratch),
            "PYTHONDONTWRITEBYTECODE": "1",
            "BIND_HOST": "127.0.0.1", "MINISTACK_HOST": "127.0.0.1", "GATEWAY_PORT": str(port),
            "LAMBDA_EXECUTOR": "local", "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_DEFAULT_REGION": REGION, "MINISTACK_REGION": REGION,
            # Each function gets the credentials of its role, and each request is held against the role's
            # policy.
            "AUTH": "true",
        }

    def _ready(self, process, port):
        if process.poll() is not None:
            raise Trouble(f"the emulator ended at once with {process.returncode}:\n{self.tail()}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_ministack/health", timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            return False


def free_port(wanted):
    """The port, or a free one for 0. Asked before the start: another emulator there would answer in our one's
    place."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", wanted))
        except OSError as error:
            raise Trouble(
                f"port {wanted} is not free ({error.strerror}); choose another with --port, 0 for any"
            ) from error
        return listener.getsockname()[1]


def signal_group(group, number):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)
