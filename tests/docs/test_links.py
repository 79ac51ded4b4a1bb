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
