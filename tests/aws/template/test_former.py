"""The template against the one before it was put together of parts, one by one. What an update would change or
remove of a running stack has its reason here. What is new needs none. Run by itself, this file makes the present
template the former one."""

import fnmatch
import gzip
import json
import pathlib
import re
import unittest

import stack

FORMER = pathlib.Path(__file__).resolve().parent / "former.json.gz"

# What differs, by its path and all below it, and why.
DIFFERENCES = {
    "Resources *Function Properties Environment Variables DELIVER_BATCH_SIZE": "Profile says it, if nobody else does",
    "Resources DeliverFunction Properties Events Deliveries Properties BatchSize": "the same",
    "Resources DeliverFunction Properties Events Deliveries Properties MaximumBatchingWindowInSeconds": "the same",
    "Resources DeliverFunction Properties MemorySize": "the same",
    "Resources PublishFunction Properties MemorySize": "the same",
    "Resources ManageFunction Properties Environment Variables DASHBOARD_URL": "each partition has its own host",
    "Resources ManageRole Properties Policies 0 PolicyDocument Statement 21 Resource": "the list of open sessions",
    "Resources StateBucket Properties LifecycleConfiguration Rules": "former versions of that list",
    "Rules FullBatchesNeedAWindow RuleCondition": "with Profile=cheap there is a window",
}

# What lists the alarms that there are.
LISTS = ("Resources PagingAlarm", "Resources Dashboard")


def former():
    """The former template, with functions of CloudFormation in their long form."""
    return json.loads(gzip.decompress(FORMER.read_bytes()))


def renew():
    """Makes the present template the former one."""
    text = json.dumps(stack.read(), sort_keys=True, separators=(",", ":"))
    FORMER.write_bytes(gzip.compress(text.encode(), mtime=0))


def differences(one, other, path=()):
    """The paths at which two values differ, without what only the other one has as a member."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name, value in one.items():
            yield from differences(value, other[name], (*path, name)) if name in other else [(*path, name)]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, pair in enumerate(zip(one, other)):
            yield from differences(*pair, (*path, str(number)))
    elif type(one) is not type(other) or one != other:
        yield path


def without_alarms(value, names):
    """A list of alarms, in any form, without those of these names."""
    if isinstance(value, dict):
        return {name: without_alarms(one, names) for name, one in value.items()}
    if isinstance(value, list):
        ours = [f'ALARM("${{{name}.Arn}}")' for name in names]
        return [without_alarms(one, names) for one in value if one not in [{"Fn::Sub": text} for text in ours]]
    if isinstance(value, str):
        for name in names:
            value = re.sub(rf', "\${{{name}\.Arn}}"|"\${{{name}\.Arn}}", ', "", value)
    return value


def without_words(template):
    """A template without what is for people and tools alone."""
    template = {name: one for name, one in template.items() if name not in ("Metadata", "Description")}
    for section in ("Parameters", "Outputs"):
        for one in template[section].values():
            one.pop("Description", None)
    return template


def is_below(path, place):
    return fnmatch.fnmatchcase(path, place) or fnmatch.fnmatchcase(path, f"{place} *")


def compared():
    """Both templates, the present one without new alarms in the lists of alarms."""
    before, now = without_words(former()), without_words(stack.read())
    new = now["Resources"].keys() - before["Resources"].keys()
    for place in LISTS:
        section, name = place.split()
        now[section][name] = without_alarms(now[section][name], new)
    return before, now


class Former(unittest.TestCase):
    def test_each_difference_has_its_reason_and_each_reason_a_difference(self):
        before, now = compared()
        found = {" ".join(path) for path in differences(before, now)}
        listed = {path for path in found if any(is_below(path, place) for place in DIFFERENCES)}
        self.assertEqual(sorted(found - listed), [])
        for place in DIFFERENCES:
            with self.subTest(place):
                self.assertTrue(any(is_below(path, place) for path in found))

    def test_a_change_and_a_removal_are_differences_and_an_addition_is_none(self):
        one = {"kept": [1, 2], "changed": {"at": [1, 2]}, "gone": 1, "kind": 1}
        other = {"kept": [1, 2], "changed": {"at": [1, 3]}, "new": 1, "kind": "1"}
        self.assertEqual(
            sorted(differences(one, other)), [("changed", "at", "1"), ("gone",), ("kind",)]
        )

    def test_a_new_alarm_is_left_out_of_the_lists_of_alarms(self):
        before, now = compared()
        rule = json.dumps(without_alarms(now["Resources"]["PagingAlarm"], ["WakeSilentAlarm"]))
        shown = json.dumps(without_alarms(now["Resources"]["Dashboard"], ["WakeSilentAlarm", "RedriveAlarm"]))
        self.assertNotIn("WakeSilentAlarm", rule + shown)
        self.assertNotIn("RedriveAlarm.Arn", shown)
        self.assertIn("WakeErrorsAlarm", rule)
        self.assertIn("RecordThrottlesAlarm", shown)


if __name__ == "__main__":
    renew()
