//! The page of the audit trail, and what the console writes into the trail.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use posthaste_core::api::{
    AuditAction, AuditActor, AuditCaller, AuditDoor, AuditEntry, AuditOutcome, PeerAddress,
};
use posthaste_core::model::KeyDigest;
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, ObjectStore};

use super::logged::HOSTILE;
use super::{ADMIN_KEY, World};

const PAGE: &str = "/console/audit";
const BILLING: &str = "/console/topics/Orders/subscriptions/Billing";

/// The entries in the store, the newest first.
fn trail(world: &World) -> Vec<AuditEntry> {
    let found = world.state.objects_under(layout::AUDIT);
    let parsed = found.iter().map(|(_, bytes)| AuditEntry::parse(bytes));
    parsed.collect::<Result<_, _>>().unwrap()
}

#[tokio::test]
async fn action_of_a_visitor_is_shown_as_theirs() {
    let world = World::with_billing().await;
    world.clock.advance(Duration::from_secs(1));
    let paused = world.post(BILLING, &format!("{BILLING}/pause"), &[]).await;
    assert_eq!(paused.status, 303, "{paused:?}");
    let entry = &trail(&world)[0];
    let tag = KeyDigest::for_key(ADMIN_KEY).tag();
    assert_eq!(
        (entry.actor, entry.via, entry.key.as_ref(), entry.action),
        (
            AuditActor::AdminKey,
            Some(AuditDoor::Console),
            Some(&tag),
            AuditAction::Pause
        )
    );
    let page = world.get(PAGE).await;
    page.has(&[
        "Who changed what",
        &format!("admin key <code><bdi>{tag}</bdi></code>"),
        "console",
        "subscription.pause",
        "Orders / Billing",
        "status.state: Active → Paused",
        ">done<",
    ]);
    page.has_not(&["s3cret"]);
    let other = world.get(&format!("{PAGE}?topic=other")).await;
    other.has(&["No change has these values"]);
    let wrong = world.get(&format!("{PAGE}?from=soon")).await;
    assert_eq!(wrong.status, 400, "{}", wrong.html);
}

#[tokio::test]
async fn sign_ins_and_wrong_keys_have_entries() {
    let world = World::signed_in().await;
    let entry = &trail(&world)[0];
    assert_eq!(
        (entry.actor, entry.action, entry.outcome),
        (
            AuditActor::AdminKey,
            AuditAction::SignIn,
            AuditOutcome::Done
        )
    );
    let other = World::new();
    other.sign_in("not-the-admin-key-of-tests").await;
    let all = trail(&other);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(
        (all[0].actor, all[0].action, all[0].count),
        (AuditActor::Unknown, AuditAction::RefusedKeys, Some(1))
    );
}

#[tokio::test]
async fn entry_of_a_sign_in_has_the_address() {
    let world = World::new();
    let page = world.get("/console/sign-in").await;
    let form = format!("form={}&key={ADMIN_KEY}", page.form_token());
    let request = Request::post("/console/sign-in")
        .extension(PeerAddress("203.0.113.7".parse().unwrap()))
        .body(Body::from(form));
    assert_eq!(world.send(request.unwrap()).await.status, 303);
    let address = trail(&world)[0].address.unwrap();
    assert_eq!(address.to_string(), "203.0.113.7");
}

#[tokio::test]
async fn texts_of_strangers_are_shown_as_text() {
    let world = World::signed_in().await;
    for (nth, text) in HOSTILE.iter().enumerate() {
        let caller = AuditCaller::posthaste_itself();
        let now = world.clock.now();
        let entry = AuditEntry::new(nth.to_string(), now, caller, AuditAction::Resend)
            .of_target(text)
            .with_detail(text)
            .with_outcome(AuditOutcome::Done);
        world
            .state
            .write(&layout::audit_entry_key(&entry), entry.render());
    }
    let page = world.get(PAGE).await;
    page.has(&["&lt;script&gt;", "⟦U+202E⟧"]);
    page.has_not(&["<script>alert", "<img src=x", "\u{202e}"]);
}

#[tokio::test]
async fn empty_trail_says_so() {
    let world = World::signed_in().await;
    for key in world.state.keys(layout::AUDIT) {
        world.state.delete(&key).await.unwrap();
    }
    world.get(PAGE).await.has(&["Nothing was changed yet"]);
}
