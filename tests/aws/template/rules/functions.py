"""Functions: who may call them, how many run at once, where their logs go."""

from rules import rule
from rules.queues import encrypting_key, sources
from stack import PSEUDO

# Functions that ask every request for a key of their own, so that their URLs may be public.
ASK_FOR_A_KEY = {"PublishFunction", "ManageFunction"}


@rule
def deliver_alone_may_loop(stack):
    for name, function in functions(stack).items():
        loop = function.get("RecursiveLoop", "Terminate")
        if loop != ("Allow" if name == "DeliverFunction" else "Terminate"):
            yield f"{name}: RecursiveLoop is {loop}"


@rule
def concurrency_is_bounded_and_fits_what_is_reserved(stack):
    for name, function in functions(stack).items():
        mine = {
            key: one for key, one in sources(stack).items()
            if one["FunctionName"] == name and one.get("Enabled", True)
        }
        wanted = [one.get("ScalingConfig", {}).get("MaximumConcurrency") for one in mine.values()]
        if None in wanted:
            yield f"{name}: an event source has no MaximumConcurrency"
        elif (used := sum(wanted) + others(stack, name)) > function.get("ReservedConcurrentExecutions", used):
            reserved = function["ReservedConcurrentExecutions"]
            yield f"{name}: uses {used} at once, but {reserved} are reserved"


def others(stack, name):
    """The invocations at once beside those of event sources: one of the function's schedule, and one of the
    custom resources that it answers for, which come one after the other. CloudFormation asks while a run of
    the schedule may last."""
    asked = [one["Properties"].get("ServiceToken") for one in stack.resources.values()]
    return (name in scheduled_functions(stack)) + (f"{name}.Arn" in asked)


@rule
def the_slow_lane_is_as_wide_as_was_asked_for(stack):
    for quick, slow, expected in ((50, 10, 10), (9, 10, 2), (2, 10, 2), (9, 4, 4), (10, 10, 10)):
        given = {"DeliverMaximumConcurrency": quick, "DeliverSlowMaximumConcurrency": slow}
        lane = stack.properties("DeliverFunctionDeliveriesSlow", given)
        found = lane.get("ScalingConfig", {}).get("MaximumConcurrency")
        variables = stack.properties("MonitorFunction", given)["Environment"]["Variables"]
        told = variables.get("DELIVER_SLOW_MAXIMUM_CONCURRENCY")
        if (found, told) != (expected, expected):
            yield f"{given}: {found} at once, and monitor counts with {told}"
    for asked, is_read in (("on", True), ("drain", True), ("off", False)):
        lane = stack.properties("DeliverFunctionDeliveriesSlow", {"DeliverSlow": asked})
        if lane.get("Enabled") is not is_read:
            yield f"DeliverSlow={asked}: the queue is {'not ' if is_read else ''}read"


@rule
def deliver_reads_both_of_its_queues(stack):
    mine = {one["EventSourceArn"]: one for one in sources(stack).values() if one["FunctionName"] == "DeliverFunction"}
    if sorted(mine) != ["DeliveriesQueue.Arn", "DeliveriesSlow.Arn"]:
        yield f"deliver reads {sorted(mine)}"
    slow = mine.get("DeliveriesSlow.Arn", {})
    if (slow.get("BatchSize"), slow.get("MaximumBatchingWindowInSeconds")) != (100, 1):
        yield f"deliver reads the slow queue as {slow}"


@rule
def nothing_is_reserved_unless_asked_for(stack):
    for name, function in functions(stack).items():
        is_asked = any(stack.parameters[one] not in ("-1", "false") for one in RESERVATIONS[name])
        if ("ReservedConcurrentExecutions" in function) != is_asked:
            yield f"{name}: reserves {function.get('ReservedConcurrentExecutions')}"


RESERVATIONS = {
    "PublishFunction": ["PublishReservedConcurrency"],
    "DeliverFunction": ["ReserveDeliverConcurrency"],
    "WakeFunction": ["ReserveBackgroundConcurrency"],
    "DeadletterFunction": ["ReserveBackgroundConcurrency"],
    "MonitorFunction": ["ReserveBackgroundConcurrency"],
    "ManageFunction": ["ManageReservedConcurrency"],
    "RecordFunction": ["ReserveBackgroundConcurrency"],
}


@rule
def a_public_url_asks_for_a_key(stack):
    public = {
        one["TargetFunctionArn"] for one in stack.of("AWS::Lambda::Url").values() if one["AuthType"] == "NONE"
    }
    called_by_all = {
        one["FunctionName"] for one in stack.of("AWS::Lambda::Permission").values() if one["Principal"] == "*"
    }
    for name in sorted((public | called_by_all) - ASK_FOR_A_KEY):
        yield f"{name}: everybody may call it, and it asks for no key"
    for name in sorted(called_by_all - public):
        yield f"{name}: everybody may call it, although its URL is not public"


