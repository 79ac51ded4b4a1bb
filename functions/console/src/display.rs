//! Values as pages show them. Everything that a producer or an endpoint wrote goes through
//! [`foreign_text`] or [`foreign_cut`].

use maud::{Markup, html};
use posthaste_core::model::Timestamp;
use posthaste_core::model::visible::is_hidden;

pub(crate) use posthaste_core::model::visible::visible_text;

/// Most characters of a foreign text in a list.
pub(crate) const CELL_CHARS_MAX: usize = 80;

/// Most characters of a body that is shown, such as a payload.
pub(crate) const BODY_CHARS_MAX: usize = 16_000;

/// Seconds of a minute, of an hour, of a day, and of the time that is not yet told in days.
const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const TWO_DAYS: u64 = 2 * DAY;

/// Characters of a code point as it is written.
const CODE_POINT_CHARS: usize = 8;

/// Most bytes on the page for each character of a cut, so that signs that HTML escapes make no long
/// page.
const BYTES_FOR_CHAR_MAX: usize = 3;

/// A text from outside: escaped, in a direction of its own, and with characters that would hide or
/// reorder others made visible.
pub(crate) fn foreign_text(text: &str) -> Markup {
    html! { bdi { (visible_text(text)) } }
}

/// The first characters of a text from outside, as they are shown, with a mark where it is cut.
pub(crate) fn foreign_cut(text: &str, chars_max: usize) -> Markup {
    match visible_cut(text, chars_max) {
        Some(cut) => html! { bdi { (cut) } span.cut title={ (text.len()) " bytes" } { "…" } },
        None => foreign_text(text),
    }
}

/// A text from outside as the cell of a table, if there is one.
pub(crate) fn cell_text(text: Option<&str>) -> Option<Markup> {
    text.map(|text| foreign_cut(text, CELL_CHARS_MAX))
}

/// The first characters of a text as they are shown; `None` if these are all. A character that is
/// written as its code point counts as what is written, and the page gets at most three bytes for
/// each character of `chars_max`, so that no text becomes much longer than its cut.
pub(crate) fn visible_cut(text: &str, chars_max: usize) -> Option<String> {
    let mut chars = 0;
    let mut bytes = 0;
    for (end, character) in text.char_indices() {
        let (more_chars, more_bytes) = size_shown(character);
        chars += more_chars;
        bytes += more_bytes;
        if chars > chars_max || bytes > chars_max * BYTES_FOR_CHAR_MAX {
            return Some(visible_text(&text[..end]).into_owned());
        }
    }
    None
}

/// The characters of a character as it is shown, and its bytes on the page.
fn size_shown(character: char) -> (usize, usize) {
    match character {
        '"' => (1, "&quot;".len()),
        '&' => (1, "&amp;".len()),
        '<' | '>' => (1, "&lt;".len()),
        _ if is_hidden(character) => (CODE_POINT_CHARS, "⟦U+0000⟧".len()),
        _ => (1, character.len_utf8()),
    }
}

/// A time, in UTC. The script writes it in the visitor's zone.
pub(crate) fn time_tag(at: Timestamp) -> Markup {
    let iso = at.to_string();
    let text = iso.replace('T', " ");
    let text = text
        .split('.')
        .next()
        .unwrap_or(&text)
        .trim_end_matches('Z');
    html! { time datetime=(iso) title={ (text) " UTC" } { (text) " UTC" } }
}

/// A time, and before it how long ago it was, or how long it is until then. The script counts it on, by
/// the server's clock.
pub(crate) fn relative_time(at: Timestamp, now: Timestamp) -> Markup {
    html! {
        span.ago data-since=(at.to_string()) data-now=(now.to_string()) { (distance_text(at, now)) }
        " " (time_tag(at))
    }
}

