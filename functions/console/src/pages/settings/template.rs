//! The settings that something new begins with.

/// Those of a topic.
pub(super) const NEW_TOPIC: &str = "\
# The schema of the events: CloudEvents, EventGrid or Custom.
inputSchema: CloudEvents

# Events that were not delivered in this time are given up.
#defaultTimeToLive: P1D

# What the delivery log keeps: payloads, attempts or off.
#deliveryLog: payloads
";

/// The URL of the template, in whose place the endpoint's own is typed.
pub(super) const EXAMPLE_URL: &str = "https://example.com/hooks";

/// Those of a subscription.
pub(super) const NEW_SUBSCRIPTION: &str = "\
# Where the events go.
endpoint:
  url: https://example.com/hooks

# Which events go there. Without a filter, all of the topic.
#filter:
#  includedEventTypes: [com.example.order.paid]
#  subjectBeginsWith: orders/

# How often it is tried. Without a policy, 30 times within a day.
#retryPolicy:
#  maxDeliveryAttempts: 10
#  eventTimeToLiveInMinutes: 60

# Headers of every request.
#deliveryHeaders:
#  - { name: Authorization, value: \"Bearer ...\", isSecret: true }

# A signing secret is made, and shown once after saving.
";
