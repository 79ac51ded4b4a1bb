//! Sessions end: by a sign-out, by another visitor, for want of room, and in every copy of a cookie.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use posthaste_core::api::{AuditAction, AuditActor, AuditEntry, AuditOutcome, PeerAddress};
use posthaste_core::model::KeyDigest;
use posthaste_core::stored::{
    CONSOLE_SESSIONS, ConsoleSessions, OPEN_SESSIONS_MAX, OpenSession, SessionDigest, layout,
};
use posthaste_ports::{Clock, ErrorKind, ObjectStore};
use posthaste_testkit::{CallFault, FaultPlan, Faulty, PortOperation, SeededEntropy};

use super::{ADMIN_KEY, World};
use crate::session::SIGNED_IN;
use crate::{ConsoleState, VisitorAccess, router};

const PAGE: &str = "/console/sessions";
const END_ALL: &str = "/console/sessions/end";
const SIGN_OUT: &str = "/console/sign-out";
const ONE_MILLI: Duration = Duration::from_millis(1);
const FIVE_SECONDS: Duration = Duration::from_secs(5);

impl World {
    /// The same in another process on the same store, and with this browser's cookies.
    fn in_other_process(&self, seed: u64) -> Self {
        let world = Self::new();
        let access = VisitorAccess::new(
            self.state.clone(),
            self.clock.clone(),
            SeededEntropy::new(seed),
            KeyDigest::for_key(ADMIN_KEY),
        );
        let console = ConsoleState::new(self.api_routes.clone());
        Self {
            router: router(Arc::new(access), console),
            state: self.state.clone(),
            clock: self.clock.clone(),
            cookies: self.cookies.lock().clone().into(),
            ..world
        }
    }

    /// The same process, in a browser of its own that has the same cookies.
    fn with_copied_cookies(&self) -> Self {
        Self {
            router: self.router.clone(),
            ..self.in_other_process(0)
        }
    }

    /// An installation whose console has a store that fails by this plan.
    fn with_faults(plan: &FaultPlan) -> Self {
        let world = Self::new();
        let access = VisitorAccess::new(
            Faulty::new(world.state.clone(), "state", plan),
            world.clock.clone(),
            SeededEntropy::new(2),
            KeyDigest::for_key(ADMIN_KEY),
        );
        let console = ConsoleState::new(world.api_routes.clone());
        Self {
            router: router(Arc::new(access), console),
            ..world
        }
    }

    async fn is_signed_in(&self) -> bool {
        let shown = self.get(PAGE).await;
        assert!([200, 303].contains(&shown.status), "{shown:?}");
        shown.status == 200
    }

    fn stored_sessions(&self) -> Vec<OpenSession> {
        let found = self.state.objects_under(CONSOLE_SESSIONS);
        let read = found.iter().map(|(_, bytes)| ConsoleSessions::parse(bytes));
        read.flat_map(|list| list.unwrap().sessions).collect()
    }

    /// The tag of the session that began last.
    fn newest_tag(&self) -> String {
        self.stored_sessions().last().unwrap().id.tag()
    }

    /// The entries of sign-ins and sign-outs, the oldest first.
    fn session_entries(&self) -> Vec<AuditEntry> {
        let found = self.state.objects_under(layout::AUDIT);
        let mut entries: Vec<_> = found
            .iter()
            .map(|(_, bytes)| AuditEntry::parse(bytes).unwrap())
            .filter(|entry| [AuditAction::SignIn, AuditAction::SignOut].contains(&entry.action))
            .collect();
        entries.reverse();
        entries
    }
}

/// A plan by which the write of this number fails, once it is switched on.
fn nth_write_fails(number: u64) -> FaultPlan {
    let fault = CallFault::Before(ErrorKind::TimedOut);
    let plan = FaultPlan::nth_of(number, fault, |effect| {
        effect.operation == PortOperation::Put
    });
    plan.switch(false);
    plan
}

