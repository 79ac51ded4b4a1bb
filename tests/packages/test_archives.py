"""The other files of a release: checksums, the archive, the bill of materials, and what runs the image."""

import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

import release

ROOT = pathlib.Path(__file__).resolve().parents[2]


PAGE = ROOT / "docs/src/operating" / "installing.md"


def blocks():
    """The commands of the page that this file runs, with the version and the machine in their places."""
    said = pathlib.Path(__file__).relative_to(ROOT)
    text = re.findall(rf"<!-- run by: {said} -->\n```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    machine = release.file("-linux.tar.gz").name.split("-")[2]
    return [block.replace("-X-", f"-{version()}-").replace("x86_64", machine) for block in text]


def version():
    return re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]


class Archives(unittest.TestCase):
    def test_commands_of_the_page_run(self):
        checked, unpacked = blocks()
        subprocess.run(checked, shell=True, cwd=release.FOLDER, check=True)
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        archive = release.file("-linux.tar.gz")
        (folder / archive.name).symlink_to(archive)
        said = subprocess.run(
            unpacked, shell=True, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        self.assertEqual(said.returncode, 0, said.stdout)
        self.assertIn("Everything ended as it should", said.stdout)

    def test_every_file_has_a_checksum(self):
        lines = (release.FOLDER / "SHA256SUMS").read_text().splitlines()
        named = sorted(line.split("  ")[1] for line in lines)
        there = sorted(path.name for path in release.FOLDER.iterdir() if path.name != "SHA256SUMS")
        self.assertEqual(named, there)
        subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=release.FOLDER, check=True)

    def test_program_of_the_archive_runs(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        with tarfile.open(release.file("-linux.tar.gz")) as archive:
            archive.extractall(folder, filter="data")
        [top] = folder.iterdir()
        said = subprocess.run([top / "posthaste", "--version"], stdout=subprocess.PIPE, text=True, check=True)
        self.assertEqual(said.stdout, f"posthaste {version()}\n")
        self.assertTrue({"README.md", "LICENSE", "CHANGELOG.md", "man", "posthaste.bash"} <= {
            path.name for path in top.iterdir()
        })
        links = re.findall(r"\]\(([^)\s]+)\)", (top / "README.md").read_text())
        addresses = [link for link in links if f"/blob/v{version()}/docs/src/" in link]
        self.assertGreater(len(addresses), 20)
        self.assertEqual([link for link in links if not link.startswith(("https://", "http://", "#"))], [])

    def test_archives_do_not_depend_on_times_and_owners(self):
        with tarfile.open(release.file("-linux.tar.gz")) as archive:
            members = archive.getmembers()
        self.assertEqual({(it.uid, it.gid, it.uname, it.gname, it.mtime) for it in members},
                         {(0, 0, "", "", 315532800)})
        self.assertEqual([it.name for it in members], sorted(it.name for it in members))

    def test_bill_of_materials_names_what_is_locked(self):
        text = release.file(".cdx.json").read_text()
        self.assertIsNone(JsonStrictValidator(SchemaVersion.V1_5).validate_str(text))
        bill = json.loads(text)
        locked = (ROOT / "Cargo.lock").read_text()
        crates = [it for it in bill["components"] if "purl" in it]
        self.assertGreater(len(crates), 100)
        for crate in crates:
            [digest] = crate["hashes"]
            found = f'name = "{crate["name"]}"\nversion = "{crate["version"]}"\n'
            self.assertIn(found, locked)
            self.assertIn(f'checksum = "{digest["content"]}"', locked)
        names = {it["name"] for it in bill["components"]}
        self.assertTrue({"redb", "tokio", "rustls", "lambda_runtime"} <= names)
        # What only tests need is not shipped.
        self.assertFalse({"proptest", "stateright", "posthaste-testkit"} & names)

    def test_cluster_and_compose_run_this_version(self):
        program = pathlib.Path(sys.executable).parent / "kubernetes-validate"
        manifest = release.file("kubernetes.yaml")
        subprocess.run([program, "--strict", "--quiet", manifest], check=True)
        self.assertIn(f"image: posthaste:{version()}\n", manifest.read_text())
        self.assertIn(f"posthaste:${{POSTHASTE_VERSION:-{version()}}}", (release.FOLDER / "compose.yaml").read_text())


if __name__ == "__main__":
    unittest.main()
