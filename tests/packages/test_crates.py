"""The crates, as a registry wants them: with what it shows of them, and whole without the repository around them."""

import json
import os
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Most keywords of a crate. https://doc.rust-lang.org/cargo/reference/manifest.html#the-keywords-field
KEYWORDS_MAX = 5

INCLUDED = re.compile(r'include_(?:str|bytes)!\(\s*(?:concat!\(\s*)?"([^"]*)"')


def published():
    """The crates that may be published, by their names."""
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1", "--offline"]
    said = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {one["name"]: one for one in json.loads(said)["packages"] if one["publish"] != []}


class Crates(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.crates = published()

    def test_program_is_among_them(self):
        self.assertIn("posthaste", self.crates)
        self.assertNotIn("posthaste-testkit", self.crates)

    def test_each_says_what_it_is(self):
        for name, crate in self.crates.items():
            with self.subTest(name):
                for member in ("description", "license", "repository", "readme", "rust_version"):
                    self.assertTrue(crate[member], member)
                self.assertTrue(0 < len(crate["keywords"]) <= KEYWORDS_MAX, crate["keywords"])
                self.assertTrue(crate["categories"])

    def test_each_stands_on_published_crates_of_a_version(self):
        for name, crate in self.crates.items():
            ours = [it for it in crate["dependencies"] if it.get("path") and it["kind"] is None]
            for it in ours:
                with self.subTest(name, on=it["name"]):
                    self.assertIn(it["name"], self.crates)
                    self.assertEqual(it["req"], "^" + self.crates[it["name"]]["version"])

    def test_none_reads_a_file_outside_of_its_folder(self):
        for name, crate in self.crates.items():
            folder = pathlib.Path(crate["manifest_path"]).parent
            for source in (folder / "src").rglob("*.rs"):
                # Tests are not run in a registry.
                code = source.read_text().split("#[cfg(test)]\nmod tests {")[0]
                if "tests" in source.relative_to(folder).parts or source.stem == "tests":
                    continue
                for path in INCLUDED.findall(code):
                    with self.subTest(name, source=source.name, path=path):
                        # Links are not followed: a package has the file that a link leads to.
                        included = pathlib.Path(os.path.normpath(source.parent / path))
                        self.assertTrue(included.is_relative_to(folder), f"{included}")


if __name__ == "__main__":
    unittest.main()
