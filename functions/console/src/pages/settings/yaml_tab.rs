//! The tab with the settings as YAML.

use maud::{Markup, html};

/// Fewest rows of the field.
const ROWS_MIN: usize = 12;

/// Most rows of the field. It scrolls where there are more.
const ROWS_MAX: usize = 40;

/// The field for settings.
pub(super) fn text_area(text: &str) -> Markup {
    let rows = (text.lines().count() + 2).clamp(ROWS_MIN, ROWS_MAX);
    html! {
        label for="text" { "Settings as YAML" }
        // Browsers drop the first line break.
        textarea #text name="text" rows=(rows) spellcheck="false" { "\n" (text) }
        p.hint {
            "A masked secret keeps the present one. The "
            a href="/schema.json" { "JSON Schema" } " explains every member."
        }
    }
}
