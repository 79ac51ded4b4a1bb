"""The page about AWS as a newcomer uses it: blocks of shell, copied."""

import re

from checkout import ROOT


def block(heading, containing):
    """The first block of shell under a heading that contains a text."""
    text = (ROOT / "docs" / "src" / "operating" / "aws.md").read_text()
    section = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    return next(one for one in blocks if containing in one)
