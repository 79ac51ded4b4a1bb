//! The profiles of the workspace. `dist` inherits the crates that `release` leaves without
//! optimisation, so it has to name each of them itself.

use std::collections::BTreeMap;
use std::fs;

use serde::Deserialize;

use crate::workspace::root;

#[derive(Deserialize)]
struct Manifest {
    profile: BTreeMap<String, Profile>,
}

#[derive(Deserialize)]
struct Profile {
    #[serde(default)]
    package: BTreeMap<String, toml::Table>,
}

#[test]
fn dist_names_each_crate_that_release_names() {
    let text = fs::read_to_string(root().join("Cargo.toml")).expect("the workspace has a manifest");
    let profiles = toml::from_str::<Manifest>(&text)
        .expect("it has profiles")
        .profile;
    let names = |profile: &str| profiles[profile].package.keys().collect::<Vec<_>>();
    assert!(!names("release").is_empty());
    assert_eq!(names("dist"), names("release"));
}
