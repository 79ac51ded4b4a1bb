"""The repository's template as the emulator can take it: the same resources, with the code where it was
uploaded, and without the few things that cannot hold here. Every difference is one function of this file."""

import pathlib

from samtranslator.yaml_helper import yaml_parse

import package

TEMPLATE = package.ROOT / "template.yaml"

BATCHED = ("sqs:SendMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility")


def local(bucket, parameters, path=TEMPLATE):
    """The template, each function's code being `{program}.zip` in the bucket."""
    template = adapted(parameters, path)
    point_at_code(template, bucket)
    return template


def adapted(parameters, path=TEMPLATE):
    """The template with what the emulator needs, and its code still to be built."""
    template = yaml_parse(pathlib.Path(path).read_text())
    write_numbers_of_sources(template, parameters)
    allow_batches(template)
    let_plain_http_in(template)
    return template


def parameters(path=TEMPLATE):
    """The names of the parameters that the template has. The emulator takes any other too, and forgets it."""
    return list(yaml_parse(pathlib.Path(path).read_text())["Parameters"])


def point_at_code(template, bucket):
    """`sam package` does the same with what `sam build` made."""
    for function in of_type(template, "AWS::Serverless::Function").values():
        binary = function.pop("Metadata")["BuildProperties"]["Binary"]
        function["Properties"]["CodeUri"] = {"Bucket": bucket, "Key": f"{binary}.zip"}


def write_numbers_of_sources(template, given):
    """Writes parameters that are numbers into event sources as numbers. ministack 1.5.33 leaves them text
    there, and its poller of queues then dies of comparing text with a number."""
    numbers = {
        name: int(given.get(name, parameter["Default"]))
        for name, parameter in template["Parameters"].items()
        if parameter["Type"] == "Number"
    }
    profiles = template.get("Mappings", {}).get("Profiles", {})
    profile = profiles.get(given.get("Profile", "default"), {})
    profiled = {name: int(number) for name, number in profile.items()}
    for function in of_type(template, "AWS::Serverless::Function").values():
        for event in function["Properties"].get("Events", {}).values():
            event["Properties"] = with_numbers(event["Properties"], numbers, profiled)


def with_numbers(value, numbers, profiled):
    if isinstance(value, dict):
        if value.get("Ref") in numbers:
            return numbers[value["Ref"]]
        if "Fn::FindInMap" in value:
            return profiled[value["Fn::FindInMap"][-1]]
        return {name: with_numbers(one, numbers, profiled) for name, one in value.items()}
    if isinstance(value, list):
        return [with_numbers(one, numbers, profiled) for one in value]
    return value


def allow_batches(template):
    """Allows each role the batch form of what it may do with a queue. On AWS `sqs:SendMessage` covers both;
    ministack 1.5.33 asks for an action of the batch's own name."""
    for role in of_type(template, "AWS::IAM::Role").values():
        for policy in role["Properties"]["Policies"]:
            for one in policy["PolicyDocument"]["Statement"]:
                # What stands there if a condition holds.
                statement = one["Fn::If"][1] if "Fn::If" in one else one
                actions = statement["Action"]
                actions = actions if isinstance(actions, list) else [actions]
                statement["Action"] = actions + [f"{one}Batch" for one in actions if one in BATCHED]


def let_plain_http_in(template):
    """Takes out the statements that refuse what is not TLS: the emulator is reached over plain http on
    loopback, and it enforces policies. A policy that says nothing else goes as a whole."""
    for kind in ("AWS::S3::BucketPolicy", "AWS::SQS::QueuePolicy"):
        for name, policy in of_type(template, kind).items():
            document = policy["Properties"]["PolicyDocument"]
            document["Statement"] = [one for one in document["Statement"] if not refuses_plain_http(one)]
            if not document["Statement"]:
                del template["Resources"][name]


def refuses_plain_http(statement):
    conditions = statement.get("Condition", {}).get("Bool", {})
    return statement["Effect"] == "Deny" and str(conditions.get("aws:SecureTransport")).lower() == "false"


def of_type(template, kind):
    """The resources of one type, by name, as they are now."""
    return {name: one for name, one in template["Resources"].items() if one["Type"] == kind}
