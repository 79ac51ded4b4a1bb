//! The table of settings against the documents and the template.

#![expect(
    clippy::unwrap_used,
    reason = "a document that cannot be read has failed"
)]

mod aws;
mod page;
mod rows;
mod template;

use std::path::{Path, PathBuf};
use std::{env, fs};

/// A file of the repository.
fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

/// Compares a file with the text that it is made of, and writes it first if that is asked for.
fn hold_or_renew(path: &str, made: &str) {
    let place = file(path);
    if env::var_os("POSTHASTE_RENEW").is_some() {
        fs::write(&place, made).unwrap();
    }
    let written = fs::read_to_string(place).unwrap_or_default();
    let renew = "POSTHASTE_RENEW=1 cargo test -p posthaste-settings renews it";
    assert!(written == made, "{path} is stale: {renew}");
}

#[test]
fn the_reference_page_says_what_the_table_and_the_template_say() {
    hold_or_renew("docs/src/reference/settings.md", &page::page());
}

#[test]
fn the_template_is_what_its_parts_make() {
    hold_or_renew("template.yaml", &aws::composed_template());
}