/// The distance from `now` to a time, in its largest unit, such as `12 min ago` or `in 4 h`.
fn distance_text(at: Timestamp, now: Timestamp) -> String {
    let is_ahead = at > now;
    let seconds = if is_ahead {
        at.since(now)
    } else {
        now.since(at)
    }
    .as_secs();
    let length = match seconds {
        ..MINUTE => format!("{seconds} s"),
        MINUTE..HOUR => format!("{} min", seconds / MINUTE),
        HOUR..TWO_DAYS => format!("{} h", seconds / HOUR),
        _ => format!("{} days", seconds / DAY),
    };
    if is_ahead {
        format!("in {length}")
    } else {
        format!("{length} ago")
    }
}

/// A number with its thousands apart.
pub(crate) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_foreign_text_is_escaped_and_shows_what_it_hides() {
        let check = |text, expected: &str| {
            assert_eq!(
                foreign_text(text).into_string(),
                format!("<bdi>{expected}</bdi>")
            );
        };
        check(
            "<script>alert(1)</script>",
            "&lt;script&gt;alert(1)&lt;/script&gt;",
        );
        check("a\u{202e}b\u{0}c\nd", "a⟦U+202E⟧b⟦U+0000⟧c\nd");
        check("\u{200b}é", "⟦U+200B⟧é");
    }

    /// Text that is cut takes at most three bytes of the page for each character.
    #[test]
    fn cut_text_takes_three_page_bytes_a_character_at_most() {
        for character in ['"', '&', '<', '\u{0}', 'x', 'é', '語', '🙂'] {
            let text = character.to_string().repeat(2_000);
            let page = html! { (visible_cut(&text, 1_000).unwrap()) }.into_string();
            assert!(
                (1_000..=3_000).contains(&page.len()),
                "{character:?}: {}",
                page.len()
            );
        }
    }

    #[test]
    fn a_long_foreign_text_is_cut_between_characters() {
        assert_eq!(foreign_cut("éé", 2).into_string(), "<bdi>éé</bdi>");
        let cut = foreign_cut("ééé", 2).into_string();
        assert_eq!(
            cut,
            r#"<bdi>éé</bdi><span class="cut" title="6 bytes">…</span>"#
        );
        let hidden = foreign_cut(&"\u{202e}".repeat(1_000), 80).into_string();
        assert_eq!(hidden.matches("⟦U+202E⟧").count(), 10);
    }

    #[test]
    fn thousands_stand_apart() {
        let shown = [0, 999, 1000, 1_234_567].map(number);
        assert_eq!(shown, ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn distances_are_told_in_their_largest_unit() {
        let now = Timestamp::from_millis(1_700_000_000_000);
        let check = |seconds: u64, past: &str, ahead: &str| {
            let later = now + Duration::from_secs(seconds);
            assert_eq!(distance_text(now, later), past);
            assert_eq!(distance_text(later, now), ahead);
        };
        check(1, "1 s ago", "in 1 s");
        check(59, "59 s ago", "in 59 s");
        check(60, "1 min ago", "in 1 min");
        check(3_599, "59 min ago", "in 59 min");
        check(3_600, "1 h ago", "in 1 h");
        check(172_799, "47 h ago", "in 47 h");
        check(172_800, "2 days ago", "in 2 days");
        assert_eq!(distance_text(now, now), "0 s ago");
    }

    #[test]
    fn relative_time_says_both_clocks_and_the_exact_time() {
        let at = Timestamp::from_millis(1_700_000_000_000);
        let shown = relative_time(at, at + Duration::from_secs(125)).into_string();
        assert_eq!(
            shown,
            format!(
                "<span class=\"ago\" data-since=\"2023-11-14T22:13:20.000Z\" \
                 data-now=\"2023-11-14T22:15:25.000Z\">2 min ago</span> {}",
                time_tag(at).into_string()
            )
        );
    }

    #[test]
    fn a_time_is_whole_for_a_program_and_short_for_a_person() {
        let shown = time_tag(Timestamp::from_millis(1_700_000_000_123)).into_string();
        assert_eq!(
            shown,
            "<time datetime=\"2023-11-14T22:13:20.123Z\" title=\"2023-11-14 22:13:20 UTC\">\
             2023-11-14 22:13:20 UTC</time>"
        );
    }
}
