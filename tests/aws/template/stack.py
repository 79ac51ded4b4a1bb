"""The template as a stack would be made of it: transformed by SAM's own translator, offline, and every
parameter, condition and function of CloudFormation worked out. Nothing here knows what posthaste wants of
it."""

import copy
import functools
import json
import logging
import os
import pathlib
import re

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

ROOT = pathlib.Path(__file__).resolve().parents[3]
TEMPLATE = ROOT / "template.yaml"

PSEUDO = {
    "AWS::StackName": "posthaste",
    "AWS::Region": "us-east-1",
    "AWS::AccountId": "123456789012",
    "AWS::Partition": "aws",
    "AWS::StackId": "arn:aws:cloudformation:us-east-1:123456789012:stack/posthaste/0b8b9c5e",
    "AWS::URLSuffix": "amazonaws.com",
}

# Values for texts that have no list of allowed ones, where everything optional is set.
TEXTS = {
    "AdminKeySha256": "5c1e" * 16,
    # Rules about queues and buckets need some. What is adopted has a rule of its own.
    "AdoptFrom": "",
    "AdoptStateBucket": "",
    "AdoptDeadLetterBucket": "",
    "AdoptLogBucket": "",
    "AlarmTopicArn": "arn:aws:sns:us-east-1:123456789012:alarms",
    "AllowEndpoints": "10.0.0.0/8",
    "DnsServer": "10.0.0.2:53",
    "KmsKeyArn": "arn:aws:kms:us-east-1:123456789012:key/5c1e5c1e-5c1e-5c1e-5c1e-5c1e5c1e5c1e",
    "LinkSettings": '{"glitches":4}',
    "ManagePublicUrl": "https://manage.example.com/",
    "NoticesTopic": "ops",
    "OtlpEndpoint": "http://127.0.0.1:4318",
    "OtlpHeaders": "x-key=secret",
    "OtlpResource": "region=here",
    "PagingTopicArn": "arn:aws:sns:us-east-1:123456789012:pager",
    "PermissionsBoundary": "arn:aws:iam::123456789012:policy/bound/developers",
    "PressureInterval": "20",
    "PressureSettings": '{"SubmissionQueueHighThreshold":20000}',
    "PublishCertificateArn": "arn:aws:acm:us-east-1:123456789012:certificate/5c1e5c1e",
    "PublishDomainName": "events.example.com",
    "RolePath": "/posthaste/",
    "SecurityGroupIds": "sg-5c1e",
    "SenderHeaders": '{"prefix":"acme"}',
    "SubnetIds": "subnet-5c1e,subnet-e1c5",
    "WebhookOrigin": "hooks.example.com",
}

NOTHING = object()

# A queue that monitor makes for the stack, from attributes as SQS takes them: each is a text.
MADE_QUEUE = "Custom::Queue"
NUMBERS = ("KmsDataKeyReusePeriodSeconds", "MaximumMessageSize", "MessageRetentionPeriod", "VisibilityTimeout")
POLICIES = ("RedrivePolicy", "RedriveAllowPolicy")

# The translator wants to know where it would deploy to.
os.environ.setdefault("AWS_DEFAULT_REGION", PSEUDO["AWS::Region"])

# It also warns that it cannot ask AWS for feature toggles. It need not.
logging.getLogger("samtranslator").setLevel(logging.CRITICAL)


def read():
    """The template as it is written, with functions of CloudFormation in their long form; a copy that may be
    broken."""
    return copy.deepcopy(_parsed())


@functools.cache
def _parsed():
    return yaml_parse(TEMPLATE.read_text())


def defaults(template):
    """Only what must be given."""
    return {name: TEXTS[name] for name, one in template["Parameters"].items() if "Default" not in one}


def an_api_alone(template):
    """Only what must be given, and an HTTP API."""
    return {**defaults(template), "HttpFrontend": "ApiGateway"}


def everything(template):
    """Every parameter at a value that is not its default: the last allowed one, the greatest, or one of
    TEXTS. But for Tarpit, which does not go with an HTTP API, and KmsKeyUse and DeliverSlow, with which the key
    would encrypt nothing and a queue would not be read."""
    given = {name: _unlike_default(name, one) for name, one in template["Parameters"].items()}
    return {**given, "Tarpit": "advise", "KmsKeyUse": "encrypt", "DeliverSlow": "drain"}


