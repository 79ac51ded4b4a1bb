"""The documents of the project, as Markdown tokens: their links, headings, sentences and fenced blocks."""

import dataclasses
import pathlib
import re
import subprocess

from markdown_it import MarkdownIt

ROOT = pathlib.Path(__file__).parents[2]
BOOK = ROOT / "docs" / "src"
ANCHOR = re.compile(r'^<a id="([^"]+)"></a>$', re.MULTILINE)
REMARK = re.compile(r"<!-- (background|not run|run by|fails)(?:: (.*))? -->")


@dataclasses.dataclass
class Block:
    """A fenced block: its language, its text, and what the comment before it says."""

    language: str
    text: str
    line: int
    remark: str | None
    reason: str | None


class Page:
    """One Markdown file."""

    def __init__(self, path):
        self.path, self.text = path, path.read_text()
        self.tokens = MarkdownIt("commonmark").enable("table").parse(self.text)
        self.name = str(path.relative_to(ROOT))

    def links(self):
        """The targets of links and images."""
        for token in self._inline():
            for child in token.children:
                if child.type in ("link_open", "image"):
                    yield child.attrs.get("href") or child.attrs.get("src")

    def anchors(self):
        """The anchors that GitHub and mdBook give the headings, and those that the page gives itself."""
        yield from ANCHOR.findall(self.text)
        seen = {}
        for heading, content in zip(self.tokens, self.tokens[1:]):
            if heading.type != "heading_open":
                continue
            words = "".join(one.content for one in content.children)
            anchor = re.sub(r"[^\w\- ]", "", words.lower()).strip().replace(" ", "-")
            count = seen.get(anchor, 0)
            seen[anchor] = count + 1
            yield f"{anchor}-{count}" if count else anchor

    def blocks(self):
        """The fenced blocks, in their order."""
        before = None
        for token in self.tokens:
            if token.type == "fence":
                remark = REMARK.fullmatch(before.content.strip()) if before else None
                kind, reason = remark.groups() if remark else (None, None)
                yield Block(token.info.strip(), token.content, token.map[0] + 1, kind, reason)
            before = token if token.type == "html_block" else None

    def sentences(self):
        """The sentences of paragraphs and list items, as lists of words; not those of headings and tables."""
        inside = []
        for token in self.tokens:
            if token.nesting == 1:
                inside.append(token.type)
            elif token.nesting == -1:
                inside.pop()
            elif token.type == "inline" and not {"heading_open", "table_open"} & set(inside):
                yield from sentences_of(token)

    def _inline(self):
        return (token for token in self.tokens if token.type == "inline")


def sentences_of(token):
    """The sentences of a paragraph. Code counts as one word, since dots in it end no sentence."""
    parts = ("code" if one.type == "code_inline" else one.content for one in token.children)
    breaks = (" " if one.type == "softbreak" else part for one, part in zip(token.children, parts))
    for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z*])|(?<=:)\s*$", "".join(breaks)):
        words = re.findall(r"[\w'’./%-]*\w[\w'’/%-]*", sentence)
        if words:
            yield words


def pages(*patterns):
    """The tracked Markdown files that fit, each as a page."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )
    return [Page(ROOT / name) for name in sorted(set(listed.stdout.splitlines())) if (ROOT / name).exists()]


def user_pages():
    """README.md and the book, without the decisions."""
    book = pages("README.md", "docs/src/*.md")
    return [page for page in book if not page.name.startswith("docs/src/decisions/")]
