"""Words and sentences of README.md and the book."""

import re
import unittest

import pages

# Words that a busy reader stumbles over, each with a plain one beside it in CONTRIBUTING.md.
STUMBLING = re.compile(r"\b(whoever|anew|(?:is|are) told|falls? due|stands? in)\b", re.IGNORECASE)

# Words in a sentence, on average over all documents.
AVERAGE_MAX = 16

README_LINES_MAX = 150


class Words(unittest.TestCase):
    def test_no_stumbling_words(self):
        found = []
        for page in pages.user_pages():
            for number, line in enumerate(page.text.splitlines(), 1):
                found += [f"{page.name}:{number}: {word}" for word in STUMBLING.findall(line)]
        self.assertEqual(found, [])

    def test_pip_installs_into_virtual_environments(self):
        """Debian 12, among others, refuses `pip install` elsewhere."""
        bare = []
        for page in pages.pages("*.md"):
            before, pip, _ = page.text.partition("pip install")
            if pip and page.name != "CHANGELOG.md" and not re.search(r"virtual\s+environment|-m venv", before):
                bare.append(page.name)
        self.assertEqual(bare, [])

    def test_sentences_are_short_on_average(self):
        lengths = {page.name: [len(words) for words in page.sentences()] for page in pages.user_pages()}
        every = [length for page in lengths.values() for length in page]
        for name, page in lengths.items():
            print(f"{sum(page) / max(len(page), 1):5.1f} words a sentence, {len(page):4} sentences: {name}")
        self.assertLess(sum(every) / len(every), AVERAGE_MAX)

    def test_the_readme_is_short(self):
        self.assertLessEqual(len(pages.Page(pages.ROOT / "README.md").text.splitlines()), README_LINES_MAX)
