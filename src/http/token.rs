//! The bearer token: made once, and stored in a file that only its owner can read.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use subtle::ConstantTimeEq;

/// Fewer characters than this can be guessed over the network.
const SHORTEST: usize = 16;
/// Wrong tokens that one address may show in a [`WINDOW`].
const FAILURES: u32 = 20;
const WINDOW: Duration = Duration::from_secs(60);
const ADDRESSES: usize = 1024;

/// A secret that its bearer may use the server with. Not printed by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("the token is too short: it needs at least {SHORTEST} visible ASCII characters")]
    Weak,
    #[error("the token file {} can be read by others", .0.display())]
    Exposed(PathBuf),
    #[error("cannot use the token file {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
}

impl TokenError {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Weak => Some("Leave it out to have one created.".to_owned()),
            Self::Exposed(path) => Some(format!("Run `chmod 600 {}`.", path.display())),
            Self::File { .. } => None,
        }
    }
}

impl Token {
    pub fn parse(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        if text.len() < SHORTEST || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::Weak);
        }
        Ok(Self(text.to_owned()))
    }

    /// One that nobody has seen: 256 random bits.
    pub fn random() -> Self {
        Self(format!(
            "hotcell-{}",
            crate::random::encode(&crate::random::random::<32>())
        ))
    }

    /// The token in `path`, which is made if it is not there.
    pub fn at(path: &Path) -> Result<Self, TokenError> {
        let fail = |source| TokenError::File {
            path: path.to_owned(),
            source,
        };
        match Self::make(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Self::read(path),
            made => made.map_err(fail),
        }
    }

    /// The token in a file that must be there.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let fail = |source| TokenError::File {
            path: path.to_owned(),
            source,
        };
        let mode = fs::metadata(path).map_err(fail)?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(TokenError::Exposed(path.to_owned()));
        }
        Self::parse(&fs::read_to_string(path).map_err(fail)?)
    }

    fn make(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
        }
        // Made whole beside it first, so that a reader never finds half of one.
        let token = Self::random();
        let fresh = path.with_extension(crate::random::random_name());
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&fresh)?;
        let written = writeln!(file, "{}", token.0).and_then(|()| fs::hard_link(&fresh, path));
        fs::remove_file(&fresh)?;
        written.map(|()| token)
    }

    /// The secret itself, to be shown to its owner.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether the request bears this token, in exactly one `Authorization` header.
    pub fn is_borne_by(&self, headers: &HeaderMap) -> bool {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return false;
        };
        let Some((scheme, shown)) = value.to_str().ok().and_then(|text| text.split_once(' '))
        else {
            return false;
        };
        // SECURITY: the time this takes must not tell how much of a guess was right.
        scheme.eq_ignore_ascii_case("bearer")
            && bool::from(shown.as_bytes().ct_eq(self.0.as_bytes()))
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

/// Who has shown wrong tokens lately.
#[derive(Default)]
pub struct Failures(Mutex<HashMap<IpAddr, (Instant, u32)>>);

impl Failures {
    /// Counts one more; true when it was one too many.
    pub fn count(&self, address: IpAddr) -> bool {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() >= ADDRESSES {
            failures.retain(|_, (since, _)| since.elapsed() < WINDOW);
        }
        if failures.len() >= ADDRESSES && !failures.contains_key(&address) {
            return true;
        }
        let entry = failures.entry(address).or_insert((Instant::now(), 0));
        if entry.0.elapsed() >= WINDOW {
            *entry = (Instant::now(), 0);
        }
        entry.1 = entry.1.saturating_add(1);
        entry.1 > FAILURES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn borne(token: &Token, headers: &[&str]) -> bool {
        let mut map = HeaderMap::new();
        for value in headers {
            map.append(AUTHORIZATION, value.parse().unwrap());
        }
        token.is_borne_by(&map)
    }

    #[test]
    fn only_the_exact_token_in_one_header_passes() {
        let token = Token::random();
        let right = format!("Bearer {}", token.reveal());
        assert!(borne(&token, &[&right]));
        let half = &right[..right.len() / 2];
        let longer = format!("{right}x");
        let two = format!("Bearer  {}", token.reveal());
        let basic = format!("Basic {}", token.reveal());
        for wrong in [
            "Bearer wrong",
            half,
            &longer,
            &two,
            &basic,
            token.reveal(),
            "Bearer ",
        ] {
            assert!(!borne(&token, &[wrong]), "{wrong}");
            assert!(!borne(&token, &[wrong, &right]));
            assert!(!borne(&token, &[&right, wrong]));
        }
        assert!(!borne(&token, &[]));
        assert!(!borne(&token, &[&right, &right]));
    }

    #[test]
    fn a_token_is_made_once_and_read_by_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/token");
        let made = Token::at(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(Token::at(&path).unwrap(), made);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(Token::at(&path), Err(TokenError::Exposed(_))));
        for weak in ["", "changeme", "short token with spaces"] {
            assert!(matches!(Token::parse(weak), Err(TokenError::Weak)));
        }
    }

    #[test]
    fn an_address_that_fails_often_is_told_to_wait() {
        let failures = Failures::default();
        let address: IpAddr = [127, 0, 0, 1].into();
        assert!((0..FAILURES).all(|_| !failures.count(address)));
        assert!(failures.count(address));
        assert!(!failures.count([127, 0, 0, 2].into()));
    }
}
