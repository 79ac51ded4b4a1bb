"""Links between documents lead somewhere, and the book's table of contents has every page."""

import unittest

import pages


class Links(unittest.TestCase):
    def test_every_relative_link_has_its_file_and_heading(self):
        anchors, broken = {}, []
        for page in pages.pages("*.md"):
            for link in page.links():
                if link.startswith(("http://", "https://", "mailto:")):
                    continue
                path, _, anchor = link.partition("#")
                target = (page.path.parent / path).resolve() if path else page.path
                if not target.exists():
                    broken.append(f"{page.name}: {link}: no such file")
                elif anchor and target.suffix == ".md":
                    known = anchors.setdefault(target, set(pages.Page(target).anchors()))
                    if anchor not in known:
                        broken.append(f"{page.name}: {link}: no such heading")
        self.assertEqual(broken, [])

    def test_the_table_of_contents_has_every_page_once(self):
        summary = pages.Page(pages.BOOK / "SUMMARY.md")
        listed = [str((summary.path.parent / link).resolve()) for link in summary.links()]
        there = [str(page.path) for page in pages.pages("docs/src/*.md") if page.path != summary.path]
        self.assertEqual(sorted(listed), sorted(there))

    def test_every_cell_of_the_comparison_says_where_it_is_written(self):
        """README's table about other products: a link in each cell, or nothing that was found."""
        text = (pages.ROOT / "README.md").read_text()
        part = text.partition("\n## Why this and not …\n")[2].partition("\n## ")[0]
        self.assertRegex(part, r"As of [A-Z][a-z]+ 20\d\d")
        rows = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")]
        self.assertGreater(len(rows), 10)
        columns = len(rows[0])
        bare = [
            (row[0], cell) for row in rows[1:] for cell in row[1:]
            if "](" not in cell and cell not in ("–", "no")
        ]
        self.assertEqual(bare, [])
        self.assertEqual({len(row) for row in rows[1:]}, {columns + 1})
