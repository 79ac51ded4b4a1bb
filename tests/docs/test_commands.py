"""Every command of README.md and the book does what a reader expects of it: it runs, in its page's order."""

import os
import pathlib
import time
import unittest

import pages
import session

RUN = ("sh", "python", "js", "rust")
SHOWN = ("text", "json", "yaml", "toml", "ini", "http", "sql", "caddy", "nginx", "promql")
ELSEWHERE = ("not run", "run by")
NOT_RUN_MAX = 17


class Commands(unittest.TestCase):
    def test_every_block_has_a_known_language(self):
        known = {*RUN, *SHOWN, "go", "csharp"}
        odd = [(page.name, block.line) for page, block in blocks() if block.language not in known]
        self.assertEqual(odd, [])

    def test_few_blocks_are_not_run_and_each_says_why(self):
        skipped = [
            (page, block) for page, block in blocks()
            if block.remark == "not run" or block.language in ("go", "csharp")
        ]
        self.assertEqual([f"{page.name}:{block.line}" for page, block in skipped if not block.reason], [])
        self.assertLessEqual(len(skipped), NOT_RUN_MAX)

    def test_a_block_that_another_test_runs_is_read_by_it(self):
        for page, block in blocks():
            if block.remark == "run by":
                with self.subTest(page=page.name, line=block.line):
                    self.assertIn(f'"{page.path.name}"', (pages.ROOT / block.reason).read_text())

    def test_the_commands_of_every_page_run(self):
        node = pathlib.Path(os.environ["POSTHASTE_NODE"]).resolve()
        wanted = os.environ.get("POSTHASTE_DOCS_PAGE", "")
        for page in (page for page in pages.user_pages() if wanted in page.name):
            blocks = [one for one in page.blocks() if one.language in RUN and one.remark not in ELSEWHERE]
            if not blocks:
                continue
            with self.subTest(page=page.name), session.Session(session.programs(), node) as reader:
                began = time.monotonic()
                for block in blocks:
                    try:
                        reader.run(block)
                    except session.Failed as error:
                        self.fail(f"{page.name}:{block.line}: {error}\n{block.text}")
                print(f"{len(blocks):3} blocks in {time.monotonic() - began:5.1f} s: {page.name}", flush=True)


def blocks():
    return [(page, block) for page in pages.user_pages() for block in page.blocks()]
