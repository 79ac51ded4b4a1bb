"""Numbers in the book are those of the code: each sentence here is made from constants, and stands on its page
word by word. A constant that changes fails with the sentence that its page has to say."""

import re
import unittest

import pages
import said
from said_of_pressure import SENTENCES as OF_PRESSURE

# Pages of which every number in digits is in a sentence of these, or listed as a number of another kind.
WHOLE = ("delivery", "failing-endpoints", "back-pressure", "publishing", "known-limits")

FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
REMARK = re.compile(r"<!--.*?-->", re.DOTALL)
CODE = re.compile(r"`[^`]*`")
LINK_TARGET = re.compile(r"\]\([^)]*\)")
NUMBER = re.compile(r"(?<![\w.#-])\d[\d,.:]*\d|(?<![\w.#-])\d")

# What HTTP says, and not the code.
STATUSES = {str(status) for status in (200, 201, 202, 203, 204, 400, 401, 403, 404, 408, 409, 410, 413, 415,
                                       422, 429, 503, 507)}


def words_of(page):
    """A page as running text: without blocks and targets of links."""
    text = (pages.BOOK / f"{page}.md").read_text()
    for pattern, other in ((FENCE, " "), (REMARK, " "), (LINK_TARGET, "]")):
        text = pattern.sub(other, text)
    return re.sub(r"\s+", " ", text)


class Numbers(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.sentences = [*said.SENTENCES, *OF_PRESSURE]

    def test_every_sentence_stands_on_its_page(self):
        for page, sentence in self.sentences:
            with self.subTest(page=page):
                self.assertTrue(sentence in words_of(page), f"docs/src/{page}.md has to say: {sentence}")

    def test_every_number_of_a_page_is_held(self):
        """A new number is in a sentence that is made from constants, or is listed with its kind."""
        loose = []
        for page in WHOLE:
            text = words_of(page)
            held = [sentence for of, sentence in self.sentences if of == page]
            for part in (*held, *said.OTHER_NUMBERS.get(page, ())):
                self.assertTrue(part in text, f"docs/src/{page}.md does not say: {part}")
                text = text.replace(part, re.sub(r"\d", "_", part))
            text = CODE.sub(lambda code: "_" * len(code[0]), text)
            for found in NUMBER.finditer(text):
                if found[0].rstrip(".:,") not in STATUSES:
                    around = text[max(found.start() - 40, 0) : found.end() + 40]
                    loose.append(f"{page}: {found[0]}: …{around}…")
        self.assertEqual(loose, [], "of which constant?")


if __name__ == "__main__":
    unittest.main()
