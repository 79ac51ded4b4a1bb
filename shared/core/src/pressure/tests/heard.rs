//! `heard.txt`, held against what happens: every resource, level, tier and length of pressure, in
//! every profile.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

const WRITTEN: &str = include_str!("heard.txt");

/// The resources and profiles of a block, and below them its cases.
struct Block {
    resource: Resource,
    drain_secs: Option<u64>,
    profiles: Vec<PressureProfile>,
}

/// One case: by the name of its line, a word for every poll.
type Case<'t> = BTreeMap<&'t str, Vec<&'t str>>;

/// Calls `check` for every case and every profile it holds in.
fn each_case(mut check: impl FnMut(&Block, PressureProfile, &Case<'_>)) {
    let lines: Vec<_> = WRITTEN
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    let mut block = None;
    for paragraph in lines
        .split(|line| line.is_empty())
        .filter(|paragraph| !paragraph.is_empty())
    {
        if let [head] = paragraph {
            block = Some(parse_head(head));
            continue;
        }
        let block = block.as_ref().expect("a block has a head");
        let case = paragraph.iter().map(|line| parse_line(line)).collect();
        for profile in &block.profiles {
            check(block, *profile, &case);
        }
    }
}

fn parse_head(head: &str) -> Block {
    let (what, profiles) = head
        .trim_matches(['[', ']'])
        .split_once(": ")
        .expect("a resource and profiles");
    let (resource, drain) = what.split_once(" drained in ").unwrap_or((what, ""));
    Block {
        resource: Resource::ALL
            .into_iter()
            .find(|known| known.as_str() == resource)
            .expect("a resource"),
        drain_secs: drain
            .strip_suffix(" s")
            .map(|secs| secs.parse().expect("seconds")),
        profiles: profiles.split(", ").map(profile).collect(),
    }
}

fn profile(name: &str) -> PressureProfile {
    match name {
        "scaled" => PressureProfile::Scaled,
        "exchange-2013" => PressureProfile::Exchange2013,
        "exchange-2013-german" => PressureProfile::Exchange2013German,
        other => panic!("no profile: {other}"),
    }
}

/// A name, two spaces or more, and words, each for one poll or, as `word×n`, for so many.
fn parse_line(line: &str) -> (&str, Vec<&str>) {
    let (name, words) = line.split_once("  ").expect("a name and words");
    let repeated = words.split_whitespace().flat_map(|word| {
        let (word, times) = word.split_once('×').unwrap_or((word, "1"));
        std::iter::repeat_n(word, times.parse().expect("a number of polls"))
    });
    (name, repeated.collect())
}

/// The words about a tier, on whichever line they are.
fn line_of<'c, 't>(case: &'c Case<'t>, tier: ProducerTier) -> &'c [&'t str] {
    let of_tier = |name: &str| name == "everybody" || name.split(", ").any(|n| n == tier.as_str());
    case.iter()
        .find(|(name, _)| of_tier(name))
        .map(|(_, words)| words)
        .expect("a line for every tier")
}

fn word(admission: Admission) -> String {
    match admission {
        Admission::Accept => "ok".to_owned(),
        Admission::Delay(delay) => delay.as_secs_f64().to_string(),
        Admission::Refuse { .. } => "refused".to_owned(),
    }
}

/// The further actions of one poll, in the order of the table.
fn besides(state: &PressureState) -> String {
    let name = |measure: &PressureMeasure| {
        serde_json::to_value(measure)
            .unwrap()
            .as_str()
            .unwrap()
            .to_owned()
    };
    let measures: BTreeSet<PressureMeasure> = state
        .resources
        .iter()
        .flat_map(|r| r.measures.clone())
        .collect();
    let names: Vec<_> = measures.iter().map(name).collect();
    if names.is_empty() {
        "-".to_owned()
    } else {
        names.join("+")
    }
}

fn check(block: &Block, profile: PressureProfile, case: &Case<'_>) {
    let mut trace = Trace::new(PressureSettings {
        profile,
        ..PressureSettings::default()
    });
    for (poll, value) in case["readings"].iter().enumerate() {
        let mut readings = reading(block.resource, value.parse().expect("a reading"));
        readings.drain_secs = block.drain_secs.or(readings.drain_secs);
        let state = trace.poll(&readings).clone();
        let what = format!(
            "{} in {profile:?}, poll {} at {value}",
            block.resource,
            poll + 1
        );
        let level = state.resource(block.resource).expect("it was read").level;
        assert_eq!(
            level.to_string(),
            case["levels"][poll],
            "the level of {what}"
        );
        for tier in ProducerTier::ALL {
            assert_eq!(
                word(trace.admit(tier)),
                line_of(case, tier)[poll],
                "{tier} under {what}"
            );
        }
        assert_eq!(
            besides(&state),
            case["besides"][poll],
            "besides, under {what}"
        );
    }
}

#[test]
fn every_tier_hears_what_is_written_from_the_documents() {
    each_case(check);
}

/// A line that is too long would never be held against anything.
#[test]
fn every_line_has_a_word_for_every_poll() {
    each_case(|block, _, case| {
        let polls = case["readings"].len();
        let lengths: Vec<_> = case
            .iter()
            .map(|(name, words)| (name, words.len()))
            .collect();
        assert!(
            lengths.iter().all(|(_, words)| *words == polls),
            "{}: {lengths:?}",
            block.resource
        );
    });
}

/// Every resource reaches every level in every profile, and is held for longer than its history, if
/// it has one.
#[test]
fn cases_reach_every_level_of_the_table() {
    let mut longest: BTreeMap<(Resource, String, String), usize> = BTreeMap::new();
    each_case(|block, profile, case| {
        for run in case["levels"].chunk_by(|one, other| one == other) {
            let seen = longest
                .entry((block.resource, format!("{profile:?}"), run[0].to_owned()))
                .or_default();
            *seen = run.len().max(*seen);
        }
    });
    for profile in [
        PressureProfile::Scaled,
        PressureProfile::Exchange2013,
        PressureProfile::Exchange2013German,
    ] {
        for row in rows_of_profile(profile) {
            let polls = row.history_depth.filter(|_| row.throttles).unwrap_or(1) as usize;
            for level in ["normal", "medium", "high"] {
                let seen = longest.get(&(row.resource, format!("{profile:?}"), level.to_owned()));
                let enough = if level == "normal" { 1 } else { polls };
                assert!(
                    seen.is_some_and(|seen| *seen >= enough),
                    "{} {profile:?} {level}",
                    row.resource
                );
            }
        }
    }
}
