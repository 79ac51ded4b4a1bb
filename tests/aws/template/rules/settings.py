"""Parameters: what a user meets."""

from rules import rule

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
def what_lambda_would_refuse_is_refused_at_once(stack):
    if stack.refusals():
        yield f"the parameters are refused: {stack.refusals()}"
    for size, window, is_refused in ((10, 0, False), (11, 0, True), (11, 1, False)):
        given = {"DeliverBatchSize": size, "DeliverBatchWindow": window}
        if bool(stack.refusals(given)) != is_refused:
            yield f"{given}: {'taken' if is_refused else 'refused'}"


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
        "PublishUrl": "PublishFunctionUrl.FunctionUrl",
        "ManageUrl": "ManageFunctionUrl.FunctionUrl",
        "StateBucketName": "StateBucket",
        "DeadLetterBucketName": "DeadLetterBucket",
        "LogBucketName": "LogBucket",
        "DeliveriesQueueUrl": "DeliveriesQueue",
        "DeadLettersQueueUrl": "DeadLettersQueue",
        "RecordsQueueUrl": "RecordsQueue",
        "RedriveQueueUrl": "RedriveQueue",
        "AdoptionParameters": "AdoptFrom=posthaste AdoptStateBucket=StateBucket "
        "AdoptDeadLetterBucket=DeadLetterBucket AdoptLogBucket=LogBucket",
    }
    outputs = stack.outputs()
    for name, value in expected.items():
        found = outputs.get(name)
        if found != value:
            yield f"{name}: is {found}"
