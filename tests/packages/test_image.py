"""The image as a container runs it: with the image's own settings, as a user that is not root, on a root folder that
cannot be written."""

import json
import pathlib
import shlex
import subprocess
import tarfile
import tempfile
import unittest

import release

# What a runtime of containers does: the root is read-only, and the volume has the owner of the image's folder.
CONTAINER = """
mount --bind {root} {root}
mount -o remount,bind,ro {root}
mount --bind {data} {root}{volume}
mount -t proc proc {root}/proc
mount --bind /dev {root}/dev
exec unshare --root={root} --wd={place} --setgid={user} --setuid={user} {command}
"""

# Names of hosts and of name servers come from the runtime, into files that it makes.
GIVEN_FILES = ("etc/hosts", "etc/resolv.conf")


class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        with tarfile.open(release.file(f"image-{release.MACHINE}.tar.gz")) as archive:
            archive.extractall(folder / "archive", filter="fully_trusted")
        [manifest] = json.loads((folder / "archive/manifest.json").read_text())
        cls.names = manifest["RepoTags"]
        cls.image = json.loads((folder / "archive" / manifest["Config"]).read_text())
        cls.config = cls.image["config"]
        cls.root = folder / "root"
        for layer in manifest["Layers"]:
            with tarfile.open(folder / "archive" / layer) as files:
                files.extractall(cls.root, filter="fully_trusted")
        for name in ("proc", "dev"):
            (cls.root / name).mkdir()
        for name in GIVEN_FILES:
            (cls.root / name).write_bytes(pathlib.Path("/", name).read_bytes())

    def in_container(self, *words):
        """The command of a container."""
        [user, group] = self.config["User"].split(":")
        self.assertEqual(user, group)
        self.assertNotEqual(user, "0")
        [volume] = self.config["Volumes"]
        variables = ["env", "--ignore-environment", *self.config["Env"]]
        script = CONTAINER.format(
            root=self.root, user=user, volume=volume, data=self.new_volume(volume), place=self.config["WorkingDir"],
            command=shlex.join([*self.config["Entrypoint"], *words]),
        )
        return [*variables, "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "unshare", "--mount", "sh", "-ec", script]

    def new_volume(self, volume):
        """A folder with the owner and the mode that the image's has, as a runtime makes a new volume."""
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        subprocess.run(["cp", "--archive", f"{self.root}{volume}", folder / "volume"], check=True)
        folder.chmod(0o755)
        return folder / "volume"

    def test_demo_runs_as_nobody_on_a_root_that_cannot_be_written(self):
        done = subprocess.run(
            self.in_container("demo"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=release.PATIENCE_SECS,
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("Everything ended as it should", done.stdout)

    def test_health_is_asked_by_the_image_itself(self):
        check = self.config["Healthcheck"]["Test"]
        self.assertEqual(check, ["CMD", *self.config["Entrypoint"], "health"])
        served = subprocess.Popen(
            self.in_container(*self.config["Cmd"], "--listen", "127.0.0.1:0"),
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        try:
            url = self.url(served)
            done = subprocess.run(self.in_container(*check[2:], "--url", url), timeout=release.PATIENCE_SECS)
            self.assertEqual(done.returncode, 0)
        finally:
            served.terminate()
            code = served.wait(timeout=release.PATIENCE_SECS)
            served.stderr.close()
        self.assertEqual(code, 0)
        done = subprocess.run(self.in_container(*check[2:], "--url", url), stderr=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 7)

    def url(self, served):
        lines = []
        for line in served.stderr:
            lines.append(line)
            entry = json.loads(line) if line.startswith("{") else {}
            if entry.get("message", "").startswith("listening"):
                return entry["url"]
        raise AssertionError("the container ended:\n" + "".join(lines))

    def test_endpoints_are_trusted_by_the_authorities_of_the_image(self):
        text = (self.root / "etc/ssl/certs/ca-certificates.crt").read_text()
        self.assertGreater(text.count("BEGIN CERTIFICATE"), 100)

    def test_image_says_what_it_is(self):
        labels = self.config["Labels"]
        version = labels["org.opencontainers.image.version"]
        self.assertIn(f"docker.io/library/posthaste:{version}", self.names)
        self.assertEqual(self.image["architecture"], release.MACHINE)
        self.assertEqual(labels["org.opencontainers.image.licenses"], "Apache-2.0")
        self.assertEqual(self.config["StopSignal"], "SIGTERM")


if __name__ == "__main__":
    unittest.main()
