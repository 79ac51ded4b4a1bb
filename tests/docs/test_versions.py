"""The page of stored versions names every kind, and what the fixtures of 0.1.0 and the tests say of them."""

import json
import re
import unittest

import pages

RELEASES = pages.ROOT / "tests/simulation/tests/all/former_release"
FIXTURES = RELEASES / "fixtures/0.1.0"
PAGE = pages.ROOT / "docs/src/reference/stored-versions.md"
OBJECTS = pages.ROOT / "docs/src/reference/stored-objects.md"

# What the page says in a few words of several kinds.
MARKS = {"-", "–", "none", "empty", "bytes", "any text", "as it was", "as `replays/`", "Parquet"}


def beginning(key):
    """A key until its first variable part, by which it is compared."""
    return re.split(r"[{…]", key)[0]


def rows():
    """Beginnings of keys with the cells of both releases."""
    found = {}
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if line.startswith("| ") and len(cells) == 4 and cells[0] != "key or queue":
            for key in re.findall(r"`([^`]+)`", cells[0]) or [cells[0]]:
                found[beginning(key)] = cells[1:3]
    return found


def row_of(key, table):
    """The row with the longest beginning of a key."""
    known = [begin for begin in table if key.startswith(begin)]
    return table[max(known, key=len)] if known else None


def numbers(cell):
    return {int(number) for number in re.findall(r"\d+", cell)}


class Versions(unittest.TestCase):
    def test_each_kind_has_a_row_with_the_versions_of_the_other_page(self):
        table, seen = rows(), 0
        for line in OBJECTS.read_text().splitlines():
            cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
            if len(cells) != 6 or not line.startswith("| `"):
                continue
            key, version = re.search(r"`([^`]+)`", cells[0]).group(1), cells[2]
            if key.startswith(("{TOPIC}", "MALFORMED/", "{date}")):
                continue
            with self.subTest(key):
                row = row_of(beginning(key), table)
                self.assertIsNotNone(row, "no row of the page of versions")
                self.assertEqual(numbers(row[1]), numbers(version))
            seen += 1
        self.assertGreater(seen, 35)

    def test_cells_are_versions_or_words_that_readers_know(self):
        for key, cells in rows().items():
            for cell in cells:
                self.assertTrue(cell in MARKS or re.fullmatch(r"\d(, \d)*", cell), f"{key}: {cell}")

    def test_what_0_1_0_left_is_of_versions_that_its_column_has(self):
        left = json.loads((FIXTURES / "aws.json").read_text())
        things = list(left["objects"].items())
        things += [(key, text) for key, text in left["bucket"].items() if key.startswith("resolved/")]
        things += [("deliveries", text) for text in left["deliveries"]]
        things += [("deadletters", text) for text in left["dead_letters"]]
        things += [("records", text) for text in left["records"]]
        table, with_version = rows(), 0
        for key, text in things:
            with self.subTest(key):
                row = row_of(key, table)
                self.assertIsNotNone(row, "no row of the page of versions")
                self.assertNotEqual(row[0], "–", "0.1.0 wrote it")
                version = json.loads(text).get("v") if text.startswith('{"v"') else None
                if version is not None:
                    self.assertIn(version, numbers(row[0]))
                    with_version += 1
        self.assertGreater(with_version, 30)

    def test_0_1_0_reads_what_its_column_says(self):
        text = (RELEASES / "versions.rs").read_text()
        table = text[text.index("READ_BY_0_1_0: [") :]
        read = dict(re.findall(r'\("([^"]+)", (\d+)\)', table[: table.index("];")]))
        self.assertEqual(len(read), 20)
        names = {"dead letters": "deadletters"}
        for begin, newest in read.items():
            with self.subTest(begin):
                cell = row_of(names.get(begin, begin), rows())[0]
                self.assertLessEqual(max(numbers(cell), default=0), int(newest))
