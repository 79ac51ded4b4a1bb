//! The dependencies of the program, checked against `deny.toml`: licences, banned crates, sources.
//! The same as `cargo deny check licenses bans sources`, without the minutes it takes to build
//! that; advisories need its database, so `cargo deny` checks them.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::OnceLock;

use serde::Deserialize;
use spdx::{Expression, LicenseReq, ParseMode};

#[derive(Deserialize)]
struct Deny {
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Banned>,
}

#[derive(Deserialize)]
struct Banned {
    name: String,
    reason: String,
    /// The only crates that may depend on it.
    #[serde(default)]
    wrappers: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
    #[serde(default)]
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    optional: bool,
    kind: Option<String>,
}

fn deny() -> Deny {
    toml::from_str(include_str!("../../deny.toml")).expect("deny.toml is as cargo-deny wants it")
}

/// Every package of `Cargo.lock`, those of the workspace too.
fn packages() -> &'static [Package] {
    static PACKAGES: OnceLock<Vec<Package>> = OnceLock::new();
    PACKAGES.get_or_init(|| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args([
            "metadata",
            "--locked",
            "--format-version",
            "1",
            "--all-features",
        ]);
        let output = cargo
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("cargo starts");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice::<Metadata>(&output.stdout)
            .expect("cargo answers its metadata")
            .packages
    })
}

/// Whether a licence expression can be met with the licences that are allowed.
fn is_allowed(license: &str, allowed: &[LicenseReq]) -> bool {
    let expression = Expression::parse_mode(license, ParseMode::LAX);
    expression.is_ok_and(|expression| expression.evaluate(|wanted| allowed.contains(wanted)))
}

fn allowed() -> Vec<LicenseReq> {
    let parse = |text: &String| {
        let expression = Expression::parse(text).expect("an allowed licence has an SPDX name");
        expression
            .requirements()
            .next()
            .expect("it names one")
            .req
            .clone()
    };
    deny().licenses.allow.iter().map(parse).collect()
}

#[test]
fn every_licence_is_one_we_may_use() {
    let allowed = allowed();
    let refused: Vec<_> = packages()
        .iter()
        .filter(|package| {
            !package
                .license
                .as_ref()
                .is_some_and(|license| is_allowed(license, &allowed))
        })
        .map(|package| {
            format!(
                "{} {}: {:?}",
                package.name, package.version, package.license
            )
        })
        .collect();
    assert_eq!(refused, Vec::<String>::new());
}

#[test]
fn an_expression_is_met_by_one_side_of_or_and_both_sides_of_and() {
    let allowed = allowed();
    let check =
        |license: &str, expected| assert_eq!(is_allowed(license, &allowed), expected, "{license}");
    check("MIT", true);
    check("GPL-3.0-only", false);
    check("MIT OR GPL-3.0-only", true);
    check("MIT AND GPL-3.0-only", false);
    check("MIT/Apache-2.0", true);
    check("Apache-2.0 WITH LLVM-exception", true);
    check("proprietary", false);
}

#[test]
fn no_banned_crate_is_built_in() {
    let bans = deny().bans.deny;
    let depends = |package: &Package, banned: &Banned| {
        let is_built = |it: &&Dependency| !it.optional && it.kind.as_deref() != Some("dev");
        package
            .dependencies
            .iter()
            .filter(is_built)
            .any(|it| it.name == banned.name)
    };
    let found = |banned: &&Banned| match banned.wrappers.as_slice() {
        [] => packages().iter().any(|package| package.name == banned.name),
        wrappers => packages()
            .iter()
            .any(|package| depends(package, banned) && !wrappers.contains(&package.name)),
    };
    let found: Vec<_> = bans
        .iter()
        .filter(found)
        .map(|banned| (&banned.name, &banned.reason))
        .collect();
    assert_eq!(found, Vec::new());
}

#[test]
fn everything_comes_from_crates_io_or_from_here() {
    let registries = deny().sources.allow_registry;
    let is_known = |source: &String| {
        registries
            .iter()
            .any(|known| *source == format!("registry+{known}"))
    };
    let foreign: Vec<_> = packages()
        .iter()
        .filter(|package| !package.source.as_ref().is_none_or(is_known))
        .map(|p| &p.name)
        .collect();
    assert_eq!(foreign, Vec::<&String>::new());
}

/// Functions without the delivery log's files. deliver starts for every delivery, and Parquet would
/// make its program large.
const WITHOUT_LOG_FILES: [&str; 4] = [
    "posthaste-publish",
    "posthaste-deliver",
    "posthaste-deadletter",
    "posthaste-monitor",
];

/// Whether a package is built with another, through any number of packages between them.
fn is_built_with(package: &str, other: &str) -> bool {
    let names = |name: &str| {
        let named = packages().iter().filter(|package| package.name == name);
        let built = named
            .flat_map(|package| &package.dependencies)
            .filter(|it| it.kind.is_none());
        built.map(|it| it.name.as_str()).collect::<Vec<_>>()
    };
    let (mut seen, mut next) = (BTreeSet::new(), vec![package]);
    while let Some(name) = next.pop() {
        next.extend(names(name).into_iter().filter(|name| seen.insert(*name)));
    }
    seen.contains(other)
}

#[test]
fn only_manage_wake_and_record_are_built_with_the_files_of_the_delivery_log() {
    assert!(is_built_with("posthaste-record", "parquet"));
    for function in WITHOUT_LOG_FILES {
        assert!(
            is_built_with(function, "posthaste-core"),
            "{function} is no package"
        );
        assert!(
            !is_built_with(function, "posthaste-delivery-log"),
            "{function}"
        );
        assert!(!is_built_with(function, "parquet"), "{function}");
    }
}
