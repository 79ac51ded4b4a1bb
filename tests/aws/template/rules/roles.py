"""Roles: `roles.json` is the golden list of what each may do, to be changed by hand when the code calls
something new. `roles-by-parameter.json` says what a parameter adds to it when it is given."""

import json
import pathlib

from rules import rule
from rules.functions import CONNECT_TO_ENDPOINTS, functions
from rules.queues import listed

GOLDEN = pathlib.Path(__file__).parents[1] / "roles.json"
GOLDEN_BY_PARAMETER = GOLDEN.with_name("roles-by-parameter.json")

# What Lambda does with a function's role to connect it to a network. Most of it takes no narrower resource.
# https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html#configuration-vpc-permissions
NETWORK = {
    f"ec2:{one}"
    for one in (
        "CreateNetworkInterface", "DescribeNetworkInterfaces", "DescribeSubnets", "DeleteNetworkInterface",
        "AssignPrivateIpAddresses", "UnassignPrivateIpAddresses",
    )
}


@rule
def roles_may_do_what_the_golden_list_says(stack):
    golden = golden_list(stack)
    roles = {name: granted(role) for name, role in stack.of("AWS::IAM::Role").items()}
    for name in sorted(golden.keys() | roles.keys()):
        for pair in sorted(pairs(roles.get(name, {})) - pairs(golden.get(name, {}))):
            yield f"{name}: may {' on '.join(pair)}, which the golden list does not say"
        for pair in sorted(pairs(golden.get(name, {})) - pairs(roles.get(name, {}))):
            yield f"{name}: may not {' on '.join(pair)}, which the golden list says"


@rule
def roles_name_what_they_touch(stack):
    for name, role in stack.of("AWS::IAM::Role").items():
        if role.get("ManagedPolicyArns"):
            yield f"{name}: leans on a policy that somebody else changes"
        for action, resources in granted(role).items():
            if "*" in action:
                yield f"{name}: {action} is more than the code calls"
            for one in resources:
                if not is_of(stack, action, one):
                    yield f"{name}: {action} on {one}, which is not of this stack"


def is_of(stack, action, resource):
    """Whether a resource is of the stack, or is one that it was given to use."""
    if action.startswith("kms:"):
        return resource == stack.parameters["KmsKeyArn"] != ""
    return (action in NETWORK and resource == "*") or resource.split("/")[0].split(".")[0] in stack.resources


@rule
def a_key_is_used_through_queues_and_buckets_alone(stack):
    services = {f"{one}.us-east-1.amazonaws.com" for one in ("sqs", "s3")}
    for name, role in stack.of("AWS::IAM::Role").items():
        for statement in statements(role, "Allow"):
            if any(one.startswith("kms:") for one in listed(statement["Action"])):
                via = statement.get("Condition", {}).get("StringEquals", {}).get("kms:ViaService", [])
                if set(listed(via)) != services:
                    yield f"{name}: may use the key through {via}"


@rule
def code_in_a_network_may_not_change_it(stack):
    """Nor where there is no network: who leaves one gives the role more for a while."""
    for name, role in stack.of("AWS::IAM::Role").items():
        allowed = {one for one in granted(role) if one.startswith("ec2:")}
        if name.replace("Role", "Function") in CONNECT_TO_ENDPOINTS:
            allowed |= NETWORK
        denied = {action for one in statements(role, "Deny") if is_of_code(one) for action in one["Action"]}
        if not allowed <= denied:
            yield f"{name}: the function's code may {sorted(allowed - denied)}"


def is_of_code(statement):
    """Whether a statement is about everything that the code of any function does."""
    condition = {"ArnLike": {"lambda:SourceFunctionArn": "arn:aws:lambda:*:*:function:*"}}
    return statement["Resource"] == "*" and statement.get("Condition") == condition


@rule
def roles_have_the_boundary_and_the_path_that_were_given(stack):
    for name, role in stack.of("AWS::IAM::Role").items():
        bound, path = (role.get(one) for one in ("PermissionsBoundary", "Path"))
        if (bound or "") != stack.parameters["PermissionsBoundary"]:
            yield f"{name}: bounded by {bound}"
        # A path that is written where none was would replace the roles of stacks that run.
        wanted = stack.parameters["RolePath"]
        if path != (None if wanted == "/" else wanted):
            yield f"{name}: its path is {path}, expected {wanted}"


@rule
def each_function_has_a_role_of_its_own(stack):
    taken = [function["Role"] for function in functions(stack).values()]
    for name, function in functions(stack).items():
        role = stack.of("AWS::IAM::Role").get(function["Role"].removesuffix(".Arn"))
        if not role or taken.count(function["Role"]) != 1:
            yield f"{name}: no role of its own"
            continue
        trusted = [one["Principal"] for one in role["AssumeRolePolicyDocument"]["Statement"]]
        if trusted != [{"Service": "lambda.amazonaws.com"}]:
            yield f"{name}: its role may be taken by {trusted}"
        group = function.get("LoggingConfig", {}).get("LogGroup")
        if granted(role).get("logs:PutLogEvents") != [f"{group}.Arn"]:
            yield f"{name}: its role does not write to its log group alone"


def granted(role):
    """What a role may do: actions with the resources they may be done on."""
    actions = {}
    for statement in statements(role, "Allow"):
        for action in listed(statement["Action"]):
            actions.setdefault(action, []).extend(listed(statement["Resource"]))
    return {action: sorted(resources) for action, resources in sorted(actions.items())}


def statements(role, effect):
    documents = (policy["PolicyDocument"] for policy in role.get("Policies", []))
    return [one for document in documents for one in document["Statement"] if one["Effect"] == effect]


def golden_list(stack):
    """What each role may do in this stack, as both files say."""
    golden = json.loads(GOLDEN.read_text())
    for parameter, roles in json.loads(GOLDEN_BY_PARAMETER.read_text()).items():
        if value := stack.parameters[parameter]:
            for role, actions in roles.items():
                for action, resources in actions.items():
                    golden[role][action] = [one.replace("{value}", value) for one in resources]
    if stack.parameters["LogsOutliveStack"] == "true":
        for actions in golden.values():
            for action in ("logs:CreateLogStream", "logs:PutLogEvents"):
                actions[action] = [one.replace("LogGroup.", "KeptLogGroup.") for one in actions[action]]
    return golden


def pairs(actions):
    return {(action, resource) for action, resources in actions.items() for resource in resources}
