//! One letter as the probe of an endpoint that is not well, where nothing else waits for it. It
//! does not count as a recovery: whether the endpoint is well is no fault of the event's.

use posthaste_core::model::time::whole_millis;
use posthaste_core::model::{LetterPlace, Timestamp};
use posthaste_core::release::recovery::RecoveryRules;
use posthaste_core::release::{ReplayContext, ReplayPace, ReplaySelection, SelectedLetter};
use posthaste_core::stored::{LetterProbe, RecoveryJob, ReplayProgress, layout};
use posthaste_ports::{Clock, Entropy, Ports};
use posthaste_services::replay::{LetterObject, letter_objects_under};

use super::look::RecoveryContext;
use super::marked::StoredMark;
use crate::jobs::replays::{
    LetterSelector, ReplayError, ReplayJob, ReplayReceiver, pick_letters, queue_messages,
    read_letters,
};
use crate::jobs::standing::holds_deliveries;

/// Most pages of objects that are listed for one probe: one of each day of the longest
/// `recovery.within`, and some more.
const PAGES_MAX: usize = 40;

/// Most objects that are read for one probe. If none of them has a letter that is left, another
/// part of the list is read a minute later.
const READS_MAX: usize = 50;

/// Sends one letter, and notes that. A run that is cut in between may send another one. What the
/// mark's replay, if it has begun, has sent already is not sent again.
pub(super) async fn send_probe<P: Ports>(
    look: &mut RecoveryContext<'_, P>,
    marked: &mut StoredMark,
    to: &ReplayReceiver,
    open: Option<&mut ReplayJob>,
) -> Result<(), ReplayError> {
    let link = to.subscription.endpoint.link().to_string();
    if look.probed.contains(&link) {
        return Ok(());
    }
    // What is held is the probe, also a letter that was sent before.
    let is_held = holds_deliveries(look.run.ports, &to.subscription).await;
    if is_held.map_err(ReplayError::Store)? {
        return Ok(());
    }
    let Some(probe) = send_letter(look, marked, to, open).await? else {
        return Ok(());
    };
    look.probed.insert(link);
    tracing::info!(
        topic = %marked.mark.topic, subscription = %marked.mark.subscription,
        object = probe.letter.object, index = probe.letter.index,
        "a dead letter is sent to find out whether the endpoint is well"
    );
    marked.note_probe(look.run.ports, &probe).await
}

/// Whether a subscription that is looked up again takes the letter that was chosen for it.
fn accepts_same_letter(again: &ReplayReceiver, chosen_for: &ReplayReceiver) -> bool {
    let again_of = &again.subscription;
    let of = &chosen_for.subscription;
    again.is_active()
        && again_of.recovery == of.recovery
        && again_of.endpoint.link() == of.endpoint.link()
        && again_of.delivery_schema == of.delivery_schema
}

async fn send_letter<P: Ports>(
    look: &RecoveryContext<'_, P>,
    marked: &mut StoredMark,
    to: &ReplayReceiver,
    open: Option<&mut ReplayJob>,
) -> Result<Option<LetterProbe>, ReplayError> {
    let ports = look.run.ports;
    let mark = &marked.mark;
    let now = ports.clock.now();
    let policy = to.subscription.recovery;
    let job = RecoveryJob {
        id: layout::replay_id(now, &ports.entropy.uuid().to_string()),
        created_at: now,
    };
    let rules = RecoveryRules {
        within: policy.within,
        cancelled_at: mark.cancelled_at,
        on_its_way: mark.letters_on_their_way(now),
        now,
    };
    let created = &to.subscription.created;
    let replays = match (&open, &mark.job) {
        (Some(open), Some(begun)) => {
            let behind = mark
                .left_by_replay(begun)
                .replay_record(&job, created, policy);
            vec![open.record.clone(), behind]
        }
        _ => vec![mark.replay_record(&job, created, policy)],
    };
    let mut found = None;
    for part in &replays {
        let selection = part.selection().map_err(ReplayError::Request)?;
        found = find_letter(look, &selection, &rules, to, &part.progress).await?;
        if found.is_some() {
            break;
        }
    }
    let Some((object, event)) = found else {
        return Ok(None);
    };
    // It may have been cancelled meanwhile.
    if let Some(open) = open
        && !open.is_current(ports).await?
    {
        return Ok(None);
    }
    // And so may what the letter was chosen for.
    let again = marked.find_receiver(ports).await?;
    let Some(to) = again.filter(|again| accepts_same_letter(again, to)) else {
        return Ok(None);
    };
    if !marked.refresh_and_check(ports).await? {
        return Ok(None);
    }
    let replay = ReplayContext {
        id: &job.id,
        subscription: &to.subscription,
        default_time_to_live: to.topic.default_time_to_live,
        gives_new_ids: false,
        counts_recovery: false,
    };
    let letter = LetterPlace {
        object,
        index: event.index,
    };
    let mut pace = ReplayPace::new(1, now, now);
    let messages = replay.messages_of_object(&letter.object, &[event], &mut pace, now);
    for sent in queue_messages(look.run, &messages).await {
        sent.map_err(ReplayError::Send)?;
    }
    Ok(Some(LetterProbe {
        letter,
        sent_at: now,
    }))
}

