"""Queues and what reads them."""

import re

from rules import rule
from stack import MADE_QUEUE, PSEUDO, ROOT

# AWS's advice for queues that Lambda reads.
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
TIMEOUTS_PER_VISIBILITY = 6

RETENTION_SECS_MAX = 1_209_600

# How long SQS uses one data key, and so a key that was disabled.
DATA_KEY_SECS = 300

# Lambda gathers more than this only where it is given time to.
BATCH_WITHOUT_WINDOW_MAX = 10


@rule
def visibility_covers_six_invocations_and_the_window(stack):
    for name, source in sources(stack).items():
        function, queue = stack.of("AWS::Lambda::Function")[source["FunctionName"]], queue_of(stack, source)
        window = source.get("MaximumBatchingWindowInSeconds", 0)
        least = TIMEOUTS_PER_VISIBILITY * function["Timeout"] + window
        if queue is None:
            yield f"{name}: reads {source['EventSourceArn']}, which is no queue of this stack"
        elif queue["VisibilityTimeout"] < least:
            yield f"{name}: a visibility timeout of {queue['VisibilityTimeout']} s, but {least} s are needed"


@rule
def failures_are_reported_message_by_message(stack):
    for name, source in sources(stack).items():
        if source.get("FunctionResponseTypes") != ["ReportBatchItemFailures"]:
            yield f"{name}: one failure would bring its whole batch back"


@rule
def a_full_batch_has_a_window(stack):
    for name, source in sources(stack).items():
        if source["BatchSize"] > BATCH_WITHOUT_WINDOW_MAX and not source.get(
            "MaximumBatchingWindowInSeconds"
        ):
            yield f"{name}: a batch of {source['BatchSize']} without a window is refused by Lambda"


@rule
def what_fails_often_is_redriven(stack):
    counts = re.search(
        r"MAX_RECEIVE_COUNT: u32 = (\d+);", (ROOT / "shared/core/src/model/limits.rs").read_text()
    )
    queues = stack.of("AWS::SQS::Queue")
    for name, queue in queues.items():
        redrive = queue.get("RedrivePolicy")
        if name == "RedriveQueue":
            if redrive:
                yield f"{name}: the last queue cannot redrive"
        elif redrive != {"deadLetterTargetArn": "RedriveQueue.Arn", "maxReceiveCount": int(counts[1])}:
            yield f"{name}: redrives as {redrive}, expected to RedriveQueue after {counts[1]} receives"


# A source that there is not, named by the stack's id. It makes the attributes of the redrive queue this
# stack's own, so that no other stack of the name is given the queue.
NO_QUEUE = ":".join(["arn:aws:sqs", PSEUDO["AWS::Region"], PSEUDO["AWS::AccountId"],
                     PSEUDO["AWS::StackId"].rpartition("/")[2]])


@rule
def the_redrive_queue_takes_from_its_sources_alone(stack):
    queues = stack.of("AWS::SQS::Queue")
    feeding = sorted(f"{name}.Arn" for name, queue in queues.items() if "RedrivePolicy" in queue)
    for name, queue in queues.items():
        allowed = queue.get("RedriveAllowPolicy")
        expected = {"redrivePermission": "denyAll"}
        if name == "RedriveQueue":
            expected = {"redrivePermission": "byQueue", "sourceQueueArns": sorted([*feeding, NO_QUEUE])}
            allowed = allowed and {**allowed, "sourceQueueArns": sorted(allowed.get("sourceQueueArns", []))}
        if allowed != expected:
            yield f"{name}: takes redriven messages as {allowed}, expected {expected}"


@rule
def the_redrive_queue_keeps_as_long_as_its_sources(stack):
    # A redriven message keeps its age: in a queue that keeps for less, it could be gone on arrival.
    queues = stack.of("AWS::SQS::Queue")
    for name, queue in queues.items():
        if queue["MessageRetentionPeriod"] > queues["RedriveQueue"]["MessageRetentionPeriod"]:
            yield f"{name}: keeps messages for longer than RedriveQueue"
        if queue["MessageRetentionPeriod"] != RETENTION_SECS_MAX:
            yield f"{name}: keeps messages for {queue['MessageRetentionPeriod']} s, not for 14 days"


@rule
def queues_take_the_largest_message(stack):
    # The default has changed once: a queue that does not say its size has that of the day it was made.
    size = re.search(
        r"SQS_MESSAGE_BYTES_MAX: usize = ([\d_]+);",
        (ROOT / "shared/core/src/model/limits.rs").read_text(),
    )
    largest = int(size[1].replace("_", ""))
    for name, queue in stack.of("AWS::SQS::Queue").items():
        if queue.get("MaximumMessageSize") != largest:
            yield f"{name}: takes messages of {queue.get('MaximumMessageSize')} bytes, but {largest} are sent"


@rule
def queues_outlive_the_stack(stack):
    for name, one in stack.resources.items():
        if one["Type"] == "AWS::SQS::Queue" and not outlives(one):
            yield f"{name}: would go with the stack, and with it what was acknowledged"
        # An update that fails is undone when deliveries may be in it.
        if one["Type"] == MADE_QUEUE and not outlives(one, "Retain"):
            yield f"{name}: would go with an update that failed, and with it what was acknowledged"


def outlives(resource, deletion="RetainExceptOnCreate"):
    """Whether a resource stays when its stack goes, or when an update would replace it. One that a deployment
    made which failed is empty, and goes, unless another policy of deletion is named."""
    policies = resource.get("DeletionPolicy"), resource.get("UpdateReplacePolicy")
    return policies == (deletion, "Retain")


def encrypting_key(stack):
    """The key that encrypts what is written, empty if AWS owns it. One that only decrypts is for roles."""
    return stack.parameters["KmsKeyArn"] if stack.parameters["KmsKeyUse"] == "encrypt" else ""


@rule
def queues_are_encrypted(stack):
    key = encrypting_key(stack)
    # A queue has one of the two.
    expected = (None, key) if key else (True, None)
    for name, queue in stack.of("AWS::SQS::Queue").items():
        found = queue.get("SqsManagedSseEnabled"), queue.get("KmsMasterKeyId")
        if found != expected:
            yield f"{name}: encrypted as {found}, expected {expected}"
        if queue.get("KmsDataKeyReusePeriodSeconds") != (DATA_KEY_SECS if key else None):
            yield f"{name}: a key that was disabled works for {queue.get('KmsDataKeyReusePeriodSeconds')} s"


@rule
def queues_take_tls_only(stack):
    policies = stack.of("AWS::SQS::QueuePolicy").values()
    for name in stack.of("AWS::SQS::Queue"):
        if not any(
            name in policy["Queues"] and refuses_plain_text(policy, "sqs:*", f"{name}.Arn")
            for policy in policies
        ):
            yield f"{name}: may be reached without TLS"


def refuses_plain_text(policy, action, *resources):
    """Whether the policy denies everybody everything that comes without TLS."""
    return any(
        (one["Effect"], one["Principal"], one["Action"]) == ("Deny", "*", action)
        and one["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
        and set(resources) <= set(listed(one["Resource"]))
        for one in policy["PolicyDocument"]["Statement"]
    )


def sources(stack):
    """Event source mappings, by name. Their function is named as in the template."""
    return stack.of("AWS::Lambda::EventSourceMapping")


def queue_of(stack, source):
    return stack.of("AWS::SQS::Queue").get(source["EventSourceArn"].removesuffix(".Arn"))


def listed(one_or_more):
    return one_or_more if isinstance(one_or_more, list) else [one_or_more]
