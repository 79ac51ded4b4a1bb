//! The way to the first event, where there is no topic yet.

use maud::{Markup, html};

use crate::console::PATH;

/// A request that publishes an event.
const PUBLISH: &str = r#"curl -i "${POSTHASTE_URL%/}/topics/orders/events" \
  -H "aeg-sas-key: $KEY" -H 'content-type: application/cloudevents+json' \
  -d '{"specversion":"1.0","id":"1","source":"/first","type":"com.example.first","data":{"hello":"world"}}'"#;

/// The steps.
pub(super) fn section() -> Markup {
    html! {
        section.empty aria-labelledby="first-steps" {
            h2 #first-steps { "First steps" }
            p { "There is no topic yet. Events are published to a topic. Each of its subscriptions delivers \
                 them to an endpoint." }
            ol {
                li {
                    "Make a topic, and in it a subscription with the URL of your endpoint."
                    p.actions { a.button.primary href={ (PATH) "/topics/new" } { "New topic" } }
                }
                li { "Copy one of the keys that the page of the topic shows. Producers publish with it." }
                li {
                    "Publish an event. Here the topic is " code { "orders" } ", " code { "POSTHASTE_URL" }
                    " is the address of this server (on AWS the output " code { "PublishUrl" }
                    " of the stack), and " code { "KEY" } " is the key."
                    " With " code { "PublishUrlAuthType=AWS_IAM" } " sign the request: "
                    code { "curl --aws-sigv4" } "."
                    pre tabindex="0" role="region" aria-label="The request" { code { (PUBLISH) } }
                }
                li { "See under " a href={ (PATH) "/events" } { "Events" } " what became of it." }
            }
        }
    }
}
