//! The table of settings against the documents and the template.

#![expect(
    clippy::unwrap_used,
    reason = "a document that cannot be read has failed"
)]

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

#[test]
fn the_reference_page_says_what_the_table_and_the_template_say() {
    let path = file("docs/src/reference/settings.md");
    let page = page::page();
    if env::var_os("POSTHASTE_RENEW").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(path).unwrap_or_default();
    let renew = "docs/src/reference/settings.md is stale: POSTHASTE_RENEW=1 cargo test -p posthaste-settings \
        renews it";
    assert!(written == page, "{renew}");
}
