//! The limits a caller asks for, and the ways to write them.
//!
//! Whether a limit may be that high is for the plan to say; here it only has to
//! be a number that means something.

use std::time::Duration;

use super::RequestError;

/// What the caller asked for; the rest is up to the plan's defaults.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct AskedLimits {
    pub timeout: Option<Duration>,
    /// Bytes.
    pub memory: Option<u64>,
    /// Processes and threads together.
    pub tasks: Option<u32>,
    pub cpus: Option<f64>,
    /// Bytes that both streams together may write before the run is ended.
    pub output: Option<u64>,
}

/// What the owner of a server, or of this machine, has decided about limits.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct OwnerLimits {
    /// What a program gets whose caller asks for nothing.
    pub default: AskedLimits,
    /// The most that a caller may ask for.
    pub max: AskedLimits,
}

impl OwnerLimits {
    /// These, and those of `other` where nothing is said here.
    pub fn or(self, other: Self) -> Self {
        Self {
            default: self.default.or(other.default),
            max: self.max.or(other.max),
        }
    }
}

impl AskedLimits {
    fn or(self, other: Self) -> Self {
        Self {
            timeout: self.timeout.or(other.timeout),
            memory: self.memory.or(other.memory),
            tasks: self.tasks.or(other.tasks),
            cpus: self.cpus.or(other.cpus),
            output: self.output.or(other.output),
        }
    }

    /// Nothing works with nothing: each limit is more than zero.
    pub(super) fn check(&self) -> Result<(), RequestError> {
        let bad = |value: &str, kind: Kind| Err(kind.refuse(value));
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return bad("0", DURATION);
        }
        if self.memory == Some(0) || self.output == Some(0) {
            return bad("0", SIZE);
        }
        if self.tasks == Some(0) {
            return bad("0", COUNT);
        }
        match self.cpus {
            Some(cpus) if !cpus.is_finite() || cpus <= 0.0 => bad(&cpus.to_string(), CPUS),
            _ => Ok(()),
        }
    }
}

/// What a number was to be, and how one writes it.
struct Kind(&'static str, &'static str);

const DURATION: Kind = Kind("a duration above zero", "`30s`, `1500ms` or `2m`");
const SIZE: Kind = Kind("a size above zero", "`512m` or `1g`");
const COUNT: Kind = Kind("a whole number above zero", "`16`");
const CPUS: Kind = Kind("a number of processors above zero", "`1.5`");

impl Kind {
    fn refuse(self, value: &str) -> RequestError {
        RequestError::BadNumber {
            value: value.to_owned(),
            expected: self.0,
            example: self.1,
        }
    }
}

/// `30` and `30s` are seconds; `ms`, `m` and `h` work too, and so do fractions.
pub fn parse_duration(text: &str) -> Result<Duration, RequestError> {
    let parsed = split(text).and_then(|(number, unit)| {
        let seconds = match unit.as_str() {
            "" | "s" => 1.0,
            "ms" => 0.001,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        // Too long for a Duration is also longer than any maximum.
        Some(Duration::try_from_secs_f64(number * seconds).unwrap_or(Duration::MAX))
    });
    positive(
        parsed.filter(|duration| !duration.is_zero()),
        text,
        DURATION,
    )
}

/// Bytes, or with `k`, `m`, `g`, `t` (also `kb`, `KiB`, ...) in steps of 1024.
pub fn parse_size(text: &str) -> Result<u64, RequestError> {
    let parsed = split(text).and_then(|(number, unit)| {
        let unit = unit
            .strip_suffix("ib")
            .or(unit.strip_suffix('b'))
            .unwrap_or(&unit);
        let power = ["", "k", "m", "g", "t"]
            .iter()
            .position(|known| *known == unit)?;
        // A conversion from a float stops at the type's ends, and so at any maximum.
        Some((number * 1024f64.powi(power as i32)) as u64)
    });
    positive(parsed.filter(|size| *size > 0), text, SIZE)
}

pub fn parse_count(text: &str) -> Result<u32, RequestError> {
    let digits = text.trim();
    let whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let parsed = whole.then(|| digits.parse().unwrap_or(u32::MAX));
    positive(parsed.filter(|count| *count > 0), text, COUNT)
}

pub fn parse_cpus(text: &str) -> Result<f64, RequestError> {
    let parsed = split(text).and_then(|(number, unit)| unit.is_empty().then_some(number));
    positive(parsed.filter(|cpus| *cpus > 0.0), text, CPUS)
}

/// A plain decimal number and the lower-cased unit after it. No signs, no
/// exponents, no `inf`: Rust's own parser takes more than people mean.
fn split(text: &str) -> Option<(f64, String)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    number
        .is_finite()
        .then(|| (number, unit.trim_start().to_ascii_lowercase()))
}

fn positive<T>(parsed: Option<T>, text: &str, kind: Kind) -> Result<T, RequestError> {
    parsed.ok_or_else(|| kind.refuse(text))
}

/// A size in the largest unit that shows it whole.
pub fn bytes(size: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units
        .iter()
        .find(|(_, shift)| size > 0 && size.is_multiple_of(1 << shift))
    {
        Some((unit, shift)) => format!("{} {unit}", size >> shift),
        None if size == 1 => "1 byte".to_owned(),
        None => format!("{size} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_seconds_unless_they_say_otherwise() {
        let good = [
            ("30", 30_000),
            ("30s", 30_000),
            ("1500ms", 1_500),
            ("1m", 60_000),
            ("1.5 m", 90_000),
            (".5", 500),
        ];
        for (text, millis) in good {
            assert_eq!(
                parse_duration(text).unwrap(),
                Duration::from_millis(millis),
                "{text}"
            );
        }
        assert_eq!(parse_duration(&"9".repeat(300)).unwrap(), Duration::MAX);
    }

    #[test]
    fn sizes_are_bytes_unless_they_say_otherwise() {
        let good = [
            ("4096", 4096),
            ("64k", 65_536),
            ("512m", 512 << 20),
            ("512MiB", 512 << 20),
            ("1.5GB", 3 << 29),
        ];
        for (text, bytes) in good {
            assert_eq!(parse_size(text).unwrap(), bytes, "{text}");
        }
        assert_eq!(parse_size(&"9".repeat(300)).unwrap(), u64::MAX);
    }

    #[test]
    fn counts_and_processors_are_plain_numbers() {
        assert_eq!(parse_count("128").unwrap(), 128);
        assert_eq!(parse_count("99999999999").unwrap(), u32::MAX);
        assert_eq!(parse_cpus("0.5").unwrap(), 0.5);
    }

    #[test]
    fn what_is_no_number_above_zero_is_refused() {
        for text in [
            "", " ", "0", "0.0s", "-1", "+1", "1e3", "inf", "nan", "s", "1x", "1 s s", "..",
            "1.2.3", "१", "1\0",
        ] {
            assert!(parse_duration(text).is_err(), "duration {text:?}");
            assert!(parse_size(text).is_err(), "size {text:?}");
            assert!(parse_cpus(text).is_err(), "cpus {text:?}");
            assert!(parse_count(text).is_err(), "count {text:?}");
        }
        assert!(parse_size("0.5").is_err(), "half a byte");
        assert!(parse_count("1.5").is_err());
        let error = parse_duration("soon\n").unwrap_err();
        assert_eq!(error.to_string(), "`soon\\n` is not a duration above zero");
        assert_eq!(
            error.hint().unwrap(),
            "Write it as in `30s`, `1500ms` or `2m`.".into()
        );
    }
}
