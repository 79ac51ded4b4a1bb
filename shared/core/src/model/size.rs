//! Sizes as people write them.

/// A share of a disk, or a number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskShare {
    /// A share of the disk, in per cent.
    Percent(u64),
    /// So many bytes.
    Bytes(u64),
}

impl DiskShare {
    /// Reads `5%`, or a size such as `20GB`, of at least `bytes_min`.
    pub fn parse(text: &str, bytes_min: u64) -> Option<Self> {
        match text.strip_suffix('%') {
            Some(percent) => {
                let percent = percent.trim_end().parse().ok()?;
                (1..=100)
                    .contains(&percent)
                    .then_some(Self::Percent(percent))
            }
            None => parse_size(text)
                .filter(|bytes| *bytes >= bytes_min)
                .map(Self::Bytes),
        }
    }

    /// The bytes that it means on a disk of `total`.
    pub fn bytes_of_disk(self, total: u64) -> u64 {
        match self {
            Self::Percent(percent) => (u128::from(total) * u128::from(percent) / 100)
                .try_into()
                .unwrap_or(u64::MAX),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// Names of units of size, each 1024 times the one before.
const UNITS: [&str; 5] = ["B", "KB", "MB", "GB", "TB"];

/// Reads `384 MB` or `384MB`: a whole number with its unit, in bytes. 1 KB is 1,024 bytes, as in
/// Exchange.
pub fn parse_size(text: &str) -> Option<u64> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let power = UNITS
        .iter()
        .position(|name| name.eq_ignore_ascii_case(unit.trim()))?;
    let factor = 1024_u64.checked_pow(u32::try_from(power).ok()?)?;
    number.parse::<u64>().ok()?.checked_mul(factor)
}