#[tokio::test]
async fn copied_cookie_ends_with_the_sign_out() {
    let world = World::signed_in().await;
    let copy = world.with_copied_cookies();
    let elsewhere = world.in_other_process(3);
    assert!(copy.is_signed_in().await && elsewhere.is_signed_in().await);
    let form = copy.get("/console/topics/new").await;
    let out = world.post(PAGE, SIGN_OUT, &[]).await;
    assert_eq!((out.status, out.location()), (303, "/console/sign-in"));
    assert!(!copy.is_signed_in().await, "refused at once");
    let fields = [("name", "orders"), ("text", "typed")];
    let sent = copy.send_form(&form, "/console/topics/new", &fields).await;
    assert_eq!(sent.status, 403);
    assert!(sent.html.contains("Your session has ended"), "{sent:?}");
    world.clock.advance(FIVE_SECONDS.saturating_sub(ONE_MILLI));
    assert!(elsewhere.is_signed_in().await);
    world.clock.advance(ONE_MILLI);
    assert!(!elsewhere.is_signed_in().await);
    assert!(!world.is_signed_in().await);
    assert_eq!(world.stored_sessions(), []);
}

#[tokio::test]
async fn trail_has_sign_in_changes_and_sign_out_of_a_session() {
    let world = World::with_billing().await;
    let tag = world.newest_tag();
    world.clock.advance(Duration::from_secs(1));
    let billing = "/console/topics/Orders/subscriptions/Billing";
    world.post(billing, &format!("{billing}/pause"), &[]).await;
    world.clock.advance(Duration::from_secs(1));
    let page = world.get("/console/audit").await;
    page.has(&[
        &format!("session <code><bdi>{tag}</bdi></code>"),
        r#"href="/console/sessions""#,
    ]);
    world.post(PAGE, SIGN_OUT, &[]).await;
    let found = world.state.objects_under(layout::AUDIT);
    let of_session: Vec<_> = found
        .iter()
        .map(|(_, bytes)| AuditEntry::parse(bytes).unwrap())
        .filter(|entry| entry.session.as_ref() == Some(&tag))
        .map(|entry| (entry.action, entry.outcome, entry.target))
        .collect();
    let done = AuditOutcome::Done;
    assert_eq!(
        of_session,
        [
            (AuditAction::SignOut, done, Some(tag)),
            (AuditAction::Pause, done, None),
            (AuditAction::SignIn, done, None),
        ]
    );
}

/// The writes of a sign-out: the entry, the list of sessions, the end of the entry. The browser is
/// signed out whichever fails.
#[tokio::test]
async fn sign_out_whose_write_fails_signs_this_browser_out() {
    for (number, outcome) in [(0, None), (1, Some(AuditOutcome::Failed))] {
        let plan = nth_write_fails(number);
        let world = World::with_faults(&plan);
        world.sign_in_well().await;
        let tag = world.newest_tag();
        let copy = world.with_copied_cookies();
        let elsewhere = world.in_other_process(3);
        let page = world.get(PAGE).await;
        plan.switch(true);
        let out = world.send_form(&page, SIGN_OUT, &[]).await;
        assert_eq!(out.status, 503, "write {number}");
        for expected in [
            "This browser is signed out.",
            "may still be signed in, until",
            &tag,
            "/console/sign-in?next=/console/sessions",
        ] {
            assert!(out.html.contains(expected), "{expected}: {}", out.html);
        }
        assert!(!out.html.contains("/console/sign-out"), "{}", out.html);
        assert!(!world.is_signed_in().await, "write {number}");
        assert!(!copy.is_signed_in().await, "a copy in this process");
        assert!(elsewhere.is_signed_in().await, "a copy elsewhere");
        let entries = world.session_entries();
        let ends = entries
            .iter()
            .filter(|entry| entry.action == AuditAction::SignOut);
        let ends: Vec<_> = ends.map(|entry| entry.outcome).collect();
        assert_eq!(ends, Vec::from_iter(outcome), "write {number}");
        world.sign_in_well().await;
        let ended = world.post(PAGE, &format!("{PAGE}/end/{tag}"), &[]).await;
        assert_eq!(ended.page_after(), format!("{PAGE}?done=ended"));
        world.clock.advance(FIVE_SECONDS);
        assert!(!elsewhere.is_signed_in().await);
    }
    let plan = nth_write_fails(2);
    let world = World::with_faults(&plan);
    world.sign_in_well().await;
    world.clock.advance(ONE_MILLI);
    let page = world.get(PAGE).await;
    plan.switch(true);
    assert_eq!(world.send_form(&page, SIGN_OUT, &[]).await.status, 303);
    assert!(!world.is_signed_in().await);
    let entries = world.session_entries();
    assert_eq!(entries[1].outcome, AuditOutcome::Begun);
}

