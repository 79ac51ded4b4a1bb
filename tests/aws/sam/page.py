"""A page about AWS as a reader uses it: the blocks of shell that it says are run by a test, copied."""

import pathlib
import re

from checkout import ROOT


def blocks(page, test):
    """The blocks of a page of docs/src/operating that a test's file is said to run, in their order."""
    name = pathlib.Path(test).resolve().relative_to(ROOT)
    text = (ROOT / "docs" / "src" / "operating" / page).read_text()
    return re.findall(rf"<!-- run by: {name} -->\n```sh\n(.*?)```", text, re.DOTALL)
