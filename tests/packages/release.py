"""The files of the release under test, and a machine of its own to install them on."""

import pathlib
import platform
import shutil
import subprocess
import tempfile

MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]

# Where the files lie; main.py makes them.
FOLDER = None

# Far longer than anything takes, so that a busy machine fails no test.
PATIENCE_SECS = 120

# This machine's files, of which changes are forgotten: a folder that nobody else sees.
OVERLAY = """
mount -t tmpfs tmpfs {folder}
mkdir {folder}/changes {folder}/work {folder}/root
mount -t overlay overlay -o lowerdir=/,upperdir={folder}/changes,workdir={folder}/work {folder}/root
mount -t proc proc {folder}/root/proc
mount --rbind /dev {folder}/root/dev
"""


def file(ending):
    """The one file for this machine, or for all, whose name ends so."""
    names = [f"*{MACHINE}{ending}", f"*{platform.machine()}{ending}", f"*{ending}"]
    [found, *_] = [path for name in names for path in FOLDER.glob(name)]
    return found


class Machine:
    """A copy of this machine's files on which packages are installed for real. Use it in a `with`."""

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="posthaste-machine-"))
        # A shell that holds the mounts, which go with it.
        self.holder = subprocess.Popen(
            ["unshare", "--mount", "sh", "-ec", OVERLAY.format(folder=self.folder) + "echo there; exec cat"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        if self.holder.stdout.readline() != "there\n":
            raise RuntimeError("no overlay of this machine's files: it needs root")
        return self

    def __exit__(self, *_):
        self.holder.stdin.close()
        self.holder.stdout.close()
        self.holder.wait(timeout=PATIENCE_SECS)
        shutil.rmtree(self.folder)

    def command(self, script):
        """What runs a script on the machine, as root."""
        return ["nsenter", f"--target={self.holder.pid}", "--mount", "chroot", self.folder / "root", "sh", "-ec", script]

    def run(self, script):
        """Runs a script on the machine, and answers what it printed."""
        done = subprocess.run(
            self.command(script), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_SECS,
        )
        if done.returncode != 0:
            raise AssertionError(f"{script}: {done.returncode}: {done.stdout}")
        return done.stdout

    def take(self, path):
        """Copies a file onto the machine, and answers where it is."""
        subprocess.run(
            ["nsenter", f"--target={self.holder.pid}", "--mount", "sh", "-ec", f"cat > {self.folder}/root/{path.name}"],
            input=path.read_bytes(), check=True,
        )
        return f"/{path.name}"
