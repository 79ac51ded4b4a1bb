"""Alarms and the dashboard: whom they tell, and that what they watch exists."""

import json
import re

from rules import rule
from rules.queues import sources
from stack import PSEUDO, ROOT, TEXTS

NAMESPACE = PSEUDO["AWS::StackName"]

METRICS_BY = ROOT / "shared/aws/src/telemetry/metrics_by.rs"

LEVELS = ("none", "essential", "all")

# What wakes a person: callers get errors, or events are stuck. By metric, and what it is of.
ESSENTIAL = {
    ("Throttles", "PublishFunction"),
    ("ApproximateAgeOfOldestMessage", "posthaste-deliveries"),
    ("ApproximateAgeOfOldestMessage", "posthaste-deliveries-slow"),
    ("ApproximateAgeOfOldestMessage", "posthaste-deadletters"),
    ("OldestUnwrittenDeadLetterInSeconds",),
    ("OldestReturnedMessageInSeconds", "deliver"),
    ("OldestReturnedMessageInSeconds", "deadletter"),
    ("Invocations", "WakeFunction"),
    ("Errors", "DeliverFunction"),
    ("Errors", "DeadletterFunction"),
    ("Errors", "WakeFunction"),
    ("Errors", "MonitorFunction"),
}

# Can wait until morning.
OTHERS = {
    ("NumberOfMessagesSent", "posthaste-deadletters"),
    ("ApproximateAgeOfOldestMessage", "posthaste-records"),
    ("LogRecordsLostCount",),
    ("OldestUnwrittenRecordInSeconds",),
    ("NumberOfMessagesReceived", "posthaste-redrive"),
    ("ApproximateNumberOfMessagesVisible", "posthaste-redrive"),
    ("PressureLevel", "submission-queue"),
    ("PressureLevel", "database-disk"),
    ("PressureLevel", "dead-letter-backlog"),
    ("PressureLevel", "drain-time"),
}

# A month in us-east-1. https://aws.amazon.com/cloudwatch/pricing/
ALARM_DOLLARS = 0.10  # for each metric of an alarm
COMPOSITE_DOLLARS = 0.50
METRIC_DOLLARS = 0.30  # for each metric of our own that is written

# Our metrics that an idle stack writes, by name and dimensions: none. A sample of the monitor that finds
# everything calm sets each of its gauges to 0 (functions/monitor), and a gauge at rest is not written
# (shared/aws/src/telemetry).
IDLE_METRICS = ()

DOLLARS_MAX = 4.00


@rule
def each_level_has_its_alarms(stack):
    level, there = stack.parameters["Alarms"], {seen(one) for one in alarms(stack).values()}
    others = OTHERS | {(metric, name) for metric in ("Errors", "Throttles") for name in functions(stack)}
    wanted = {"none": set(), "essential": essential(stack), "all": essential(stack) | others}[level]
    for missing in sorted(wanted - there):
        yield f"nobody hears of {missing} at the level {level}"
    for extra in sorted(there - wanted):
        yield f"{extra} has an alarm at the level {level}"


@rule
def alarms_tell_the_topic_that_was_given(stack):
    topic = [stack.parameters["AlarmTopicArn"]] if stack.parameters["AlarmTopicArn"] else None
    for name, alarm in alarms(stack).items():
        if alarm.get("AlarmActions") != topic or alarm.get("OKActions", topic) != topic:
            yield f"{name}: does not tell {topic}"
        if not alarm.get("AlarmDescription"):
            yield f"{name}: does not say what is wrong"


@rule
def the_pager_hears_of_each_essential_alarm_and_of_nothing_else(stack):
    pager, there = stack.parameters["PagingTopicArn"], stack.of("AWS::CloudWatch::CompositeAlarm")
    if not pager or stack.parameters["Alarms"] == "none":
        if there:
            yield f"{sorted(there)}: there is nobody to wake"
        return
    if list(there) != ["PagingAlarm"]:
        yield f"{sorted(there)}: not the one alarm that wakes a person"
        return
    alarm = there["PagingAlarm"]
    if alarm.get("AlarmActions") != [pager] or alarm.get("OKActions") != [pager]:
        yield f"PagingAlarm: does not tell {pager}"
    wanted = [f'ALARM("{name}.Arn")' for name, one in alarms(stack).items() if seen(one) in essential(stack)]
    rung = [one for one in alarm["AlarmRule"].split(" OR ") if one != "FALSE"]
    if sorted(rung) != sorted(wanted):
        yield f"PagingAlarm: rings for {rung} instead of {wanted}"


