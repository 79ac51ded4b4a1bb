//! The one checker of histories: what must hold of every run, whatever happened in it.
//!
//! A rule that does not hold after something went wrong names that as an `Excuse`, and the time in
//! which it counts.

mod case;
mod consent;
mod ending;
mod excuse;
mod log;
mod notices;
mod repeats;
mod rule;
mod subscription;
mod timing;
mod whole;

use std::collections::BTreeMap;

use crate::check::case::{Case, Evidence, Wants};
use crate::check::rule::{Findings, Rule};
use crate::course::Course;
use crate::endpoint::Seen;
use crate::ends::Ends;
use crate::history::History;

/// Returns the faults of a run; none if all holds.
pub(crate) fn faults_of(course: &Course, history: &History, ends: &Ends) -> Vec<String> {
    let evidence = Evidence {
        course,
        history,
        ends,
    };
    let mut findings = Findings::default();
    whole::rests(evidence, &mut findings);
    whole::is_known(evidence, &mut findings);
    whole::has_nothing_idle(evidence, &mut findings);
    for life in &history.lives {
        let of_life = |seen: &&Seen| seen.name == life.name() && seen.life == life.number;
        let seen: Vec<_> = history.seen.iter().filter(of_life).collect();
        let of_named: Vec<_> = seen.iter().map(|it| it.of_named()).collect();
        for event in &history.events {
            let has_it = |it: &(&&Seen, &Seen)| it.0.ids.contains(&event.id);
            let of_event = seen.iter().zip(&of_named).filter(has_it);
            // An event that an answer named as failed was not taken with its neighbours.
            let of_event = of_event.map(|(seen, of_named)| {
                if seen.named.contains(&event.id) {
                    of_named
                } else {
                    *seen
                }
            });
            let case = Case {
                evidence,
                life,
                event,
                seen: of_event.collect(),
            };
            check_event(&case, &mut findings);
        }
        subscription::is_up_to_date(evidence, life, &seen, &mut findings);
        subscription::is_stopped(evidence, life, &seen, &mut findings);
        consent::is_given(evidence, life, &seen, &mut findings);
        subscription::keeps_pauses(evidence, life, &seen, &mut findings);
        subscription::goes_when_idle(evidence, life, &seen, &mut findings);
        subscription::keeps_rate(evidence, life, &seen, &mut findings);
        subscription::keeps_bound(evidence, life, &seen, &mut findings);
    }
    whole::is_shown_well(evidence, &mut findings);
    whole::is_audited(evidence, &mut findings);
    notices::are_true(evidence, &mut findings);
    notices::are_sent(evidence, &mut findings);
    findings.into_texts()
}

fn check_event(case: &Case<'_>, findings: &mut Findings) {
    let wants = case.evidence.wants(case.life, case.event);
    if wants == Wants::No {
        if !case.seen.is_empty() {
            let text = format!("{case} was sent: {:?}", case.seen);
            findings.fail(Rule::Wanted, text);
        }
        return;
    }
    if case.is_refused() && !case.seen.is_empty() {
        let text = format!("{case} was refused, and sent: {:?}", case.seen);
        findings.fail(Rule::Wanted, text);
    }
    if wants == Wants::Yes && case.event.is_accepted() {
        ending::has_end(case, findings);
        log::is_told(case, findings);
        timing::is_prompt(case, findings);
        timing::is_steady(case, findings);
        timing::is_alive(case, findings);
    }
    ending::has_one_end(case, findings);
    ending::has_reasons(case, findings);
    ending::recovery_ends(case, findings);
    ending::is_not_buried_with_others(case, findings);
    timing::is_in_time(case, findings);
    repeats::has_one_id(case, findings);
    repeats::is_not_repeated(case, findings);
}

/// The number of runs in which each rule failed, for a summary.
pub fn rules(faults: &[String]) -> BTreeMap<String, usize> {
    let mut rules = BTreeMap::new();
    for fault in faults {
        let rule = fault.split(':').next().unwrap_or_default();
        *rules.entry(rule.to_owned()).or_default() += 1;
    }
    rules
}
