//! Sizes as people write them.

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