@rule
def a_pager_without_alarms_is_refused(stack):
    given = {**stack.parameters, "PagingTopicArn": TEXTS["PagingTopicArn"], "Alarms": "none"}
    if len(type(stack)(stack.written, given).refusals()) != 1:
        yield "PagingTopicArn without alarms is deployed"


@rule
def alarms_and_metrics_of_an_idle_stack_cost_little(stack):
    with_pager = dollars(stack) + (0 if stack.parameters["PagingTopicArn"] else COMPOSITE_DOLLARS)
    if with_pager > DOLLARS_MAX:
        yield f"alarms and metrics cost ${with_pager:.2f} a month, more than ${DOLLARS_MAX:.2f}"


@rule
def silence_is_an_alarm_for_what_a_schedule_starts_every_minute(stack):
    for name, alarm in alarms(stack).items():
        expected = "breaching" if name in ("MonitorSilentAlarm", "WakeSilentAlarm") else "notBreaching"
        if alarm.get("TreatMissingData") != expected:
            yield f"{name}: takes silence as {alarm.get('TreatMissingData')}"


@rule
def a_single_failure_of_what_is_tried_again_wakes_nobody(stack):
    """The run of the next minute makes up for it, or the batch is received again."""
    for name in ("DeliverErrorsAlarm", "DeadletterErrorsAlarm", "WakeErrorsAlarm", "MonitorErrorsAlarm"):
        alarm = alarms(stack).get(name)
        looks = alarm and [alarm.get(one) for one in ("Period", "EvaluationPeriods", "DatapointsToAlarm")]
        if alarm and looks != [60, 5, 3]:
            yield f"{name}: looks at {looks}"


@rule
def what_is_told_in_tries_is_looked_for_as_long_as_a_try_may_take(stack):
    """A gauge that is sent with each try is missing from most periods."""
    for name, secs in tried_after_secs(stack).items():
        if alarm := alarms(stack).get(name):
            looked_at = alarm["Period"] * alarm["EvaluationPeriods"]
            if looked_at <= secs or alarm.get("DatapointsToAlarm") != 1:
                yield f"{name}: looks at {looked_at} s, a message is tried every {secs} s"


def tried_after_secs(stack):
    """The longest time between two tries that an alarm's gauge tells of: a delay of its own or the visibility
    timeout, and the window in which the mapping gathers."""
    deliveries, dead_letters = (
        sources(stack).get(name, {}).get("MaximumBatchingWindowInSeconds", 0)
        for name in ("DeliverFunctionDeliveries", "DeadletterFunctionDeadLetters")
    )
    shown = {name: queue["VisibilityTimeout"] for name, queue in stack.of("AWS::SQS::Queue").items()}
    return {
        "DeadLettersRefusedAlarm": 15 * 60 + dead_letters,
        "DeliveriesReturnedAlarm": shown["DeliveriesQueue"] + deliveries,
        "DeadLettersReturnedAlarm": shown["DeadLettersQueue"] + dead_letters,
    }


@rule
def our_metrics_are_those_that_the_code_sends(stack):
    sent = sent_by("counter!|gauge!|histogram!|count\\w*")
    dimensions = dimensions_of_ours(stack)
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
        found = {one["Name"]: one["Value"] for one in alarm["Dimensions"]}
        values = dimensions.get(alarm["MetricName"], {})
        if found.keys() != values.keys() or any(found[one] not in values[one] for one in found):
            yield f"{name}: no metric has {alarm['Dimensions']}"