/// A visitor who ends sessions stays signed in until they have ended, to try it again.
#[tokio::test]
async fn end_of_all_sessions_that_fails_is_tried_again() {
    for action in [END_ALL, "/console/sessions/end/0a1b2c3d"] {
        let plan = nth_write_fails(1);
        let world = World::with_faults(&plan);
        world.sign_in_well().await;
        let page = world.get(PAGE).await;
        plan.switch(true);
        let failed = world.send_form(&page, action, &[]).await;
        assert_eq!(failed.status, 503, "{action}");
        let expected = "If this browser still shows pages, try again";
        assert!(failed.html.contains(expected), "{}", failed.html);
        assert!(world.is_signed_in().await, "{action}");
        assert_eq!(world.send_form(&page, action, &[]).await.status, 303);
    }
}

#[tokio::test]
async fn list_of_a_newer_program_is_named_and_left_alone() {
    let world = World::signed_in().await;
    let newer = r#"{"v":2}"#;
    world.state.write(CONSOLE_SESSIONS, newer);
    let other = world.in_other_process(3);
    let shown = other.get(PAGE).await;
    assert_eq!(shown.status, 503);
    let expected = "A newer version of posthaste wrote the list";
    assert!(shown.html.contains(expected), "{}", shown.html);
    other.forget_cookies();
    let refused = other.sign_in(ADMIN_KEY).await;
    assert_eq!(refused.status, 503);
    assert!(refused.html.contains(expected), "{}", refused.html);
    let left = world.state.objects_under(CONSOLE_SESSIONS);
    assert_eq!(left[0].1, newer);
}

#[tokio::test]
async fn sign_in_whose_write_fails_sets_no_cookie() {
    for (number, outcomes) in [
        (0, vec![]),
        (1, vec![AuditOutcome::Failed]),
        (2, vec![AuditOutcome::Begun]),
    ] {
        let plan = nth_write_fails(number);
        let world = World::with_faults(&plan);
        let page = world.get("/console/sign-in").await;
        plan.switch(true);
        let fields = [("key", ADMIN_KEY)];
        let sent = world.send_form(&page, "/console/sign-in", &fields).await;
        // The end of the entry comes after all that matters.
        let is_in = number == 2;
        assert_eq!(sent.status, if is_in { 303 } else { 503 }, "{number}");
        assert_eq!(world.is_signed_in().await, is_in, "{number}");
        let entries = world.session_entries();
        let found: Vec<_> = entries.iter().map(|entry| entry.outcome).collect();
        assert_eq!(found, outcomes, "{number}");
    }
}

#[tokio::test]
async fn sign_in_beyond_the_most_ends_the_oldest_session() {
    let world = World::new();
    let ends_at = world.clock.now() + SIGNED_IN;
    let sessions = (0..OPEN_SESSIONS_MAX).map(|number| OpenSession {
        id: SessionDigest::for_id(&number.to_be_bytes()),
        key: "0a1b2c3d".to_owned(),
        began_at: world.clock.now(),
        ends_at,
        address: None,
    });
    let list = ConsoleSessions {
        sessions: sessions.collect(),
    };
    world.state.write(CONSOLE_SESSIONS, list.render());
    world.sign_in_well().await;
    let left = world.stored_sessions();
    assert_eq!(left.len(), OPEN_SESSIONS_MAX);
    assert_eq!(left[0].id, list.sessions[1].id);
    assert!(world.is_signed_in().await);
    let entries = world.session_entries();
    let ended = entries
        .iter()
        .find(|entry| entry.action == AuditAction::SignOut);
    let ended = ended.unwrap();
    assert_eq!(
        (ended.actor, ended.outcome, ended.target.as_ref()),
        (
            AuditActor::Posthaste,
            AuditOutcome::Done,
            Some(&list.sessions[0].id.tag())
        )
    );
}

