//! PAX records: `"%d %s=%s\n"`, the length counting itself.

use crate::entry::Mtime;

pub(super) fn record(key: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + digits(length) {
        length = rest + digits(length);
    }
    out.extend_from_slice(length.to_string().as_bytes());
    out.push(b' ');
    out.extend_from_slice(key);
    out.push(b'=');
    out.extend_from_slice(value);
    out.push(b'\n');
}

fn digits(number: usize) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// The first record, and what follows it.
pub(super) fn split(records: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = records.iter().position(|byte| *byte == b' ')?;
    let length: usize = std::str::from_utf8(&records[..space]).ok()?.parse().ok()?;
    let record = records.get(space + 1..length)?.strip_suffix(b"\n")?;
    let equals = record.iter().position(|byte| *byte == b'=')?;
    Some((&record[..equals], &record[equals + 1..], &records[length..]))
}

/// Seconds and a fraction without trailing zeros; before 1970 the fraction counts away from zero.
pub(super) fn time(mtime: Mtime) -> String {
    let (seconds, nanos) = (i128::from(mtime.seconds), i128::from(mtime.nanos));
    let total = seconds * 1_000_000_000 + nanos;
    let sign = if total < 0 { "-" } else { "" };
    let total = total.unsigned_abs();
    let (seconds, nanos) = (total / 1_000_000_000, total % 1_000_000_000);
    if nanos == 0 {
        return format!("{sign}{seconds}");
    }
    let fraction = format!("{nanos:09}");
    format!("{sign}{seconds}.{}", fraction.trim_end_matches('0'))
}

pub(super) fn parse_time(text: &str) -> Option<Mtime> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let (seconds, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if fraction.len() > 9 {
        return None;
    }
    let seconds: u64 = seconds.parse().ok()?;
    let nanos: u32 = format!("{fraction:0<9}").parse().ok()?;
    let total = i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    let total = if negative { -total } else { total };
    let seconds = i64::try_from(total.div_euclid(1_000_000_000)).ok()?;
    Some(Mtime { seconds, nanos: u32::try_from(total.rem_euclid(1_000_000_000)).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_records_length_counts_itself() {
        for (key, value, whole) in [
            ("a", "b".to_owned(), "6 a=b\n".to_owned()),
            ("mtime", "1".to_owned(), "11 mtime=1\n".to_owned()),
            ("k", "v".repeat(93), format!("99 k={}\n", "v".repeat(93))),
            ("k", "v".repeat(94), format!("101 k={}\n", "v".repeat(94))),
        ] {
            let mut out = Vec::new();
            record(key.as_bytes(), value.as_bytes(), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), whole);
        }
    }

    #[test]
    fn times_before_1970_count_away_from_zero() {
        for (seconds, nanos, text) in
            [(0, 0, "0"), (1, 5, "1.000000005"), (-1, 500_000_000, "-0.5"), (-2, 0, "-2"), (-2, 1, "-1.999999999")]
        {
            let mtime = Mtime { seconds, nanos };
            assert_eq!((time(mtime).as_str(), parse_time(text)), (text, Some(mtime)));
        }
    }
}
