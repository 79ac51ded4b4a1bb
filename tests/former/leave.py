"""Makes the fixtures of a release: `leave.py PROGRAM FOLDER` runs its `serve`, fills it, kills it and keeps
its data folder. RELEASE.md says when."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from endpoints import Endpoints
from patience import until
from scenario import OTHERS, SUBSCRIPTIONS, Scenario

# What another start makes anew, and what is as large as the disk allows.
NOT_KEPT = ("lock", "admin.key")


def statuses():
    """What each endpoint answers at first."""
    return {name: status for name, (_, status, _) in SUBSCRIPTIONS.items()} | dict.fromkeys(OTHERS, 200)


def serve(program, folder, data):
    """Leaves the data folder of a `serve` that was killed in `folder`."""
    process = subprocess.Popen(
        [program, "serve", "--listen", "127.0.0.1:0", "--allow-endpoints", "127.0.0.0/8", "--log", "json",
         "--data-dir", data],
        env={"PATH": os.environ["PATH"]}, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )
    try:
        url = listening(process)
        threading.Thread(target=lambda: list(process.stderr), daemon=True).start()
        key = (pathlib.Path(data) / "admin.key").read_text().strip()
        with Endpoints(statuses()) as endpoints:
            made = Scenario(program, {"POSTHASTE_URL": url, "POSTHASTE_KEY": key}, endpoints)
            made.make()
            made.fill()
            until(lambda: any((pathlib.Path(data) / "log").rglob("*.parquet")), "files of the log")
            made.end()
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed_at = int(time.time() * 1000)
            left = made.left()
    finally:
        process.kill()
    shutil.copytree(data, folder / "folder", ignore=shutil.ignore_patterns(*NOT_KEPT))
    described = {"killedAt": killed_at, **left}
    (folder / "left.json").write_text(json.dumps(described, indent=2, sort_keys=True) + "\n")


def listening(process):
    for line in process.stderr:
        entry = json.loads(line) if line.startswith("{") else {}
        if entry.get("message", "").startswith("listening"):
            return entry["url"]
    raise AssertionError("the server ended at once")


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="posthaste-former-") as data:
        serve(str(pathlib.Path(program).resolve()), folder, str(pathlib.Path(data) / "data"))


if __name__ == "__main__":
    main()
