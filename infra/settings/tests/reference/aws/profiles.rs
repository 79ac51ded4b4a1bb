//! The values that `Profile` sets, as CloudFormation reads them: a mapping of the profiles, a
//! condition for each parameter, and the value of a parameter under both.

use posthaste_settings::parameters::GROUPS;
use posthaste_settings::profiles::{PROFILES, ProfileRow};

use super::parameters::default_of;

/// The section `Mappings`.
pub(crate) fn mappings() -> String {
    let mut lines = vec![
        "# What Profile sets where a parameter has its default.".to_owned(),
        "Mappings:".to_owned(),
        "  Profiles:".to_owned(),
    ];
    for (profile, value_of) in [
        ("default", default_value as fn(&ProfileRow) -> String),
        ("cheap", |row| row.cheap.to_string()),
        ("fast", |row| row.fast.to_string()),
    ] {
        lines.push(format!("    {profile}:"));
        for row in &PROFILES {
            // A text: the variables of a function are texts.
            lines.push(format!("      {}: \"{}\"", row.parameter, value_of(row)));
        }
    }
    lines.join("\n")
}

/// The conditions under which the parameters themselves count.
pub(crate) fn conditions() -> String {
    let mut lines =
        vec!["  # Where a parameter has its default, Profile says the value.".to_owned()];
    for row in &PROFILES {
        let name = row.parameter;
        let default = default_value(row);
        lines.push(format!(
            "  Is{name}Given: !Not [!Equals [!Ref {name}, \"{default}\"]]"
        ));
    }
    lines.join("\n")
}

/// A member with the value of a parameter.
pub(crate) fn member(key: &str, parameter: &str) -> Vec<String> {
    if PROFILES.iter().all(|row| row.parameter != parameter) {
        return vec![format!("{key}: !Ref {parameter}")];
    }
    vec![
        format!("{key}: !If"),
        format!("  - Is{parameter}Given"),
        format!("  - !Ref {parameter}"),
        format!("  - !FindInMap [Profiles, !Ref Profile, {parameter}]"),
    ]
}

fn default_value(row: &ProfileRow) -> String {
    let mut parameters = GROUPS.iter().flat_map(|group| group.parameters);
    let parameter = parameters.find(|parameter| parameter.name == row.parameter);
    default_of(parameter.expect("a parameter")).expect("a default")
}