/// A program of before wrote no list: its cookies are signed, and open nothing.
#[tokio::test]
async fn cookie_of_a_former_program_is_asked_to_sign_in() {
    let world = World::signed_in().await;
    world.state.delete(CONSOLE_SESSIONS).await.unwrap();
    let upgraded = world.in_other_process(3);
    let shown = upgraded.get("/console/topics").await;
    assert_eq!(
        (shown.status, shown.location()),
        (303, "/console/sign-in?next=%2Fconsole%2Ftopics")
    );
    upgraded.sign_in_well().await;
    assert!(upgraded.is_signed_in().await);
}

#[tokio::test]
async fn page_shows_who_is_signed_in_and_from_where() {
    let world = World::new();
    let page = world.get("/console/sign-in").await;
    let form = format!("form={}&key={ADMIN_KEY}", page.form_token());
    let request = Request::post("/console/sign-in")
        .extension(PeerAddress("203.0.113.7".parse().unwrap()))
        .body(Body::from(form));
    assert_eq!(world.send(request.unwrap()).await.status, 303);
    let first = world.newest_tag();
    world.clock.advance(Duration::from_mins(3));
    let other = world.in_other_process(3);
    other.forget_cookies();
    other.sign_in_well().await;
    let second = other.newest_tag();
    let shown = other.get(PAGE).await;
    shown.has(&[
        "203.0.113.7",
        "3 min ago",
        "not known",
        &format!("<code>{second}</code> <span class=\"badge\">this browser</span>"),
        &format!("<code>{first}</code></td>"),
        "End all 2 sessions",
    ]);
    let newest_first = shown.html.find(&second) < shown.html.find(&first);
    assert!(newest_first, "{}", shown.html);
}

#[tokio::test]
async fn session_of_another_browser_is_ended() {
    let lost = World::signed_in().await;
    let tag = lost.newest_tag();
    let world = lost.in_other_process(3);
    world.forget_cookies();
    world.sign_in_well().await;
    let own = world.newest_tag();
    let action = format!("{PAGE}/end/{tag}");
    lost.clock.advance(ONE_MILLI);
    let ended = world.post(PAGE, &action, &[]).await;
    assert_eq!(ended.page_after(), format!("{PAGE}?done=ended"));
    world.get(ended.location()).await.has(&["has ended"]);
    lost.clock.advance(FIVE_SECONDS);
    assert!(!lost.is_signed_in().await && world.is_signed_in().await);
    let entry = world.session_entries().pop().unwrap();
    assert_eq!(
        (entry.action, entry.session, entry.target),
        (AuditAction::SignOut, Some(own.clone()), Some(tag))
    );
    let page = world.get(PAGE).await;
    let again = world.send_form(&page, &action, &[]).await;
    assert_eq!(again.page_after(), format!("{PAGE}?done=ended-before"));
    let own_end = world.post(PAGE, &format!("{PAGE}/end/{own}"), &[]).await;
    assert_eq!(own_end.location(), "/console/sign-in");
    assert!(!world.is_signed_in().await);
}

#[tokio::test]
async fn sign_out_everywhere_ends_every_session() {
    let first = World::signed_in().await;
    let second = first.in_other_process(3);
    second.forget_cookies();
    second.sign_in_well().await;
    first.clock.advance(ONE_MILLI);
    let ended = second.post(PAGE, END_ALL, &[]).await;
    assert_eq!((ended.status, ended.location()), (303, "/console/sign-in"));
    assert!(!second.is_signed_in().await);
    first.clock.advance(FIVE_SECONDS);
    assert!(!first.is_signed_in().await);
    assert_eq!(first.stored_sessions(), []);
    let entry = first.session_entries().pop().unwrap();
    assert_eq!(entry.target.as_deref(), Some("all sessions"));
    assert_eq!(entry.detail.as_deref(), Some("2 ended"));
    first.sign_in_well().await;
    assert!(first.is_signed_in().await);
}

