"""The index of the decisions is made of their pages: POSTHASTE_RENEW=1 writes it anew."""

import os
import re
import unittest

import pages

FOLDER = pages.ROOT / "docs/src/decisions"
INDEX = FOLDER / "README.md"
SUMMARY = pages.ROOT / "docs/src/SUMMARY.md"

# A reader finds a subject among this many.
PAGES_MAX = 60

ENTRY = re.compile(r"^  - \[(.+)\]\(decisions/(.+\.md)\)$", re.MULTILINE)
DECISION = re.compile(r'^<a id="(\d{4})"></a>\n\n## (\d{4}) (.+)$', re.MULTILINE)
HEADING = re.compile(r"^## ", re.MULTILINE)


def listed():
    """The pages of decisions: the title and the name of each, in the order of the book."""
    return ENTRY.findall(SUMMARY.read_text())


def index():
    """The index, below what stands before its first page."""
    head = HEADING.split(INDEX.read_text(), maxsplit=1)[0]
    parts = []
    for title, name in listed():
        decisions = DECISION.findall((FOLDER / name).read_text())
        lines = [f"- [{number}]({name}#{number}) {words}" for number, _, words in decisions]
        parts.append("\n".join([f"## [{title}]({name})", "", *lines, ""]))
    return head + "\n".join(parts)


class Decisions(unittest.TestCase):
    def test_index_is_that_of_the_pages(self):
        made = index()
        if os.environ.get("POSTHASTE_RENEW"):
            INDEX.write_text(made)
        self.assertEqual(INDEX.read_text(), made, "POSTHASTE_RENEW=1 writes it anew")

    def test_every_page_is_listed_by_its_title(self):
        there = {path.name for path in FOLDER.glob("*.md")} - {INDEX.name}
        self.assertEqual({name for _, name in listed()}, there)
        self.assertLessEqual(len(there), PAGES_MAX)
        for title, name in listed():
            self.assertTrue((FOLDER / name).read_text().startswith(f"# {title}\n"), name)

    def test_every_decision_has_a_number_of_its_own_that_is_its_anchor(self):
        seen = set()
        for _, name in listed():
            text = (FOLDER / name).read_text()
            decisions = DECISION.findall(text)
            self.assertEqual(len(decisions), len(HEADING.findall(text)), name)
            for anchor, number, _ in decisions:
                self.assertEqual(anchor, number)
                self.assertNotIn(number, seen)
                seen.add(number)


if __name__ == "__main__":
    unittest.main()
