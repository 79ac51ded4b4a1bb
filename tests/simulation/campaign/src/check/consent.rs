//! The consent of endpoints, where they are asked.

use std::time::Duration;

use crate::check::case::Evidence;
use crate::check::excuse::Excuse;
use crate::check::rule::{Findings, Rule};
use crate::course::Question;
use crate::endpoint::{Given, Seen};
use crate::history::{Found, Life};

/// The time for which a topic that could not be read stays in use as it was.
const KEPT_FOR: Duration = Duration::from_secs(75);

/// No request begins before its endpoint has consented, or after it was found that it has not.
pub(super) fn is_given(
    evidence: Evidence<'_>,
    life: &Life,
    seen: &[&Seen],
    findings: &mut Findings,
) {
    if life.settings.question == Question::None {
        return;
    }
    let history = evidence.history;
    let slack = evidence.slack();
    let of_life = |it: &&Given| it.place.0 == life.name() && it.place.1 == life.number;
    let consents: Vec<_> = history.consents.iter().filter(of_life).collect();
    for seen in seen {
        let is_for_it = |at: Duration, moves: u32| at <= seen.at && moves == seen.moves;
        let mut given = consents.iter();
        if !given.any(|it| is_for_it(it.at, it.place.2)) {
            let text = format!("its endpoint has not consented: {seen:?}");
            findings.fail(Rule::Consent, text);
            continue;
        }
        let span = seen.at.saturating_sub(KEPT_FOR)..=seen.at;
        if history.is_excused(&span, &[Excuse::Unreadable]) {
            continue;
        }
        let last = life.looks.iter().rev();
        let last = last.filter(|it| matches!(it.0, Found::Asked | Found::Without));
        let last = last.map(|it| it.1).find(|it| it.sure + slack < seen.at);
        let Some(last) = last else { continue };
        let mut since = consents.iter().map(|it| it.at);
        if !since.any(|at| (last.asked..=seen.at).contains(&at)) {
            let text = format!("found without consent at {:?}: {seen:?}", last.sure);
            findings.fail(Rule::Consent, text);
        }
    }
}
