"""Queues and buckets of a stack that was, which another works on; and that no two do so at once."""

import itertools
import json

from rules import rule
from stack import PSEUDO, Stack

OLD = "old"
BUCKETS = {"StateBucket": "old-state", "DeadLetterBucket": "old-deadletters", "LogBucket": "old-log"}
ADOPTED = {"AdoptFrom": OLD, **{f"Adopt{name}": bucket for name, bucket in BUCKETS.items()}}

MADE = ("AWS::SQS::Queue", "AWS::S3::Bucket")

CLAIM = "StateClaim"

# What may be there before the claim: what monitor runs with, what does not touch queues or buckets, HTTP
# APIs, whose integrations wait, and the queues and buckets that the stack makes for itself.
BEFORE = {
    "AWS::ApiGatewayV2::Api",
    "AWS::ApiGatewayV2::ApiMapping",
    "AWS::ApiGatewayV2::DomainName",
    "AWS::ApiGatewayV2::Stage",
    "AWS::CloudWatch::Alarm",
    "AWS::CloudWatch::CompositeAlarm",
    "AWS::CloudWatch::Dashboard",
    "AWS::IAM::Role",
    "AWS::Logs::LogGroup",
    "AWS::SSM::Parameter",
    *MADE,
}


@rule
def adoption_is_all_or_nothing(stack):
    for names in itertools.chain.from_iterable(
        itertools.combinations(ADOPTED, count) for count in range(len(ADOPTED) + 1)
    ):
        given = {name: ADOPTED[name] if name in names else "" for name in ADOPTED}
        refusals = stack.refusals(given)
        if bool(refusals) != (0 < len(names) < len(ADOPTED)):
            yield f"{names or 'nothing'}: {'refused' if refusals else 'taken'}"
        for name in ADOPTED:
            if refusals and "AdoptFrom" in names and name not in names and name not in str(refusals):
                yield f"{names}: no sentence says that {name} is needed"


@rule
def what_is_adopted_is_all_that_differs(stack):
    """A stack that adopts is the stack that makes, less what it makes, with the old names in their places."""
    adopting = Stack(stack.written, {**stack.parameters, **ADOPTED})
    made = {name for name, one in stack.resources.items() if one["Type"] in MADE}
    if len(made) != 7 or made & adopting.resources.keys():
        yield f"adopts, and makes {sorted(made & adopting.resources.keys())}"
    for name in sorted((stack.resources.keys() - made) | adopting.resources.keys()):
        # The variable by which the others differ.
        if name != "QueuePrefix":
            yield from differences(name, stack.resources.get(name), adopting.resources.get(name))
    yield from differences("Outputs", stack.outputs(), adopting.outputs())
    text = json.dumps(adopting.resources)
    for name in sorted(made):
        if f"{name}." in text:
            yield f"{name}: referred to, and not there"


def differences(name, made, adopting):
    if (old := renamed(made)) != adopting:
        yield f"{name}: {adopting}, expected {old}"


def renamed(value):
    """What refers to queues and buckets, as it refers to the old ones."""
    if isinstance(value, dict):
        return {name: renamed(one) for name, one in value.items()}
    if isinstance(value, list):
        return [renamed(one) for one in value]
    return renamed_text(value) if isinstance(value, str) else value


def renamed_text(text):
    if text in WHOLE:
        return WHOLE[text]
    for name, old in PARTS.items():
        text = text.replace(name, old)
    return text


QUEUES = {"DeliveriesQueue": "deliveries", "DeadLettersQueue": "deadletters", "RecordsQueue": "records",
          "RedriveQueue": "redrive"}

STACK = PSEUDO["AWS::StackName"]
ARNS = f"arn:aws:sqs:{PSEUDO['AWS::Region']}:{PSEUDO['AWS::AccountId']}:"
URLS = f"https://sqs.{PSEUDO['AWS::Region']}.amazonaws.com/{PSEUDO['AWS::AccountId']}/"

WHOLE = {
    **BUCKETS,
    **{queue: f"{URLS}{OLD}-{end}" for queue, end in QUEUES.items()},
    **{f"{beginning}{STACK}": f"{beginning}{OLD}" for beginning in (ARNS, URLS)},
}

PARTS = {
    **{f"{queue}.Arn": f"{ARNS}{OLD}-{end}" for queue, end in QUEUES.items()},
    **{f"{STACK}-{end}": f"{OLD}-{end}" for end in QUEUES.values()},
    **{f"{bucket}.Arn": f"arn:aws:s3:::{name}" for bucket, name in BUCKETS.items()},
    **{f"={bucket}": f"={name}" for bucket, name in BUCKETS.items()},
    f"AdoptFrom={STACK}": f"AdoptFrom={OLD}",
}


