//! A mark in one run: what is known of it, and the effects of its next step. What is read here before
//! a wait is read again by the replay itself before it sends.

use posthaste_core::model::Subscription;
use posthaste_core::release::recovery::{RecoveryFacts, RecoveryStep};
use posthaste_core::stored::{RecoveryJob, RecoveryMark, ReplayRecord, layout};
use posthaste_ports::{Clock, Entropy, ObjectStore, Ports, PutCondition};
use posthaste_services::open_replay;

use super::look::RecoveryContext;
use super::marked::StoredMark;
use super::notice::send_recovery_notice;
use super::probe::send_probe;
use crate::jobs::recovery_permits::RecoveryPermit;
use crate::jobs::replays::{ReplayError, ReplayJob, ReplayReceiver};
use crate::jobs::standing::{SubscriptionStanding, find_standing};

/// Takes the next step of a mark.
pub(super) async fn take_step<P: Ports>(
    look: &mut RecoveryContext<'_, P>,
    mut marked: StoredMark,
) -> Result<(), ReplayError> {
    let ports = look.run.ports;
    let to = marked.find_receiver(ports).await?;
    let standing = match &to {
        Some(to) if to.is_active() && !marked.mark.is_empty() => {
            let ReplayReceiver { subscription, .. } = to;
            Box::pin(find_standing(ports, &look.book, subscription)).await
        }
        _ => SubscriptionStanding::default(),
    };
    let mut job = match &marked.mark.job {
        Some(job) => ReplayJob::load(ports, &job.id).await?,
        None => None,
    };
    let facts = RecoveryFacts {
        policy: to.as_ref().map(|to| to.subscription.recovery),
        is_well: standing.is_well,
        is_unprobed: standing.is_unprobed,
        job: job.as_ref().map(|job| &job.record),
        recover_after: ports.links.settings().recover_after,
        now: ports.clock.now(),
    };
    let (mark, step) = marked.mark.clone().next_step(&facts);
    if step != RecoveryStep::Idle {
        look.run.note_work();
    }
    let has_recovered = mark.is_empty() && !marked.mark.is_empty();
    let letters = marked.mark.letters;
    let may_run = mark.may_run(&facts);
    marked.save(ports, mark).await?;
    if has_recovered || step == RecoveryStep::Ends && letters > 0 {
        log_end(&marked.mark, letters);
    }
    if step == RecoveryStep::Ends {
        return delete_mark(look, &marked).await;
    }
    let Some(to) = to else {
        return Ok(());
    };
    let begun = match step {
        RecoveryStep::Probes => {
            // Its own replay rests meanwhile, if it has begun.
            set_permit(look, &marked, RecoveryPermit::Rests);
            send_probe(look, &mut marked, &to, job.as_mut()).await?;
            None
        }
        RecoveryStep::Begins => {
            let begun = begin_replay(look, &mut marked, &to).await?;
            permit_run(look, &marked);
            Some(begun)
        }
        RecoveryStep::Opens => match marked.mark.job.clone() {
            Some(job) => {
                let opened = open_named_replay(look, &mut marked, &job, &to).await?;
                // The endpoint may be down again since the run that was cut.
                if may_run {
                    permit_run(look, &marked);
                } else {
                    set_permit(look, &marked, RecoveryPermit::Rests);
                }
                may_run.then_some(opened)
            }
            None => None,
        },
        RecoveryStep::Runs => {
            permit_run(look, &marked);
            job.map(|job| job.record)
        }
        RecoveryStep::Rests => {
            set_permit(look, &marked, RecoveryPermit::Rests);
            None
        }
        RecoveryStep::Idle | RecoveryStep::Waits | RecoveryStep::Ends => None,
    };
    match begun {
        Some(begun) => send_recovery_notice(look, &mut marked, &to, &begun).await,
        None => Ok(()),
    }
}

fn set_permit<P: Ports>(
    look: &mut RecoveryContext<'_, P>,
    marked: &StoredMark,
    permit: RecoveryPermit,
) {
    let id = marked.mark.job.as_ref().map(|job| job.id.clone());
    look.permits.extend(id.map(|id| (id, permit)));
}

fn permit_run<P: Ports>(look: &mut RecoveryContext<'_, P>, marked: &StoredMark) {
    let now = look.run.ports.clock.now();
    let on_its_way = marked.mark.letters_on_their_way(now);
    set_permit(look, marked, RecoveryPermit::Runs(on_its_way));
}

/// Names a replay in the mark, and then opens it: a run that is cut in between leaves the same
/// replay to the next.
async fn begin_replay<P: Ports>(
    look: &RecoveryContext<'_, P>,
    marked: &mut StoredMark,
    to: &ReplayReceiver,
) -> Result<ReplayRecord, ReplayError> {
    let ports = look.run.ports;
    let now = ports.clock.now();
    let job = RecoveryJob {
        id: layout::replay_id(now, &ports.entropy.uuid().to_string()),
        created_at: now,
    };
    let named = RecoveryMark {
        job: Some(job.clone()),
        ..marked.mark.clone()
    };
    marked.save(ports, named).await?;
    let mark = &marked.mark;
    tracing::info!(
        topic = %mark.topic, subscription = %mark.subscription,
        outage_since = %mark.outage_since, letters = mark.letters,
        "the endpoint is well: dead letters of its outage are recovered"
    );
    open_named_replay(look, marked, &job, to).await
}

/// Opens the replay that the mark names. Where another recovery of the subscription is open,
/// because its mark was lost, the mark names that one.
async fn open_named_replay<P: Ports>(
    look: &RecoveryContext<'_, P>,
    marked: &mut StoredMark,
    job: &RecoveryJob,
    to: &ReplayReceiver,
) -> Result<ReplayRecord, ReplayError> {
    let ports = look.run.ports;
    let Subscription {
        created, recovery, ..
    } = &*to.subscription;
    let asked = marked.mark.replay_record(job, created, *recovery);
    let open_key = layout::replaying_mark_key(&asked.id);
    let put = ports
        .state
        .put(&open_key, asked.render(), PutCondition::Always);
    put.await.map_err(ReplayError::Store)?;
    let opened = open_replay(&ports.state, &ports.clock, &asked).await;
    let opened = opened.map_err(ReplayError::Open)?;
    if opened.id != asked.id {
        let deleted = ports.state.delete(&open_key).await;
        deleted.map_err(ReplayError::Store)?;
        let named = RecoveryMark {
            job: Some(job_of(&opened)),
            ..marked.mark.clone()
        };
        marked.save(ports, named).await?;
    }
    Ok(opened)
}

/// Deletes a mark that says that it has ended.
async fn delete_mark<P: Ports>(
    look: &RecoveryContext<'_, P>,
    marked: &StoredMark,
) -> Result<(), ReplayError> {
    let deleted = look.run.ports.state.delete(&marked.key).await;
    deleted.map_err(ReplayError::Store)
}

fn log_end(mark: &RecoveryMark, letters: u64) {
    tracing::info!(
        topic = %mark.topic, subscription = %mark.subscription,
        outage_since = %mark.outage_since, letters,
        "the recovery of an outage has ended"
    );
}

fn job_of(opened: &ReplayRecord) -> RecoveryJob {
    RecoveryJob {
        id: opened.id.clone(),
        created_at: opened.created_at,
    }
}
