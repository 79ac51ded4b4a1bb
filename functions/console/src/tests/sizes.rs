//! Pages stay short, whatever an endpoint returns.

use posthaste_testkit::endpoint::answered;
use serde_json::json;

use super::World;

const PAGE: &str = "/console/topics/orders/subscriptions/billing";

#[tokio::test]
async fn a_hostile_answer_to_a_test_event_makes_no_long_page() {
    let world = World::signed_in().await;
    world.put(&["topics", "orders"], json!({})).await;
    let billing = json!({ "endpoint": { "url": "https://billing.example.com/hooks" } });
    world
        .put(&["topics", "orders", "subscriptions", "billing"], billing)
        .await;
    for sign in ["\"", "\u{1}", "🙂", "\u{202e}"] {
        let body = sign.repeat(65_536 / sign.len());
        let value = &*"\"".repeat(1_000).leak();
        let headers: Vec<_> = (0..64)
            .map(|at| (&*format!("x-{at}").leak(), value))
            .collect();
        world
            .endpoint
            .answer(move |_| answered(400, &headers, &body));
        let page = world.post(PAGE, &format!("{PAGE}/test"), &[]).await;
        page.has(&["of 64 headers are shown", "Only the beginning is shown"]);
        assert!(
            page.html.len() < 110_000,
            "{sign:?}: {} bytes",
            page.html.len()
        );
    }
}
