"""The template of before there was a queue of slow deliveries: today's without all that came with the queue.
tests/former deploys that of the last release as it was, with its programs."""

import json

SLOW = "DeliveriesSlow"

# What stands in the template for the queue alone.
RESOURCES = (SLOW, "DeliveriesSlowAgeAlarm")
PARAMETERS = ("DeliverSlow", "SlowAfter", "DeliverSlowMaximumConcurrency")
VARIABLES = ("SLOW_DELIVERIES_QUEUE_URL", "SLOW_AFTER_SECONDS", "DELIVER_SLOW", "DELIVER_SLOW_MAXIMUM_CONCURRENCY")


def before_the_slow_queue(template):
    """Takes the queue out of a template."""
    resources = template["Resources"]
    for name in RESOURCES:
        del resources[name]
    for name in PARAMETERS:
        del template["Parameters"][name]
    del template["Outputs"]["DeliveriesSlowQueueUrl"]
    for resource in resources.values():
        if resource.get("DependsOn") == SLOW:
            resource["DependsOn"] = "StateClaim"
        if resource["Type"] == "AWS::Serverless::Function":
            variables = resource["Properties"]["Environment"]["Variables"]
            for name in VARIABLES:
                variables.pop(name, None)
    deliver = resources["DeliverFunction"]["Properties"]
    del deliver["Events"][SLOW], deliver["ReservedConcurrentExecutions"]
    schedule = resources["MonitorFunction"]["Properties"]["Events"]["EveryMinute"]["Properties"]
    schedule["Input"] = {"Fn::Sub": '{"claim":"${StateClaim}"}'}
    sources = resources["RedriveQueue"]["Properties"]["RedriveAllowPolicy"]["sourceQueueArns"]
    sources[:] = [one for one in sources if "-deliveries-slow" not in json.dumps(one)]
    del resources["Dashboard"]
    del template["Outputs"]["DashboardName"]
    return template
