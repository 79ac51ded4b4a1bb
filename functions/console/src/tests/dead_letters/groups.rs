//! The page of dead letters by subscription and reason.

use serde_json::json;

use super::super::World;
use super::super::logged::HOSTILE;
use super::{letter, world};
use crate::api::RequestTarget;

const GROUPS: &str = "/console/dead-letters";

#[tokio::test]
async fn groups_have_counts_and_lead_to_their_lists() {
    let world = world().await;
    world.write_letters("b", &json!([letter("order-3", "EndpointGone")]));
    let page = world.get(GROUPS).await;
    let list =
        "/console/dead-letters/list?topic=Orders&amp;subscription=Billing&amp;reason=EndpointGone";
    page.has(&[
        list,
        "EndpointGone",
        "TimeToLiveExceeded",
        "410",
        "Send again…",
        "Resolve…",
    ]);
    page.has_not(&["order-1", "a.json"]);
    let rows = page.html.split("<tr").collect::<Vec<_>>();
    let gone = rows.iter().find(|row| row.contains(list)).unwrap();
    assert!(gone.contains(">2</td>"), "{gone}");
}

/// A group's action selects what the group counts, and leads back to the groups.
#[tokio::test]
async fn group_is_resolved_after_a_dry_run_and_leads_back() {
    let world = world().await;
    let fields = [
        ("topic", "Orders"),
        ("subscription", "Billing"),
        ("reason", "EndpointGone"),
        ("includeFormer", "true"),
        ("back", GROUPS),
    ];
    world.get(GROUPS).await.has(&[
        r#"name="reason" value="EndpointGone""#,
        r#"name="back" value="/console/dead-letters""#,
    ]);
    let resolve = "/console/dead-letters/resolve";
    let preview = world.post(GROUPS, resolve, &fields).await;
    preview.has(&[
        "<strong>1</strong> dead letters would be resolved",
        r#"href="/console/dead-letters">Go back"#,
    ]);
    let acting = [&fields[..], &[("step", "act")]].concat();
    let done = world.send_form(&preview, resolve, &acting).await;
    assert_eq!(done.page_after(), "/console/dead-letters?done=resolved");
    let groups = world.get(done.location()).await;
    groups
        .has(&["The dead letters are resolved", "TimeToLiveExceeded"])
        .has_not(&["EndpointGone"]);
    let all = world
        .get("/console/dead-letters?includeResolved=true")
        .await;
    all.has(&["EndpointGone", "1 resolved"]);
}

#[tokio::test]
async fn group_of_a_deleted_subscription_can_only_be_resolved() {
    let world = world().await;
    let subscription = ["topics", "Orders", "subscriptions", "Billing"];
    world
        .api
        .delete(RequestTarget::new(&subscription))
        .await
        .unwrap();
    let page = world.get(GROUPS).await;
    page.has(&["(deleted)", "Resolve…"]);
    page.has_not(&["Send again…"]);
}

/// Letters of a reason that is not known cannot be selected by it, so they have no actions here.
#[tokio::test]
async fn group_of_an_unknown_reason_is_only_opened() {
    let world = World::with_billing().await;
    world.write_letters("a", &json!([letter("<script>", "<img src=x>")]));
    let page = world.get(GROUPS).await;
    page.has(&["another one", ">Open</a>"]);
    page.has_not(&["Resolve…", "Send again…", "<img", "<script>"]);
}

#[tokio::test]
async fn filters_of_the_list_lead_to_the_list() {
    let world = world().await;
    let page = world
        .get("/console/dead-letters?topic=Orders&reason=EndpointGone")
        .await;
    assert_eq!(
        (page.status, page.location()),
        (
            303,
            "/console/dead-letters/list?topic=Orders&reason=EndpointGone"
        )
    );
}

#[tokio::test]
async fn mistakes_are_named_and_hostile_names_are_text() {
    let world = world().await;
    for (query, field) in [("from=soon", "from"), ("subscription=Billing", "topic")] {
        let page = world.get(&format!("{GROUPS}?{query}")).await;
        assert_eq!(page.status, 400, "{query}");
        assert!(
            page.html.contains(&format!(r#"id="{field}-mistake""#)),
            "{query}: {}",
            page.html
        );
    }
    for text in HOSTILE {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("topic", text)
            .append_pair("from", text)
            .finish();
        let page = world.get(&format!("{GROUPS}?{query}")).await;
        page.has_not(&["<script>", "<img", r#"href="javascript"#]);
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_linked_and_not_named_by_its_key() {
    let world = world().await;
    world
        .dead_letters
        .write("ORDERS/BILLING/2023/11/14/22/b.json", "not ours");
    let page = world.get(GROUPS).await;
    page.has(&[
        "What cannot be read",
        "What is stored</a>",
        "object=ORDERS%2FBILLING%2F2023%2F11%2F14%2F22%2Fb.json",
        "not a JSON array of dead letters",
    ]);
    page.has_not(&[">ORDERS/BILLING/2023"]);
}

#[tokio::test]
async fn many_groups_are_cut_and_the_page_stays_small() {
    let world = World::with_billing().await;
    for number in 0..120 {
        let key = format!("ORDERS/S{number:03}/2023/11/14/22/a.json");
        let letters = json!([letter("1", "EndpointGone")]).to_string();
        world.dead_letters.write(&key, letters);
    }
    let page = world.get(GROUPS).await;
    page.has(&["The 50 groups with the newest dead letters are shown, of 120"]);
    assert!(page.html.len() < 100_000, "{} bytes", page.html.len());
}