@rule
def a_public_url_can_be_called(stack):
    # Both are needed since October 2025.
    # https://docs.aws.amazon.com/lambda/latest/dg/urls-auth.html
    needed = [
        {"Action": "lambda:InvokeFunction", "InvokedViaFunctionUrl": True},
        {"Action": "lambda:InvokeFunctionUrl", "FunctionUrlAuthType": "NONE"},
    ]
    permissions = stack.of("AWS::Lambda::Permission").values()
    for url in stack.of("AWS::Lambda::Url").values():
        mine = (
            one
            for one in permissions
            if one["FunctionName"] == url["TargetFunctionArn"] and one["Principal"] == "*"
        )
        granted = [{key: one[key] for key in one if key not in ("FunctionName", "Principal")} for one in mine]
        if url["AuthType"] == "NONE" and sorted(granted, key=lambda one: one["Action"]) != needed:
            yield f"{url['TargetFunctionArn']}: everybody may {granted}, expected {needed}"


@rule
def logs_are_json_and_kept_for_a_time(stack):
    groups = stack.of("AWS::Logs::LogGroup")
    taken = [function.get("LoggingConfig", {}).get("LogGroup") for function in functions(stack).values()]
    for name, function in functions(stack).items():
        config = function.get("LoggingConfig", {})
        group = config.get("LogGroup")
        if group not in groups or taken.count(group) != 1:
            yield f"{name}: no log group of its own"
        elif "RetentionInDays" not in groups[group]:
            yield f"{name}: logs are kept for ever"
        # Lambda's filter drops lines that say no level if it is less than INFO: metrics are such lines.
        if (config.get("LogFormat"), config.get("ApplicationLogLevel")) != ("JSON", "TRACE"):
            yield f"{name}: logs as {config}"


@rule
def logs_outlive_the_stack_where_that_was_asked_for(stack):
    """A group that stays has a name of its own: another stack of the same name makes its groups too."""
    groups = {name: one for name, one in stack.resources.items() if one["Type"] == "AWS::Logs::LogGroup"}
    is_kept = stack.parameters["LogsOutliveStack"] == "true"
    expected = ("RetainExceptOnCreate", "Retain") if is_kept else (None, None)
    folder = "/aws/lambda/posthaste/" + (f"{PSEUDO['AWS::StackId'].split('/')[2]}/" if is_kept else "")
    names = {f"{folder}{one.removesuffix('Function').lower()}" for one in functions(stack)}
    if (found := {one["Properties"].get("LogGroupName") for one in groups.values()}) != names:
        yield f"the groups are {sorted(map(str, found))}"
    for name, group in groups.items():
        if (policies := (group.get("DeletionPolicy"), group.get("UpdateReplacePolicy"))) != expected:
            yield f"{name}: {policies}, expected {expected}"


@rule
def schedules_are_never_retried(stack):
    scheduled = scheduled_functions(stack)
    if set(scheduled) != {"WakeFunction", "MonitorFunction", "RecordFunction"}:
        yield f"scheduled are {sorted(scheduled)}"
    once = {
        one["FunctionName"]: one["MaximumRetryAttempts"]
        for one in stack.of("AWS::Lambda::EventInvokeConfig").values()
    }
    for name, target in scheduled.items():
        if (once.get(name), target.get("RetryPolicy", {}).get("MaximumRetryAttempts")) != (0, 0):
            yield f"{name}: a run that failed is run again, beside the next minute's"


@rule
def functions_run_on_the_processor_asked_for(stack):
    for name, function in functions(stack).items():
        expected = ("provided.al2023", [stack.parameters["Architecture"]])
        if (function["Runtime"], function["Architectures"]) != expected:
            yield f"{name}: not {expected}"


def scheduled_functions(stack):
    """The targets of schedules, by the name of their function."""
    rules = stack.of("AWS::Events::Rule").values()
    return {target["Arn"].removesuffix(".Arn"): target for one in rules for target in one["Targets"]}


@rule
def environments_are_encrypted_by_the_key(stack):
    for name, function in functions(stack).items():
        if function.get("KmsKeyArn", "") != encrypting_key(stack):
            yield f"{name}: its environment is encrypted by {function.get('KmsKeyArn')}"


@rule
def logs_are_encrypted_by_the_key(stack):
    for name, group in stack.of("AWS::Logs::LogGroup").items():
        if group.get("KmsKeyId", "") != encrypting_key(stack):
            yield f"{name}: encrypted by {group.get('KmsKeyId')}"


# The functions that connect to endpoints. Others need nothing of a network and would pay for it.
CONNECT_TO_ENDPOINTS = {"DeliverFunction", "ManageFunction"}


@rule
def what_connects_to_endpoints_runs_in_the_network(stack):
    subnets, groups = (stack.parameters[one] for one in ("SubnetIds", "SecurityGroupIds"))
    network = {"SubnetIds": subnets.split(","), "SecurityGroupIds": groups.split(",")} if subnets else None
    for name, function in functions(stack).items():
        expected = network if name in CONNECT_TO_ENDPOINTS else None
        if function.get("VpcConfig") != expected:
            yield f"{name}: runs in {function.get('VpcConfig')}, expected {expected}"


def functions(stack):
    return stack.of("AWS::Lambda::Function")