def a_key_that_only_decrypts(template):
    """The steps before a running stack encrypts by a key, and before it leaves the key."""
    return {**everything_behind_function_urls(template), "KmsKeyUse": "decrypt"}


def everything_behind_function_urls(template):
    """The same with function URLs, with what goes with them alone, and with log groups that go with the stack."""
    names = {"PublishDomainName": "", "PublishCertificateArn": ""}
    without = {"LogsOutliveStack": "false", **names}
    return {**everything(template), "HttpFrontend": "FunctionUrl", "Tarpit": "delay", **without}


def _unlike_default(name, parameter):
    if "AllowedValues" in parameter:
        return [str(value) for value in parameter["AllowedValues"] if value != parameter.get("Default")][-1]
    if parameter["Type"] == "Number":
        return str(parameter.get("MaxValue", parameter["Default"] + 1))
    return TEXTS.get(name, name)


class Stack:
    """What a stack made with `given` parameters consists of."""

    def __init__(self, template, given):
        self.written = template
        self.parameters = {
            name: str(given.get(name, one.get("Default"))) for name, one in template["Parameters"].items()
        }

    @functools.cached_property
    def transformed(self):
        """The template that SAM makes of it."""
        return _transform(self.written, self.parameters)

    @functools.cached_property
    def resources(self):
        return {
            name: self._resolve({**one, "Properties": one.get("Properties", {})})
            for name, one in self.transformed["Resources"].items()
            if self._holds(one.get("Condition"))
        }

    def outputs(self):
        """The values of the outputs, by name."""
        return {
            name: self._resolve(one["Value"])
            for name, one in self.transformed.get("Outputs", {}).items()
            if self._holds(one.get("Condition"))
        }

    def of(self, kind):
        """The properties of the resources of one type, by name. A queue is one whoever makes it."""
        found = {name: one["Properties"] for name, one in self.resources.items() if one["Type"] == kind}
        if kind == "AWS::SQS::Queue":
            found |= {name: self._as_queue(one) for name, one in self.of(MADE_QUEUE).items()}
        return found

    def queue_at(self, text):
        """The queue that an ARN or a URL is of, or the text itself where it is of none of this stack."""
        return self._names.get(text, text)

    def _as_queue(self, made):
        """The properties that CloudFormation would have for a queue that monitor makes."""
        queue = {name: value for name, value in made["Attributes"].items() if value != ""}
        queue |= {name: int(queue[name]) for name in NUMBERS if name in queue}
        queue |= {name: json.loads(queue[name]) for name in POLICIES if name in queue}
        if "SqsManagedSseEnabled" in queue:
            queue["SqsManagedSseEnabled"] = queue["SqsManagedSseEnabled"] == "true"
        if target := queue.get("RedrivePolicy", {}).get("deadLetterTargetArn"):
            queue["RedrivePolicy"]["deadLetterTargetArn"] = self.queue_at(target)
        return {"QueueName": made["QueueName"], **queue}

    def properties(self, name, given):
        """The properties of a resource, nothing if there is none, with other values for some parameters."""
        resource = self.transformed["Resources"].get(name, {})
        return self._asked(given)._resolve(resource.get("Properties", {}))

    def _asked(self, given):
        """This stack with other values for some parameters, without a transformation of its own."""
        asked = copy.copy(self)
        asked.parameters = self.parameters | {name: str(value) for name, value in given.items()}
        return asked

    def refusals(self, given=None):
        """What CloudFormation says against the parameters, by the template's own Rules; with others for some
        that are `given`."""
        asked = self._asked(given or {})
        return [
            assertion["AssertDescription"]
            for one in self.written.get("Rules", {}).values()
            if asked._resolve(one.get("RuleCondition", True))
            for assertion in one["Assertions"]
            if not asked._resolve(assertion["Assert"])
        ]

    @functools.cached_property
    def _names(self):
        """ARNs and URLs of queues, by which a text is known as the resource that it means."""
        names = {}
        for name, one in self.transformed["Resources"].items():
            if one["Type"] in ("AWS::SQS::Queue", MADE_QUEUE) and self._holds(one.get("Condition")):
                text = self._queue_name(name, one["Properties"].get("QueueName"))
                account = PSEUDO["AWS::AccountId"]
                names[f"arn:aws:sqs:{PSEUDO['AWS::Region']}:{account}:{text}"] = f"{name}.Arn"
                names[f"https://sqs.{PSEUDO['AWS::Region']}.amazonaws.com/{account}/{text}"] = name
        return names

    def _queue_name(self, name, written):
        return self._substituted(written["Fn::Sub"], {}) if isinstance(written, dict) else written or name

    def _holds(self, condition):
        return condition is None or self._resolve(self.written["Conditions"][condition])

    def _resolve(self, value):
        if isinstance(value, list):
            return [one for one in map(self._resolve, value) if one is not NOTHING]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            [(name, argument)] = value.items()
            if name in ("Ref", "Condition") or name.startswith("Fn::"):
                return self._call(name, argument)
        members = {name: self._resolve(one) for name, one in value.items()}
        return {name: one for name, one in members.items() if one is not NOTHING}

    def _call(self, name, argument):
        """References to resources become `Name` and `Name.Attribute`, which is enough to compare them."""
        if name == "Ref":
            return self._named(argument)
        if name == "Condition":
            return self._holds(argument)
        if name == "Fn::GetAtt":
            return self._attribute(".".join(argument) if isinstance(argument, list) else argument)
        if name == "Fn::Sub":
            return self._filled(*argument) if isinstance(argument, list) else self._filled(argument, {})
        if name == "Fn::If":
            condition, yes, no = argument
            return self._resolve(yes if self._holds(condition) else no)
        if name == "Fn::Equals":
            one, other = map(self._resolve, argument)
            return str(one) == str(other)
        if name == "Fn::Contains":
            texts, text = map(self._resolve, argument)
            return str(text) in texts
        if name == "Fn::Not":
            return not self._resolve(argument[0])
        if name in ("Fn::And", "Fn::Or"):
            return (all if name == "Fn::And" else any)(map(self._resolve, argument))
        if name == "Fn::Select":
            index, values = argument
            return self._resolve(values)[int(index)]
        if name == "Fn::Split":
            separator, text = argument
            return self._resolve(text).split(separator)
        if name == "Fn::FindInMap":
            mapping, key, member = map(self._resolve, argument)
            value = self.written["Mappings"][mapping][key][member]
            return int(value) if value.isdecimal() else value
        if name == "Fn::Join":
            separator, parts = argument
            return separator.join(map(str, self._resolve(parts)))
        raise NotImplementedError(f"{name}: teach stack.py what it means")

    def _filled(self, text, values):
        filled = self._substituted(text, values)
        return self._names.get(filled, filled)

    def _substituted(self, text, values):
        values = {name: self._resolve(one) for name, one in values.items()}

        def fill(found):
            name = found[1]
            return str(values[name] if name in values else self._named(name))

        return re.sub(r"\$\{([^!}][^}]*)\}", fill, text).replace("${!", "${")

    def _attribute(self, text):
        """A variable of the template, which a parameter of Systems Manager is, is what it holds."""
        name, _, attribute = text.partition(".")
        variable = self.written["Resources"].get(name, {})
        if (variable.get("Type"), attribute) == ("AWS::SSM::Parameter", "Value"):
            return self._resolve(variable["Properties"]["Value"])
        if (variable.get("Type"), attribute) == (MADE_QUEUE, "DeliverConcurrency"):
            return sum(self._resolve(variable["Properties"]["DeliverConcurrencies"]))
        return text

    def _named(self, name):
        if name == "AWS::NoValue":
            return NOTHING
        if name in self.parameters:
            value, kind = self.parameters[name], self.written["Parameters"][name]["Type"]
            if kind == "CommaDelimitedList":
                return value.split(",")
            return int(value) if kind == "Number" else value
        return PSEUDO.get(name, self._attribute(name))


def _transform(template, parameters):
    template = copy.deepcopy(template)
    # What `sam package` would have uploaded.
    template["Globals"]["Function"]["CodeUri"] = "s3://bucket/key"
    return transform(template, parameters, _NoManagedPolicies())


class _NoManagedPolicies:
    """The translator asks AWS for policies by name; roles here name none."""

    def load(self):
        return {}
