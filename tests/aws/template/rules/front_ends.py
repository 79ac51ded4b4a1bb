"""What takes requests to publish and manage: function URLs, or HTTP APIs of API Gateway."""

from rules import rule
from rules.settings import publish_url

FRONTED = ("Publish", "Manage")

# An HTTP API waits no longer for its function.
# https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html
API_TIMEOUT_MILLIS_MAX = 30_000


@rule
def there_is_one_way_in(stack):
    """Function URLs or HTTP APIs, never both: the other would go around throttles and a domain's name."""
    is_api = stack.parameters["HttpFrontend"] == "ApiGateway"
    targets = sorted(one["TargetFunctionArn"] for one in stack.of("AWS::Lambda::Url").values())
    if targets != ([] if is_api else ["ManageFunction", "PublishFunction"]):
        yield f"function URLs for {targets}"
    apis = sorted(stack.of("AWS::ApiGatewayV2::Api"))
    if apis != (["ManageApi", "PublishApi"] if is_api else []):
        yield f"HTTP APIs {apis}"
    for name, one in stack.of("AWS::Lambda::Permission").items():
        if is_api and one["Principal"] == "*":
            yield f"{name}: everybody may call {one['FunctionName']}, past its API"


@rule
def an_api_hands_everything_to_its_function(stack):
    for api in stack.of("AWS::ApiGatewayV2::Api"):
        function = api.replace("Api", "Function")
        wanted = {
            "ApiId": api, "IntegrationType": "AWS_PROXY", "IntegrationUri": f"{function}.Arn",
            # The form of function URLs.
            "PayloadFormatVersion": "2.0", "TimeoutInMillis": API_TIMEOUT_MILLIS_MAX,
        }
        found = stack.of("AWS::ApiGatewayV2::Integration").get(f"{api}Integration")
        if found != wanted:
            yield f"{api}: calls {found}, expected {wanted}"
        route = {key: one for key, one in of_api(stack, "Route", api).items() if key != "AuthorizationType"}
        if route != {"ApiId": api, "RouteKey": "$default", "Target": f"integrations/{api}Integration"}:
            yield f"{api}: its route is {route}"
        permissions = stack.of("AWS::Lambda::Permission").values()
        callers = {one["Principal"]: one for one in permissions if one["FunctionName"] == function}
        source = callers.get("apigateway.amazonaws.com", {}).get("SourceArn")
        if source != f"arn:aws:execute-api:us-east-1:123456789012:{api}/*":
            yield f"{api}: {source} may call {function}"


@rule
def an_api_throttles(stack):
    for api in stack.of("AWS::ApiGatewayV2::Api"):
        stage, name = of_api(stack, "Stage", api), api.removesuffix("Api")
        wanted = {
            "ThrottlingRateLimit": int(stack.parameters[f"{name}ThrottleRate"]),
            "ThrottlingBurstLimit": int(stack.parameters[f"{name}ThrottleBurst"]),
        }
        if (stage.get("StageName"), stage.get("AutoDeploy")) != ("$default", True):
            yield f"{api}: its stage is {stage}"
        if stage.get("DefaultRouteSettings") != wanted:
            yield f"{api}: throttles as {stage.get('DefaultRouteSettings')}, expected {wanted}"


@rule
def publish_alone_may_ask_for_a_signature_of_aws(stack):
    # The signature takes the header Authorization, which carries the admin key of manage.
    wanted = {"Publish": stack.parameters["PublishUrlAuthType"], "Manage": "NONE"}
    for name in FRONTED:
        found = stack.of("AWS::Lambda::Url").get(f"{name}FunctionUrl", {}).get("AuthType")
        found = found or of_api(stack, "Route", f"{name}Api").get("AuthorizationType")
        if found != wanted[name]:
            yield f"{name}: asks for {found}, expected {wanted[name]}"


@rule
def a_domain_name_leads_to_publish(stack):
    name = stack.parameters["PublishDomainName"]
    domains = {one["DomainName"] for one in stack.of("AWS::ApiGatewayV2::DomainName").values()}
    if domains != ({name} if name else set()):
        yield f"domain names are {domains}"
    wanted = [{"ApiId": "PublishApi", "DomainName": "PublishDomain", "Stage": "PublishApiStage"}]
    mappings = list(stack.of("AWS::ApiGatewayV2::ApiMapping").values())
    if mappings != (wanted if name else []):
        yield f"the domain name leads to {mappings}"


@rule
def manage_knows_where_events_are_published(stack):
    variables = stack.of("AWS::Lambda::Function")["ManageFunction"]["Environment"]["Variables"]
    if variables.get("PUBLISH_URL") != publish_url(stack):
        yield f"manage tells operators {variables.get('PUBLISH_URL')}, expected {publish_url(stack)}"


@rule
def errors_of_callers_are_counted_where_they_are_answered(stack):
    wanted = "AWS/ApiGateway" if stack.parameters["HttpFrontend"] == "ApiGateway" else "AWS/Lambda"
    for name in FRONTED:
        alarm = stack.of("AWS::CloudWatch::Alarm").get(f"{name}UrlErrorsAlarm", {})
        if alarm.get("Namespace", wanted) != wanted:
            yield f"{name}UrlErrorsAlarm: looks in {alarm['Namespace']}, expected {wanted}"


def of_api(stack, kind, api):
    """The route or stage of an API, nothing if it has none."""
    return stack.of(f"AWS::ApiGatewayV2::{kind}").get(f"{api}{kind}", {})
