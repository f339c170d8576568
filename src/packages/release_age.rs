//! Whether a package may be installed that nobody named: it must be known for a
//! while, and not nearly be another.
//!
//! SECURITY: who puts a package into a registry under a name that programs import by
//! mistake runs code in cells that do. A cell bears that; its answer may still lie.

use std::time::{SystemTime, UNIX_EPOCH};

use super::error::Refused;
use super::known_imports::lookalikes;
use super::registry::{RegistryClient, Unanswered};
use super::registry_page::first_upload;
use super::wishes::Found;

/// Asks the registry about a package that an import is probably called like.
///
/// `Err` if the registry cannot be asked.
pub async fn judge(
    found: &Found,
    upstream: &RegistryClient,
    least: u64,
) -> Result<Option<Refused>, String> {
    let name = found.package.name();
    let refuse = |why: String, candidates: Vec<String>| {
        Ok(Some(Refused {
            module: found.module.clone(),
            why,
            candidates,
        }))
    };
    let near = lookalikes(upstream.ecosystem, name);
    if let Some(first) = near.first() {
        let why = format!(
            "`{name}` is almost the name of `{first}`, so it is only installed if you name it"
        );
        return refuse(why, near.iter().map(|it| (*it).to_owned()).collect());
    }
    let page = match upstream.page(name, true).await {
        Ok(page) => page,
        Err(Unanswered::NotFound(_)) => {
            // What is a name in a program cannot have a hyphen.
            let other = Some(name.replace('_', "-")).filter(|it| it != name);
            let why = format!("the registry has no package `{name}`");
            return refuse(why, other.into_iter().collect());
        }
        Err(Unanswered::Unreachable(why)) => return Err(why),
        Err(refused) => return Err(refused.to_string()),
    };
    let Some(first) = first_upload(&page, upstream.ecosystem) else {
        let why = format!("the age of the package `{name}` is unknown");
        return refuse(why, vec![name.to_owned()]);
    };
    match days_since(&first) {
        Some(days) if days >= least => Ok(None),
        Some(days) => {
            let why = format!("the package `{name}` is only {days} days old");
            refuse(why, vec![name.to_owned()])
        }
        None => {
            let why = format!("the age of the package `{name}` is unknown");
            refuse(why, vec![name.to_owned()])
        }
    }
}

/// Whole days since a moment like `2011-10-12T21:40:01Z`; none if it is no date.
fn days_since(text: &str) -> Option<u64> {
    let mut numbers = text.get(..10)?.split('-').map(|it| it.parse::<i64>().ok());
    let (year, month, day) = (numbers.next()??, numbers.next()??, numbers.next()??);
    if !(1970..9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Howard Hinnant's count of days: years begin in March, so that the odd day comes last.
    let year = year - i64::from(month <= 2);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = year.div_euclid(400) * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year
        - 719_468;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs() / 86_400;
    now.checked_sub(u64::try_from(days).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_as_many_days_ago_as_the_calendar_says() {
        let today = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs()
            / 86_400;
        assert_eq!(days_since("1970-01-01T00:00:00Z"), Some(today));
        assert_eq!(days_since("2000-03-01"), Some(today - 11_017));
        assert_eq!(days_since("2024-02-29T01:02:03.4Z"), Some(today - 19_782));
        for text in [
            "",
            "yesterday",
            "2024-13-01",
            "2024-00-10",
            "9999-01-01",
            "1969-12-31",
            "20é4-01-01",
        ] {
            assert_eq!(days_since(text), None, "{text}");
        }
    }
}
