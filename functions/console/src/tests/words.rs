//! The words of the pages.

use serde_json::json;

use super::World;
use crate::api::RequestTarget;

/// Words of the API and the command line that pages do not have.
const SEED_WORDS: [&str; 7] = [
    "glitch",
    "tarpit",
    "held",
    "parked",
    "force",
    "forced",
    "retryafter",
];

/// Every page but that of words, that of pressure, and settings as YAML.
const PAGES: [&str; 22] = [
    "/console",
    "/console?hours=24",
    "/console/topics",
    "/console/topics/new",
    "/console/topics/orders",
    "/console/topics/orders/edit",
    "/console/topics/orders/subscriptions/new",
    "/console/topics/orders/subscriptions/billing",
    "/console/topics/orders/subscriptions/billing?tab=danger",
    "/console/topics/orders/subscriptions/billing/edit",
    "/console/topics/orders/subscriptions/paused",
    "/console/topics/orders/events/order-1",
    "/console/events?topic=orders",
    "/console/dead-letters",
    "/console/dead-letters?topic=orders&subscription=billing",
    "/console/dead-letters/list?topic=orders&subscription=billing",
    "/console/failing",
    "/console/work",
    "/console/kept",
    "/console/told",
    "/console/search?q=order-1",
    "/console/audit",
];

#[tokio::test]
async fn no_page_has_a_seed_word_outside_the_glossary() {
    let world = World::signed_in().await;
    world.put(&["topics", "orders"], json!({})).await;
    for name in ["billing", "paused"] {
        let settings = json!({ "endpoint": { "url": format!("https://{name}.example.com/") } });
        world
            .put(&["topics", "orders", "subscriptions", name], settings)
            .await;
        world
            .state
            .write(&format!("held/orders.{name}/00000001-x"), "{}");
    }
    let pause = RequestTarget::new(&["topics", "orders", "subscriptions", "paused", "pause"]);
    world.api.post::<serde_json::Value>(pause).await.unwrap();
    world.fail_link("https://billing.example.com:443").await;
    for path in PAGES {
        let page = world.get(path).await;
        assert!(page.html.contains("<main"), "{path}: {page:?}");
        let found = seed_words_of(&page.html);
        assert!(found.is_empty(), "{path} has {found:?}");
    }
}

#[tokio::test]
async fn words_are_one_click_from_every_page() {
    let world = World::signed_in().await;
    world
        .get("/console/topics")
        .await
        .has(&[r#"href="/console/words""#]);
    let words = world.get("/console/words").await;
    words.has(&[
        "Retry now",
        "waiting until it recovers",
        "Response time",
        "delivery id",
    ]);
    for anchor in ["glitch", "tarpit", "held", "parked", "force", "delivery-id"] {
        words.has(&[&format!("id=\"{anchor}\"")]);
    }
}

#[test]
fn seed_words_are_found_in_text_alone() {
    let page = "<a href=\"/force\" class=\"held\">Enforce</a> withheld <b>Held</b>, Retry-After";
    assert_eq!(seed_words_of(page), ["held"]);
}

/// The seed words in the text of a page, which is what stands outside its tags.
fn seed_words_of(html: &str) -> Vec<String> {
    let texts = html.split('<').filter_map(|part| part.split_once('>'));
    let words = texts.flat_map(|(_, text)| text.split(|c: char| !c.is_alphanumeric()));
    words
        .map(str::to_lowercase)
        .filter(|word| SEED_WORDS.contains(&word.as_str()))
        .collect()
}