/// Any letter that may be sent, and that a replay which got so far has not come to. If the first
/// were always the probe, one that brings its endpoint down would keep all others waiting.
async fn find_letter<P: Ports>(
    look: &RecoveryContext<'_, P>,
    selection: &ReplaySelection,
    rules: &RecoveryRules,
    to: &ReplayReceiver,
    progress: &ReplayProgress,
) -> Result<Option<(String, SelectedLetter)>, ReplayError> {
    let objects = objects_of(look, selection, rules, progress.after.as_deref()).await?;
    let chosen = LetterSelector {
        selection,
        recovery: Some(rules),
    };
    let begin = random_below(look, objects.len());
    let all = objects[begin..].iter().chain(&objects[..begin]);
    for object in all.take(READS_MAX) {
        if !look.run.has_time() {
            return Ok(None);
        }
        let Ok(letters) = read_letters(look.run, object, selection).await else {
            continue;
        };
        let done = progress.events_done_of(&object.key);
        let picked = pick_letters(&letters, &to.subscription, chosen, done, usize::MAX);
        let mut events = picked.map(|picked| picked.events).unwrap_or_default();
        if !events.is_empty() {
            let event = events.swap_remove(random_below(look, events.len()));
            return Ok(Some((object.key.clone(), event)));
        }
    }
    Ok(None)
}

/// Objects of some days, from any day on: as many as are read for one probe, if there are.
async fn objects_of<P: Ports>(
    look: &RecoveryContext<'_, P>,
    selection: &ReplaySelection,
    rules: &RecoveryRules,
    after: Option<&str>,
) -> Result<Vec<LetterObject>, ReplayError> {
    let bucket = &look.run.ports.dead_letters;
    // What was written before is too old.
    let within_ms = whole_millis(rules.within);
    let since = rules.now.as_millis().saturating_sub(within_ms);
    let mut days = selection.prefixes_of_days(Timestamp::from_millis(since));
    let begin = random_below(look, days.len());
    days.rotate_left(begin);
    let mut objects = Vec::new();
    let mut pages = 0;
    for day in days {
        let mut after = after.map(str::to_owned);
        loop {
            if objects.len() >= READS_MAX || pages == PAGES_MAX {
                return Ok(objects);
            }
            let page = letter_objects_under(bucket, selection, &day, after.as_deref()).await;
            let page = page.map_err(ReplayError::List)?;
            pages += 1;
            objects.extend(page.objects);
            after = page.next_after;
            if after.is_none() {
                break;
            }
        }
    }
    Ok(objects)
}

/// A number below this one, by chance; 0 for 0.
fn random_below<P: Ports>(look: &RecoveryContext<'_, P>, below: usize) -> usize {
    let mut drawn = [0; 4];
    look.run.ports.entropy.fill(&mut drawn);
    let drawn = usize::try_from(u32::from_le_bytes(drawn)).unwrap_or_default();
    drawn.checked_rem(below).unwrap_or_default()
}
