"""Ways to break what a network, a key and HTTP APIs promise, as in `breaks.py`."""

from breaks import drop, grant, optional, property_of, put, revoke, without


def statement(role, sid, member, value):
    """A break that changes a statement of a role."""

    def break_it(template):
        [policy] = template["Resources"][role]["Properties"]["Policies"]
        for one in map(optional, policy["PolicyDocument"]["Statement"]):
            if one["Sid"] == sid:
                one[member] = value

    return break_it


def only_if(condition, role, sid):
    """A break that makes a statement of a role depend on a condition."""

    def break_it(template):
        [policy] = template["Resources"][role]["Properties"]["Policies"]
        statements = policy["PolicyDocument"]["Statement"]
        statements[:] = [
            {"Fn::If": [condition, one, {"Ref": "AWS::NoValue"}]} if optional(one)["Sid"] == sid else one
            for one in statements
        ]

    return break_it


BREAKS = {
    "logs-are-encrypted-by-the-key": [
        without("WakeLogGroup", "KmsKeyId"),
        property_of("WakeLogGroup", "KmsKeyId Fn::If 0", "HasKey"),
        without("WakeKeptLogGroup", "KmsKeyId"),
    ],
    "environments-are-encrypted-by-the-key": [
        drop("Globals Function KmsKeyArn"),
        put("Globals Function KmsKeyArn Fn::If 0", "HasKey"),
        property_of("WakeFunction", "KmsKeyArn", "arn:aws:kms:us-east-1:123456789012:key/another"),
    ],
    "a-key-is-used-through-queues-and-buckets-alone": [
        statement("WakeRole", "UseKey", "Condition", {}),
        grant("PublishRole", "kms:Decrypt", {"Ref": "KmsKeyArn"}),
    ],
    "what-connects-to-endpoints-runs-in-the-network": [
        without("ManageFunction", "VpcConfig"),
        property_of("DeliverFunction", "VpcConfig Fn::If 2", {"SubnetIds": [], "SecurityGroupIds": []}),
        property_of("WakeFunction", "VpcConfig", {"SubnetIds": {"Ref": "SubnetIds"}}),
    ],
    "code-in-a-network-may-not-change-it": [
        revoke("DeliverRole", "NotByCode"),
        only_if("HasNetwork", "ManageRole", "NotByCode"),
        statement("ManageRole", "NotByCode", "Action", ["ec2:CreateNetworkInterface"]),
        statement("ManageRole", "NotByCode", "Condition", {"ArnLike": {"lambda:SourceFunctionArn": "none"}}),
    ],
    "there-is-one-way-in": [
        drop("Resources PublishFunctionUrl Condition"),
        drop("Resources ManageApi Condition"),
        put("Conditions IsPublishFunctionUrlPublic", {"Fn::Equals": ["1", "1"]}),
    ],
    "an-api-hands-everything-to-its-function": [
        property_of("PublishApiIntegration", "PayloadFormatVersion", "1.0"),
        property_of("ManageApiIntegration", "IntegrationUri", {"Fn::GetAtt": ["PublishFunction", "Arn"]}),
        property_of("PublishApiRoute", "RouteKey", "POST /topics/{topic}/events"),
        drop("Resources ManageApiPermission"),
    ],
    "an-api-throttles": [
        without("PublishApiStage", "DefaultRouteSettings ThrottlingBurstLimit"),
        property_of("ManageApiStage", "DefaultRouteSettings ThrottlingRateLimit", 10_000),
        property_of("ManageApiStage", "StageName", "v1"),
    ],
    "publish-alone-may-ask-for-a-signature-of-aws": [
        property_of("PublishApiRoute", "AuthorizationType", "NONE"),
        property_of("ManageApiRoute", "AuthorizationType", {"Ref": "PublishUrlAuthType"}),
        property_of("ManageFunctionUrl", "AuthType", {"Ref": "PublishUrlAuthType"}),
    ],
    "a-domain-name-leads-to-publish": [
        property_of("PublishDomainMapping", "ApiId", {"Ref": "ManageApi"}),
        drop("Resources PublishDomainMapping"),
        put("Conditions HasPublishDomain", {"Condition": "UsesApiGateway"}),
        drop("Resources PublishDomain Condition"),
    ],
    "manage-knows-where-events-are-published": [
        property_of("ManageFunction", "Environment Variables PUBLISH_URL Fn::If 1", "https://example.com/"),
        without("ManageFunction", "Environment Variables PUBLISH_URL"),
    ],
    "errors-of-callers-are-counted-where-they-are-answered": [
        property_of("ManageUrlErrorsAlarm", "Namespace", "AWS/Lambda"),
        property_of("PublishUrlErrorsAlarm", "Namespace", "AWS/ApiGateway"),
    ],
}
