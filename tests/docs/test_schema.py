"""Every YAML text of samples and documents fits the JSON Schema of the file, and a mistyped one does not."""

import json
import re
import unittest

import jsonschema
import pages
from ruamel.yaml import YAML

SCHEMA = json.loads((pages.BOOK / "posthaste.schema.json").read_text())
HEREDOC = re.compile(r"<<\\?-?\s*['\"]?(\w+)['\"]?[^\n]*\n(.*?)\n\1$", re.DOTALL | re.MULTILINE)

# Less than this means that the texts are no longer found.
TEXTS_MIN, PARTS_MIN = 15, 4


class Schema(unittest.TestCase):
    def test_samples_and_files_in_documents_fit(self):
        texts = [(name, text) for name, text in texts_of_files() if "topics" in text]
        self.assertGreaterEqual(len(texts), TEXTS_MIN)
        self.assertEqual([(name, error) for name, text in texts for error in errors(SCHEMA, text)], [])

    def test_parts_of_files_in_documents_fit(self):
        parts = [(name, text) for name, text in texts_of_files() if "topics" not in text]
        self.assertGreaterEqual(len(parts), PARTS_MIN)
        self.assertEqual([(name, error) for name, text in parts for error in errors(part_of(text), text)], [])

    def test_a_mistyped_member_does_not_fit(self):
        endpoint = {"url": "https://a.example"}
        for wrong in (
            {"topic": {}},
            {"topics": {"orders": {"noticeTopic": "ops"}}},
            {"topics": {"orders": {"inputSchema": "CloudEvent"}}},
            {"topics": {"orders": {"subscriptions": {"a": {}}}}},
            {"topics": {"orders": {"subscriptions": {"a": {"endpoint": endpoint, "retry": {}}}}}},
            {"topics": {"orders": {"subscriptions": {"a": {"endpoint": {**endpoint, "timeout": 5}}}}}},
        ):
            with self.subTest(wrong=wrong):
                self.assertNotEqual(errors(SCHEMA, wrong), [])

    def test_samples_name_the_schema_for_editors(self):
        for path in samples():
            with self.subTest(path=path.name):
                first = path.read_text().splitlines()[0]
                schema = re.fullmatch(r"# yaml-language-server: \$schema=(.*)", first)
                self.assertEqual((path.parent / schema[1]).resolve(), pages.BOOK / "posthaste.schema.json")


def samples():
    return sorted((pages.ROOT / "samples").rglob("*.yaml"))


def texts_of_files():
    """The YAML of samples, of YAML blocks, and of files that commands write; each with its place."""
    for path in samples():
        yield path.name, parsed(path.read_text())
    for page in pages.user_pages():
        for block in page.blocks():
            place = f"{page.name}:{block.line}"
            if block.language == "yaml":
                yield place, parsed(block.text)
            elif block.language == "sh" and "wrong.yaml" not in block.text:
                files = (text for _, text in HEREDOC.findall(block.text))
                yield from ((place, parsed(text)) for text in files if text.startswith("topics:"))


def parsed(text):
    return YAML(typ="safe", pure=True).load(text)


def part_of(text):
    """The schema of a part: of a topic or a subscription, without the members that a part may leave out."""
    subscription, topic = (SCHEMA["$defs"][name] for name in ("SubscriptionSettings", "TopicSettings"))
    part = subscription if text.keys() <= subscription["properties"].keys() else topic
    return {**part, "required": [], "$defs": SCHEMA["$defs"]}


def errors(schema, text):
    found = jsonschema.Draft202012Validator(schema).iter_errors(text)
    return [f"{error.json_path}: {error.message}" for error in found]