#[tokio::test]
async fn forged_forms_end_no_session() {
    let world = World::signed_in().await;
    let tag = world.newest_tag();
    for action in [SIGN_OUT, END_ALL, &format!("{PAGE}/end/{tag}")] {
        let page = world.get(PAGE).await;
        let forged = Request::post(action).body(Body::from("form=AAAA")).unwrap();
        assert_eq!(world.send(forged).await.status, 403, "{action}");
        let form = format!("form={}", page.form_token());
        let foreign = Request::post(action)
            .header("sec-fetch-site", "cross-site")
            .body(Body::from(form));
        assert_eq!(world.send(foreign.unwrap()).await.status, 403, "{action}");
        assert!(world.is_signed_in().await, "{action}");
        let asked = world.get(action).await;
        assert_eq!(asked.status, 303, "no link ends a session: {action}");
        assert!(world.is_signed_in().await, "{action}");
    }
    let other = world.in_other_process(3);
    other.forget_cookies();
    other.sign_in_well().await;
    let page = other.get(PAGE).await;
    let with_other_token = world.send_form(&page, END_ALL, &[]).await;
    assert_eq!(with_other_token.status, 403);
    assert_eq!(world.stored_sessions().len(), 2);
}

/// The longest list makes no page of more than 100 KB, and says what it leaves out.
#[tokio::test]
async fn page_of_the_most_sessions_is_bounded() {
    let world = World::signed_in().await;
    let mut list = ConsoleSessions {
        sessions: world.stored_sessions(),
    };
    let own = list.sessions[0].clone();
    for number in 1..OPEN_SESSIONS_MAX {
        list.sessions.push(OpenSession {
            id: SessionDigest::for_id(&number.to_be_bytes()),
            address: Some("2001:db8:1111:2222:3333:4444:5555:6666".parse().unwrap()),
            ..own.clone()
        });
    }
    list.sessions[1].key = "of-a-former-key".to_owned();
    let of_former_key = list.sessions[1].id.tag();
    world.state.write(CONSOLE_SESSIONS, list.render());
    let shown = world.get(PAGE).await;
    shown.has(&["and 99 that began earlier", "End all 199 sessions"]);
    shown.has_not(&[&of_former_key]);
    assert!(shown.html.len() <= 100_000, "{}", shown.html.len());
}

/// A world whose store fails at reads once the plan is switched on.
async fn with_failing_reads() -> (World, FaultPlan) {
    with_read_fault(CallFault::Before(ErrorKind::TimedOut)).await
}

/// A world whose store has this fault at reads once the plan is switched on.
async fn with_read_fault(fault: CallFault) -> (World, FaultPlan) {
    let reads = [PortOperation::Get, PortOperation::GetIfChanged];
    let plan = FaultPlan::at(fault, move |effect| reads.contains(&effect.operation));
    plan.switch(false);
    let world = World::with_faults(&plan);
    world.sign_in_well().await;
    (world, plan)
}

/// The list is given up early enough for the visitor to be let in.
#[tokio::test]
async fn known_visitor_gets_in_while_the_store_hangs() {
    let (world, plan) = with_read_fault(CallFault::HangBefore).await;
    plan.switch(true);
    world.clock.advance(FIVE_SECONDS);
    for expected in [200, 503] {
        let time = async {
            loop {
                tokio::task::yield_now().await;
                world.clock.advance_to_next();
            }
        };
        let shown = tokio::select! {
            biased;
            shown = world.get("/console/topics") => shown,
            () = time => unreachable!("time does not end"),
        };
        assert_eq!(shown.status, expected, "{shown:?}");
        world.clock.advance(Duration::from_mins(1));
    }
}

/// A form of another site signs nobody out, though its browser does not say where it is from.
#[tokio::test]
async fn sign_out_without_the_store_needs_the_token() {
    let (world, plan) = with_failing_reads().await;
    let page = world.get(PAGE).await;
    world.clock.advance(Duration::from_secs(65));
    plan.switch(true);
    for form in ["", "form=AAAA"] {
        let forged = Request::post(SIGN_OUT).body(Body::from(form)).unwrap();
        let refused = world.send(forged).await;
        assert_eq!(refused.status, 503);
        assert!(!refused.headers.contains_key("set-cookie"), "{form}");
        assert!(refused.html.contains("Nothing was changed"), "{refused:?}");
    }
    plan.switch(false);
    assert!(world.is_signed_in().await);
    // Where not even the key is known, the browser alone is signed out.
    let other = World::with_faults(&plan);
    plan.switch(true);
    other.cookies.lock().extend(world.cookies.lock().clone());
    let out = other.send_form(&page, SIGN_OUT, &[]).await;
    assert!(out.html.contains("This browser is signed out."), "{out:?}");
    assert!(out.headers.contains_key("set-cookie"));
}

