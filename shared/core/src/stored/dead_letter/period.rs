//! Months, days and hours of the keys of dead letters. Keys do not sort by time, as their numbers
//! have no leading zeros: what is to be newest first is looked up period by period.

use crate::model::Timestamp;

const DAY_MS: u64 = 24 * HOUR_MS;
const HOUR_MS: u64 = 3_600_000;

/// A month, a day or an hour, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyPeriod {
    year: u16,
    month: u8,
    /// The day; `None` for a whole month.
    day: Option<u8>,
    /// The hour; `None` for a whole day or month.
    hour: Option<u8>,
}

impl KeyPeriod {
    /// The month of a time.
    pub fn month_of(at: Timestamp) -> Self {
        Self {
            year: at.strftime("%Y").parse().unwrap_or(1),
            month: at.strftime("%m").parse().unwrap_or(1),
            day: None,
            hour: None,
        }
    }

    /// The day of a time.
    pub fn day_of(at: Timestamp) -> Self {
        Self {
            day: Some(at.strftime("%d").parse().unwrap_or(1)),
            ..Self::month_of(at)
        }
    }

    /// The month before this one.
    #[must_use]
    pub fn month_before(self) -> Self {
        let (year, month) = if self.month > 1 {
            (self.year, self.month - 1)
        } else {
            (self.year.saturating_sub(1), 12)
        };
        Self {
            year,
            month,
            day: None,
            hour: None,
        }
    }

    /// The year.
    pub fn year(self) -> u16 {
        self.year
    }

    /// The part of a key that it is, with a slash at its end.
    pub fn key_part(self) -> String {
        let Self {
            year,
            month,
            day,
            hour,
        } = self;
        let more = [day, hour]
            .into_iter()
            .flatten()
            .map(|part| format!("{part}/"));
        format!("{year}/{month}/{}", more.collect::<String>())
    }

    /// The parts of the period, the oldest first: the days of a month, the hours of a day, none of
    /// an hour.
    pub fn sub_periods(self) -> Vec<Self> {
        let parts: Vec<_> = match (self.day, self.hour) {
            (None, _) => (1..=31)
                .map(|day| Self {
                    day: Some(day),
                    ..self
                })
                .collect(),
            (Some(_), None) => (0..24)
                .map(|hour| Self {
                    hour: Some(hour),
                    ..self
                })
                .collect(),
            (Some(_), Some(_)) => Vec::new(),
        };
        parts
            .into_iter()
            .filter(|part| part.begins_if_any().is_some())
            .collect()
    }

    /// The time at which it begins.
    pub fn begins_at(self) -> Timestamp {
        self.begins_if_any().unwrap_or(Timestamp::EPOCH)
    }

    /// The time at which it is over.
    pub fn ends_at(self) -> Timestamp {
        let length = match (self.day, self.hour) {
            (None, _) => return self.month_after().begins_at(),
            (Some(_), None) => DAY_MS,
            (Some(_), Some(_)) => HOUR_MS,
        };
        Timestamp::from_millis(self.begins_at().as_millis() + length)
    }

    fn month_after(self) -> Self {
        let (year, month) = if self.month < 12 {
            (self.year, self.month + 1)
        } else {
            (self.year.saturating_add(1), 1)
        };
        Self {
            year,
            month,
            day: None,
            hour: None,
        }
    }

    /// The beginning; `None` where the month has no such day.
    fn begins_if_any(self) -> Option<Timestamp> {
        let Self {
            year,
            month,
            day,
            hour,
        } = self;
        let day = day.unwrap_or(1);
        let hour = hour.unwrap_or(0);
        Timestamp::parse(&format!("{year:04}-{month:02}-{day:02}T{hour:02}:00:00Z")).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stored::dead_letter::dead_letter_hour;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn months_follow_one_another_backwards() {
        let march = KeyPeriod::month_of(at("2026-03-07T04:05:01Z"));
        let months = [
            march,
            march.month_before(),
            march.month_before().month_before().month_before(),
        ];
        assert_eq!(
            months.map(KeyPeriod::key_part),
            ["2026/3/", "2026/2/", "2025/12/"]
        );
        assert_eq!(
            (march.begins_at(), march.ends_at()),
            (at("2026-03-01T00:00:00Z"), at("2026-04-01T00:00:00Z"))
        );
        assert_eq!(months[2].ends_at(), at("2026-01-01T00:00:00Z"));
    }

    #[test]
    fn a_month_has_its_days_and_a_day_its_hours() {
        let february = KeyPeriod::month_of(at("2028-02-07T04:05:01Z"));
        let days = february.sub_periods();
        assert_eq!(
            (days.len(), days[28].key_part()),
            (29, "2028/2/29/".to_owned())
        );
        let hours = days[0].sub_periods();
        assert_eq!(
            (hours.len(), hours[23].key_part()),
            (24, "2028/2/1/23/".to_owned())
        );
        assert_eq!(
            (hours[23].begins_at(), hours[23].ends_at()),
            (at("2028-02-01T23:00:00Z"), days[1].begins_at())
        );
        assert_eq!(hours[0].sub_periods(), []);
    }

    #[test]
    fn the_hour_of_a_key_is_a_period_of_it() {
        let day = KeyPeriod::month_of(at("2026-11-21T10:00:00Z")).sub_periods()[20];
        let hour = day.sub_periods()[9];
        let key = format!("A/B/{}x.json", hour.key_part());
        assert_eq!(
            dead_letter_hour("A/B/", &key),
            Some(hour.begins_at()..hour.ends_at())
        );
    }
}
