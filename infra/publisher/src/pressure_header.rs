//! The header `Posthaste-Pressure`, as far as a producer needs it.

use std::fmt;
use std::time::Duration;

/// The longest delay that is believed: the documents' own most is 55 s.
const DELAY_MAX: Duration = Duration::from_mins(15);

/// `medium; resource=submission-queue; delay=15`, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PressureHeader {
    /// The header for people: `medium submission-queue, 15 s`.
    text: String,
    /// Delay of acknowledgements, in seconds.
    delay_secs: u64,
}

impl PressureHeader {
    /// Reads the header. Unknown parts are left out.
    pub fn parse(header: &str) -> Self {
        let mut parts = header.split(';').map(str::trim);
        let mut text = parts.next().unwrap_or_default().to_owned();
        let mut delay_secs = 0;
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name {
                "resource" => text.extend([" ", value]),
                "delay" => delay_secs = value.parse().unwrap_or_default(),
                _ => {}
            }
        }
        if delay_secs > 0 {
            text.extend([", ", &delay_secs.to_string(), " s"]);
        }
        Self { text, delay_secs }
    }

    /// Delay of acknowledgements, if there is one.
    pub(crate) fn delay(&self) -> Option<Duration> {
        (self.delay_secs > 0).then(|| Duration::from_secs(self.delay_secs).min(DELAY_MAX))
    }
}

impl fmt::Display for PressureHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_read_as_far_as_it_is_known() {
        let check = |header: &str, shown: &str, delay: Option<u64>| {
            let pressure = PressureHeader::parse(header);
            assert_eq!(
                (
                    pressure.to_string().as_str(),
                    pressure.delay().map(|it| it.as_secs())
                ),
                (shown, delay),
                "{header}"
            );
        };
        check(
            "medium; resource=submission-queue; delay=15",
            "medium submission-queue, 15 s",
            Some(15),
        );
        check(
            "high; resource=database-disk; retry-after=30",
            "high database-disk",
            None,
        );
        check("medium; delay=10", "medium, 10 s", Some(10));
        check(
            "normal; resource=drain-time; delay=0",
            "normal drain-time",
            None,
        );
        check("medium;delay=x;new", "medium", None);
        check("medium; delay=86400", "medium, 86400 s", Some(900));
        check("", "", None);
    }
}