#[tokio::test]
async fn sign_out_without_the_store_ends_every_cookie() {
    let (world, plan) = with_failing_reads().await;
    let first = world.with_copied_cookies();
    world.forget_cookies();
    world.sign_in_well().await;
    let second = world.with_copied_cookies();
    let page = world.get(PAGE).await;
    world.cookies.lock().extend(first.cookies.lock().clone());
    world.clock.advance(Duration::from_secs(65));
    plan.switch(true);
    let out = world.send_form(&page, SIGN_OUT, &[]).await;
    assert!(out.html.contains("This browser is signed out."), "{out:?}");
    plan.switch(false);
    assert!(!first.is_signed_in().await && !second.is_signed_in().await);
}

#[tokio::test]
async fn store_that_fails_shows_no_list_but_keeps_visitors() {
    let (world, plan) = with_failing_reads().await;
    plan.switch(true);
    world.clock.advance(Duration::from_secs(64));
    assert_eq!(world.get("/console/topics").await.status, 200);
    assert_eq!(world.get(PAGE).await.status, 503);
    world.clock.advance(Duration::from_secs(1));
    let shown = world.get("/console/topics").await;
    assert_eq!(shown.status, 503);
    assert!(shown.html.contains("does not answer"), "{}", shown.html);
    plan.switch(false);
    assert_eq!(world.get("/console/topics").await.status, 200);
}

/// Also where not even the session is known, the button does what it says, in this browser.
#[tokio::test]
async fn sign_out_while_nothing_can_be_read_removes_the_cookie() {
    let (world, plan) = with_failing_reads().await;
    let copy = world.with_copied_cookies();
    let page = world.get(PAGE).await;
    world.clock.advance(Duration::from_secs(65));
    plan.switch(true);
    let form = format!("form={}", page.form_token());
    let foreign = Request::post(SIGN_OUT)
        .header("sec-fetch-site", "cross-site")
        .body(Body::from(form));
    let refused = world.send(foreign.unwrap()).await;
    assert_eq!(refused.status, 503);
    assert!(!refused.headers.contains_key("set-cookie"));
    let out = world.send_form(&page, SIGN_OUT, &[]).await;
    assert_eq!(out.status, 503);
    let tag = world.newest_tag();
    for expected in [
        "This browser is signed out.",
        &format!("<code>{tag}</code>"),
    ] {
        assert!(out.html.contains(expected), "{expected}: {}", out.html);
    }
    plan.switch(false);
    assert!(!world.is_signed_in().await && !copy.is_signed_in().await);
}

/// A form is given back while it is not known who is signed in, and is sent on once that is known.
#[tokio::test]
async fn typed_form_is_given_back_while_the_store_fails() {
    let (world, plan) = with_failing_reads().await;
    let new = "/console/topics/new";
    let form = world.get(new).await;
    world.clock.advance(Duration::from_secs(65));
    plan.switch(true);
    let typed = [
        ("name", "orders"),
        ("base", "inputSchema: Custom\n"),
        ("deliveryLog", "off"),
        ("defaultTimeToLive", "PT1H"),
        ("tab", "form"),
        ("step", "save"),
    ];
    let failed = world.send_form(&form, new, &typed).await;
    assert_eq!(failed.status, 503);
    for expected in [
        "does not answer",
        "Nothing was changed.",
        "inputSchema: Custom",
        "defaultTimeToLive: PT1H",
    ] {
        assert!(
            failed.html.contains(expected),
            "{expected}: {}",
            failed.html
        );
    }
    plan.switch(false);
    let text = failed.text();
    let again = [
        ("name", "orders"),
        ("text", &text),
        ("tab", &failed.field("tab")),
        ("step", "edit"),
    ];
    let shown = world.send_form(&failed, new, &again).await;
    shown.has(&[
        r#"name="defaultTimeToLive" value="PT1H""#,
        r#"name="name" value="orders""#,
    ]);
}
