"""Roles: `roles.json` is the golden list of what each may do, to be changed by hand when the code calls
something new."""

import json
import pathlib

from rules import rule
from rules.functions import functions
from rules.queues import listed

GOLDEN = pathlib.Path(__file__).parents[1] / "roles.json"


@rule
def roles_may_do_what_the_golden_list_says(stack):
    golden = json.loads(GOLDEN.read_text())
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
            if any(one.split("/")[0].split(".")[0] not in stack.resources for one in resources):
                yield f"{name}: {action} on {resources}, which is not of this stack"


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
    for policy in role.get("Policies", []):
        for statement in policy["PolicyDocument"]["Statement"]:
            for action in listed(statement["Action"]):
                actions.setdefault(action, []).extend(listed(statement["Resource"]))
    return {action: sorted(resources) for action, resources in sorted(actions.items())}


def pairs(actions):
    return {(action, resource) for action, resources in actions.items() for resource in resources}
