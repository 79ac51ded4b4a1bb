"""Alarms and the dashboard: whom they tell, and that what they watch exists."""

import json
import re

from rules import rule
from stack import PSEUDO, ROOT

NAMESPACE = PSEUDO["AWS::StackName"]


@rule
def alarms_tell_the_topic_that_was_given(stack):
    topic = [stack.parameters["AlarmTopicArn"]] if stack.parameters["AlarmTopicArn"] else None
    for name, alarm in alarms(stack).items():
        if alarm.get("AlarmActions") != topic or alarm.get("OKActions", topic) != topic:
            yield f"{name}: does not tell {topic}"
        if not alarm.get("AlarmDescription"):
            yield f"{name}: does not say what is wrong"


@rule
def silence_is_an_alarm_for_what_a_schedule_starts_every_minute(stack):
    for name, alarm in alarms(stack).items():
        expected = "breaching" if name in ("MonitorSilentAlarm", "WakeSilentAlarm") else "notBreaching"
        if alarm.get("TreatMissingData") != expected:
            yield f"{name}: takes silence as {alarm.get('TreatMissingData')}"


@rule
def every_trouble_has_its_alarm(stack):
    watched = {
        (one["MetricName"], *(dimension["Value"] for dimension in one["Dimensions"]))
        for one in alarms(stack).values()
    }
    functions = stack.of("AWS::Lambda::Function")
    wanted = {
        ("NumberOfMessagesSent", "posthaste-deadletters"),
        ("ApproximateAgeOfOldestMessage", "posthaste-deadletters"),
        ("ApproximateAgeOfOldestMessage", "posthaste-deliveries"),
        ("ApproximateAgeOfOldestMessage", "posthaste-records"),
        ("LogRecordsLostCount",),
        ("OldestUnwrittenRecordInSeconds",),
        ("OldestUnwrittenDeadLetterInSeconds",),
        ("NumberOfMessagesReceived", "posthaste-redrive"),
        ("Url5xxCount", "PublishFunction"),
        ("Url5xxCount", "ManageFunction"),
        ("Invocations", "WakeFunction"),
        *(
            ("PressureLevel", one)
            for one in ("submission-queue", "database-disk", "dead-letter-backlog", "drain-time")
        ),
        *((metric, name) for metric in ("Errors", "Throttles") for name in functions),
    }
    for missing in sorted(wanted - watched):
        yield f"nobody hears of {missing}"
    if stack.parameters["PressureProfile"] != "off" and "MonitorSilentAlarm" not in alarms(stack):
        yield "nobody hears of a monitor that is silent"


@rule
def what_is_told_in_tries_is_looked_for_as_long_as_a_try_may_take(stack):
    """A gauge that is sent every 15 minutes, or 5 later, is missing from most periods."""
    alarm = alarms(stack).get("DeadLettersRefusedAlarm", {})
    looked_at = alarm.get("Period", 0) * alarm.get("EvaluationPeriods", 0)
    window = 15 * 60 + int(stack.parameters["DeadletterBatchWindow"])
    if looked_at <= window or alarm.get("DatapointsToAlarm") != 1:
        yield f"DeadLettersRefusedAlarm: looks at {looked_at} s, a letter is tried every {window} s"


@rule
def our_metrics_are_those_that_the_code_sends(stack):
    folders = [*(ROOT / "functions").glob("*/src"), ROOT / "shared/services/src"]
    sources = [path.read_text() for folder in folders for path in folder.glob("**/*.rs")]
    # The name stands in the macro, or in the call of a function `count…` that hands it to one.
    call = re.compile(r'\b(?:counter!|gauge!|histogram!|count\w*)\(\s*"([A-Z]\w+)"')
    sent = {name for text in sources for name in call.findall(text)}
    resources = re.findall(r'=> "([a-z-]+)"', (ROOT / "shared/core/src/pressure/resource.rs").read_text())
    shown = set(
        re.findall(
            rf'Namespace="{NAMESPACE}" MetricName="(\w+)"', json.dumps(dashboard(stack)).replace('\\"', '"')
        )
    )
    ours = {name: one for name, one in alarms(stack).items() if one["Namespace"] == NAMESPACE}
    for metric in sorted((shown | {one["MetricName"] for one in ours.values()}) - sent):
        yield f"{metric}: no function sends it"
    for metric in sorted(sent - shown):
        yield f"{metric}: not on the dashboard"
    for name, alarm in ours.items():
        expected = [("resource", True)] if alarm["MetricName"] == "PressureLevel" else []
        if [(one["Name"], one["Value"] in resources) for one in alarm["Dimensions"]] != expected:
            yield f"{name}: no metric has {alarm['Dimensions']}"


@rule
def the_dashboard_shows_every_alarm(stack):
    shown = [arn for widget in dashboard(stack)["widgets"] for arn in widget["properties"].get("alarms", [])]
    # One that is not always there cannot be named.
    always = (name for name in alarms(stack) if "Condition" not in stack.transformed["Resources"][name])
    for name in sorted(set(f"{name}.Arn" for name in always) ^ set(shown)):
        yield f"{name}: either not shown or not there"


def alarms(stack):
    return stack.of("AWS::CloudWatch::Alarm")


def dashboard(stack):
    [one] = stack.of("AWS::CloudWatch::Dashboard").values()
    return json.loads(one["DashboardBody"])