@rule
def what_uses_a_queue_is_made_after_it(stack):
    """Queues are referred to by their names, which alone make nothing wait."""
    graph = dependencies(stack)
    for queue in stack.of("AWS::SQS::Queue"):
        if queue == SLOW:
            continue
        for name in ("QueueArns", "QueueUrls"):
            if name not in graph or not waits(graph, name, queue):
                yield f"{name}: may be there before {queue}"


# The queue that monitor makes, after the claim and before whatever uses it. What counts it may be there before.
SLOW = "DeliveriesSlow"
USERS = ("AWS::Lambda::EventSourceMapping", "AWS::Lambda::Function", "AWS::SQS::QueuePolicy", "AWS::Events::Rule")

# The schedule of monitor, which counts the queue.
COUNTING = "MonitorFunctionEveryMinute"


@rule
def what_uses_the_slow_queue_is_made_after_it(stack):
    graph = dependencies(stack)
    for name, one in stack.resources.items():
        text = json.dumps(one["Properties"])
        uses = f'"{SLOW}"' in text or f'"{SLOW}.Arn"' in text or name == COUNTING
        if one["Type"] in USERS and name not in SERVING and uses:
            if not waits(graph, name, SLOW):
                yield f"{name}: may be there before {SLOW}"


@rule
def the_slow_queue_is_made_by_monitor_as_its_neighbours_are(stack):
    made = stack.resources.get(SLOW, {"Properties": {}})
    expected = {
        "ServiceToken": "MonitorFunction.Arn", "QueueName": f"{queue_prefix(stack)}-deliveries-slow",
        "QueueArn": f"{SLOW}.Arn", "RedriveQueueUrl": stack.queue_at(f"{URLS}{queue_prefix(stack)}-redrive"),
    }
    found = {name: made["Properties"].get(name) for name in expected}
    if found != expected:
        yield f"{SLOW}: is {found}, expected {expected}"
    timeout = stack.of("AWS::Lambda::Function")["MonitorFunction"]["Timeout"]
    if not timeout < made["Properties"].get("ServiceTimeout", 0) <= 4 * timeout:
        yield f"{SLOW}: is waited for {made['Properties'].get('ServiceTimeout')} s"
    quick = stack.of("AWS::SQS::Queue").get("DeliveriesQueue")
    slow = stack.of("AWS::SQS::Queue").get(SLOW, {})
    names = {one for one in (quick or {}) if one != "QueueName"}
    if quick and {one: slow.get(one) for one in names} != {one: quick[one] for one in names}:
        yield f"{SLOW}: {slow}, expected what DeliveriesQueue has"


def queue_prefix(stack):
    return stack.parameters["AdoptFrom"] or STACK


@rule
def two_stacks_never_work_on_one_state(stack):
    claim = stack.resources.get(CLAIM, {"Type": None, "Properties": {}})
    asked = claim["Properties"].get("ServiceToken"), claim["Properties"].get("StateBucket")
    if (claim["Type"], asked) != ("Custom::StateClaim", ("MonitorFunction.Arn", "StateBucket")):
        yield f"{CLAIM}: is {claim}"
    timeout = stack.of("AWS::Lambda::Function")["MonitorFunction"]["Timeout"]
    if not timeout < claim["Properties"].get("ServiceTimeout", 0) <= 4 * timeout:
        yield f"{CLAIM}: is waited for {claim['Properties'].get('ServiceTimeout')} s"
    graph = dependencies(stack)
    for name in stack.resources:
        if not is_before(stack, name) and not waits(graph, name, CLAIM):
            yield f"{name}: does not wait for the claim to the state"


def is_before(stack, name):
    return stack.resources[name]["Type"] in BEFORE or name in (CLAIM, *SERVING)


# The function behind the claim, and what SAM makes beside it that starts nothing.
SERVING = ("MonitorFunction", "MonitorFunctionEventInvokeConfig")


def dependencies(stack):
    """What each resource is made after, by what it names or depends on."""
    resources = stack.transformed["Resources"]
    return {name: named_by(one, resources) for name, one in resources.items()}


def named_by(resource, resources):
    depends = resource.get("DependsOn", [])
    text = json.dumps(resource.get("Properties", {}))
    return sorted(set([depends] if isinstance(depends, str) else depends) | {
        other for other in resources if f'"{other}"' in text or "${" + other in text
    })


def waits(graph, name, target, seen=()):
    """Whether a resource is made after another."""
    return name == target or any(
        waits(graph, other, target, (*seen, name))
        for other in graph.get(name, [])
        if other not in (*seen, name)
    )
