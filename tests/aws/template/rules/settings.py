"""Parameters: what a user meets."""

from rules import rule
from stack import TEXTS

# SHA-256 of no bytes.
DIGEST_OF_NOTHING = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@rule
def parameters_are_described_and_in_one_group(stack):
    groups = stack.written["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    grouped = [name for group in groups for name in group["Parameters"]]
    for name, parameter in stack.written["Parameters"].items():
        if grouped.count(name) != 1:
            yield f"{name}: in {grouped.count(name)} groups"
        if not parameter.get("Description"):
            yield f"{name}: says nothing about itself"
    for name in sorted(set(grouped) - set(stack.written["Parameters"])):
        yield f"{name}: in a group, but no parameter"


@rule
def numbers_have_bounds(stack):
    for name, parameter in stack.written["Parameters"].items():
        if parameter["Type"] == "Number" and not ("MinValue" in parameter or "AllowedValues" in parameter):
            yield f"{name}: any number is taken"


@rule
def what_aws_would_refuse_is_refused_at_once(stack):
    if stack.refusals():
        yield f"the parameters are refused: {stack.refusals()}"
    for given, is_refused in (*batches(), *front_ends(), *networks()):
        if bool(stack.refusals(given)) != is_refused:
            yield f"{given}: {'taken' if is_refused else 'refused'}"


def batches():
    for profile, size, window, is_refused in (
        ("default", 10, 0, False),
        ("default", 11, 0, True),
        ("default", 11, 1, False),
        ("cheap", 11, 0, False),
        ("fast", 11, 0, True),
    ):
        given = {"DeliverBatchSize": size, "DeliverBatchWindow": window}
        yield {"Profile": profile, **given}, is_refused


# What the stack has under each profile: window, batch, and the memory of publish and deliver.
PROFILES = {
    "default": (0, 10, 256, 512),
    "cheap": (1, 100, 128, 256),
    "fast": (0, 10, 1769, 1769),
}
PROFILED = ("DeliverBatchWindow", "DeliverBatchSize", "PublishMemory", "DeliverMemory")


@rule
def a_profile_sets_what_has_its_default(stack):
    defaults = {name: stack.written["Parameters"][name]["Default"] for name in PROFILED}
    for profile, expected in PROFILES.items():
        given = {**defaults, "Profile": profile}
        if (found := profiled(stack, given)) != expected:
            yield f"Profile={profile}: {found}, expected {expected}"
        own = {"DeliverBatchWindow": 2, "DeliverBatchSize": 7, "PublishMemory": 300, "DeliverMemory": 600}
        if (found := profiled(stack, {**given, **own})) != tuple(own.values()):
            yield f"Profile={profile} with {own}: {found}"


def profiled(stack, given):
    """What a stack has of what a profile sets; the batch as deliver and monitor know it, too."""
    source = stack.properties("DeliverFunctionDeliveries", given)
    functions = [stack.properties(f"{name}Function", given) for name in ("Publish", "Deliver", "Monitor")]
    publish, deliver, _ = functions
    sizes = {one["Environment"]["Variables"]["DELIVER_BATCH_SIZE"] for one in functions}
    window, size = source.get("MaximumBatchingWindowInSeconds"), source.get("BatchSize")
    return window, size if sizes == {size} else sizes, publish["MemorySize"], deliver["MemorySize"]


def front_ends():
    # An HTTP API does not wait as long as a tarpit may.
    for frontend, tarpit, domain, is_refused in (
        ("ApiGateway", "delay", False, True),
        ("ApiGateway", "advise", False, False),
        ("ApiGateway", "advise", True, False),
        ("FunctionUrl", "delay", False, False),
        ("FunctionUrl", "advise", True, True),
    ):
        names = domain_name(domain, domain)
        yield {"HttpFrontend": frontend, "Tarpit": tarpit, **names}, is_refused
    for name, certificate in ((True, False), (False, True)):
        yield {"HttpFrontend": "ApiGateway", "Tarpit": "advise", **domain_name(name, certificate)}, True


def domain_name(has_name, has_certificate):
    return {
        "PublishDomainName": TEXTS["PublishDomainName"] if has_name else "",
        "PublishCertificateArn": TEXTS["PublishCertificateArn"] if has_certificate else "",
    }


def networks():
    for subnets, groups in ((False, False), (True, True), (True, False), (False, True)):
        given = {
            "SubnetIds": TEXTS["SubnetIds"] if subnets else "",
            "SecurityGroupIds": TEXTS["SecurityGroupIds"] if groups else "",
        }
        yield given, subnets != groups


@rule
def the_admin_key_stays_secret(stack):
    name = "AdminKeySha256"
    parameter = stack.written["Parameters"][name]
    if parameter.get("NoEcho") is not True or "Default" in parameter:
        yield f"{name}: shown or known"
    if parameter.get("AllowedPattern") != "[0-9A-Fa-f]{64}":
        yield f"{name}: takes more than a digest"
    if not stack.refusals({name: DIGEST_OF_NOTHING}):
        yield f"{name}: takes the digest of an empty key"
    digest = stack.parameters[name]
    holders = [name for name, one in stack.resources.items() if digest in str(one)]
    if holders != ["ManageFunction"]:
        yield f"{name}: told to {holders}"
    if "AdminKey" in str(stack.transformed.get("Outputs")):
        yield f"{name}: among the outputs"


@rule
def outputs_say_where_everything_is(stack):
    expected = {
        "PublishUrl": publish_url(stack),
        "ManageUrl": url(stack, "Manage"),
        "StateBucketName": "StateBucket",
        "DeadLetterBucketName": "DeadLetterBucket",
        "LogBucketName": "LogBucket",
        "DeliveriesQueueUrl": "DeliveriesQueue",
        "DeliveriesSlowQueueUrl": "DeliveriesSlow",
        "DeadLettersQueueUrl": "DeadLettersQueue",
        "RecordsQueueUrl": "RecordsQueue",
        "RedriveQueueUrl": "RedriveQueue",
        "AdoptionParameters": "AdoptFrom=posthaste AdoptStateBucket=StateBucket "
        f"AdoptDeadLetterBucket=DeadLetterBucket AdoptLogBucket=LogBucket{key_to_adopt_with(stack)}",
    }
    if stack.parameters["PublishDomainName"]:
        expected |= {
            "PublishDomainTarget": "PublishDomain.RegionalDomainName",
            "PublishDomainHostedZoneId": "PublishDomain.RegionalHostedZoneId",
        }
    for name, value in expected.items():
        if (found := stack.outputs().get(name)) != value:
            yield f"{name}: is {found}, expected {value}"


def key_to_adopt_with(stack):
    """What another stack needs beside queues and buckets to read what is in them."""
    key, use = (stack.parameters[name] for name in ("KmsKeyArn", "KmsKeyUse"))
    return f" KmsKeyArn={key} KmsKeyUse={use}" if key else ""


def publish_url(stack):
    """Where producers publish, which manage tells operators too."""
    domain = stack.parameters["PublishDomainName"]
    return f"https://{domain}/" if domain else url(stack, "Publish")


def url(stack, function):
    if stack.parameters["HttpFrontend"] == "ApiGateway":
        return f"{function}Api.ApiEndpoint/"
    return f"{function}FunctionUrl.FunctionUrl"