def dimensions_of_ours(stack):
    """Our metrics that have dimensions, with the values that these have."""
    resources = re.findall(r'=> "([a-z-]+)"', (ROOT / "shared/core/src/pressure/resource.rs").read_text())
    receiving = {one["FunctionName"].removesuffix("Function").lower() for one in sources(stack).values()}
    return {
        "PressureLevel": {"resource": resources},
        "OldestReturnedMessageInSeconds": {"function": receiving},
    }


@rule
def an_alarm_looks_at_what_is_written_with_its_invocation(stack):
    """An instance keeps other metrics for up to a minute, and they are lost when Lambda ends it."""
    watched = re.search(r"const WATCHED: .*? = \[(.*?)\];", METRICS_BY.read_text(), re.DOTALL)[1]
    prompt = sent_by("gauge!") | set(re.findall(r'"(\w+)"', watched))
    for name, alarm in alarms(stack).items():
        if alarm["Namespace"] == NAMESPACE and alarm["MetricName"] not in prompt:
            yield f"{name}: an instance keeps {alarm['MetricName']} back, which WATCHED in {METRICS_BY.name} ends"


@rule
def the_dashboard_shows_every_alarm(stack):
    shown = [arn for widget in dashboard(stack)["widgets"] for arn in widget["properties"].get("alarms", [])]
    there = {**alarms(stack), **stack.of("AWS::CloudWatch::CompositeAlarm")}
    for name in sorted({f"{name}.Arn" for name in there} ^ set(shown)):
        yield f"{name}: either not shown or not there"
    empty = [one for one in dashboard(stack)["widgets"] if one["properties"].get("alarms") == []]
    if empty or len(shown) != len(set(shown)):
        yield "an alarm is shown twice, or none in a frame for alarms"


def alarms(stack):
    return stack.of("AWS::CloudWatch::Alarm")


def functions(stack):
    return stack.of("AWS::Lambda::Function")


def seen(alarm):
    """The metric of an alarm, and what it is of."""
    return (alarm["MetricName"], *(dimension["Value"] for dimension in alarm["Dimensions"]))


def essential(stack):
    """What wakes a person who has these parameters."""
    if stack.parameters["PressureProfile"] == "off":
        return ESSENTIAL | answers_of_5xx(stack)
    return ESSENTIAL | answers_of_5xx(stack) | {("Invocations", "MonitorFunction")}


def answers_of_5xx(stack):
    """The metrics of what callers of publish and manage are answered."""
    if stack.parameters["HttpFrontend"] == "ApiGateway":
        return {("5xx", "PublishApi"), ("5xx", "ManageApi")}
    return {("Url5xxCount", "PublishFunction"), ("Url5xxCount", "ManageFunction")}


def dollars(stack):
    """What alarms and metrics of a stack cost in a month in which nothing is published."""
    composites = stack.of("AWS::CloudWatch::CompositeAlarm")
    return (
        len(alarms(stack)) * ALARM_DOLLARS
        + len(composites) * COMPOSITE_DOLLARS
        + len(IDLE_METRICS) * METRIC_DOLLARS
    )


def row_of_the_page(stack):
    """The row of the table in docs/src/operating/aws.md."""
    pager = "set" if stack.parameters["PagingTopicArn"] else "empty"
    level, count = stack.parameters["Alarms"], len(alarms(stack))
    return f"| `{level}` | {pager} | {count} | {len(IDLE_METRICS)} | ${dollars(stack):.2f} |"


def sent_by(macros):
    """The metrics that functions send by one of these macros. The name stands in the macro, or in the call of
    a function `count…` of the same file that hands it to one."""
    shared = [ROOT / "shared/services/src", ROOT / "shared/aws/src/lambda"]
    folders = [*(ROOT / "functions").glob("*/src"), *shared]
    call = re.compile(rf'\b(?:{macros})\(\s*"([A-Z]\w+)"')
    files = [path.read_text() for folder in folders for path in folder.glob("**/*.rs")]
    return {
        name
        for file in files
        if re.search(r"\b(?:counter|gauge|histogram)!", file)
        for name in call.findall(file)
    }


def dashboard(stack):
    [one] = stack.of("AWS::CloudWatch::Dashboard").values()
    return json.loads(one["DashboardBody"])
