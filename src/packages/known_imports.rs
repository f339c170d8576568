//! Which package an import comes from: `packages/*.csv`, rows of our own.

use super::Ecosystem;

const PYPI: &str = include_str!("../../packages/pypi.csv");
const CRATES: &str = include_str!("../../packages/crates.csv");
const PYTHON_OWN: &str = include_str!("../../packages/python-own.txt");
const NODE_OWN: &str = include_str!("../../packages/node-own.txt");
const RUST_OWN: &str = include_str!("../../packages/rust-own.txt");

/// What is known about an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// It comes from this package.
    Package(&'static str),
    /// No package has it: another system's own, or a name shared by many packages.
    Never,
}

/// Whether a module comes with the language itself.
pub fn is_own(ecosystem: Ecosystem, module: &str) -> bool {
    let own = match ecosystem {
        Ecosystem::Pypi => PYTHON_OWN,
        Ecosystem::Npm => NODE_OWN,
        Ecosystem::Crates => RUST_OWN,
        // What is not Go's own begins with a host.
        Ecosystem::Go => return !module.split('/').next().is_some_and(|it| it.contains('.')),
    };
    own.lines().any(|line| line == module)
}

/// The longest part of a dotted name that has a row, and what the row says.
pub fn find(ecosystem: Ecosystem, module: &str) -> Option<(&str, Known)> {
    let mut part = module;
    loop {
        if let Some((_, package)) = rows(ecosystem).find(|(import, _)| *import == part) {
            let known = match package {
                "" => Known::Never,
                package => Known::Package(package),
            };
            return Some((part, known));
        }
        part = part.rsplit_once('.')?.0;
    }
}

/// The packages whose own name or import is one slip of a finger away.
pub fn lookalikes(ecosystem: Ecosystem, name: &str) -> Vec<&'static str> {
    let name = super::requirement::normal(name);
    // With three letters everything looks like everything.
    if name.len() < 4 {
        return Vec::new();
    }
    let near = |other: &str| {
        let other = super::requirement::normal(other);
        other != name && is_one_slip(name.as_bytes(), other.as_bytes())
    };
    let mut found: Vec<&str> = rows(ecosystem)
        .filter(|(import, package)| !package.is_empty() && (near(import) || near(package)))
        .map(|(_, package)| package)
        .collect();
    found.dedup();
    found
}

/// Every row: import, package.
pub fn rows(ecosystem: Ecosystem) -> impl Iterator<Item = (&'static str, &'static str)> {
    let text = match ecosystem {
        Ecosystem::Pypi => PYPI,
        Ecosystem::Crates => CRATES,
        // An import is its package's name.
        Ecosystem::Npm | Ecosystem::Go => "",
    };
    text.lines().filter_map(|line| line.split_once(','))
}

/// One letter more, less, other, or two neighbours swapped.
fn is_one_slip(a: &[u8], b: &[u8]) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let same = short.iter().zip(long).take_while(|(a, b)| a == b).count();
    let (short, long) = (&short[same..], &long[same..]);
    match long.len() - short.len() {
        0 => {
            let swapped = |a: &[u8], b: &[u8]| {
                a.len() >= 2 && a[0] == b[1] && a[1] == b[0] && a[2..] == b[2..]
            };
            short.get(1..) == long.get(1..) || swapped(short, long)
        }
        1 => *short == long[1..],
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_is_found_by_its_longest_known_part() {
        let find = |module| find(Ecosystem::Pypi, module);
        assert_eq!(
            find("sklearn.svm"),
            Some(("sklearn", Known::Package("scikit-learn")))
        );
        assert_eq!(
            find("google.cloud.storage.blob"),
            Some((
                "google.cloud.storage",
                Known::Package("google-cloud-storage")
            ))
        );
        assert_eq!(find("google.cloud.nothing"), Some(("google", Known::Never)));
        assert_eq!(find("js"), Some(("js", Known::Never)));
        assert_eq!(find("nothing_of_ours"), None);
    }

    #[test]
    fn the_table_is_large_and_each_import_is_in_it_once() {
        let mut imports: Vec<&str> = rows(Ecosystem::Pypi).map(|row| row.0).collect();
        assert!(imports.len() >= 300, "{}", imports.len());
        assert!(
            imports.is_sorted(),
            "sorted, so that a change is easy to read"
        );
        let all = imports.len();
        imports.dedup();
        assert_eq!(imports.len(), all);
        for (import, package) in rows(Ecosystem::Pypi).filter(|row| !row.1.is_empty()) {
            assert!(
                super::super::Requirement::parse(package, Ecosystem::Pypi)
                    .is_ok_and(|it| it.is_bare()),
                "{package}"
            );
            assert!(!is_own(Ecosystem::Pypi, import), "{import} is Python's own");
        }
    }

    #[test]
    fn every_crate_of_the_table_is_one_and_its_name_is_what_programs_call_it() {
        let all: Vec<_> = rows(Ecosystem::Crates).collect();
        assert!(all.len() >= 100 && all.is_sorted(), "{}", all.len());
        for (import, package) in all {
            let parsed = super::super::Requirement::parse(package, Ecosystem::Crates);
            assert_eq!(parsed.unwrap().name().replace('-', "_"), import);
            assert!(!is_own(Ecosystem::Crates, import), "{import}");
        }
    }

    #[test]
    fn a_name_that_is_nearly_another_is_noticed() {
        for (name, meant) in [
            ("reqeusts", "requests"),
            ("nunpy", "numpy"),
            ("panda", "pandas"),
            ("beautifulsoup", "beautifulsoup4"),
        ] {
            assert!(lookalikes(Ecosystem::Pypi, name).contains(&meant), "{name}");
        }
        for name in ["requests", "wholly_different", "abc"] {
            assert_eq!(
                lookalikes(Ecosystem::Pypi, name),
                Vec::<&str>::new(),
                "{name}"
            );
        }
    }
}
