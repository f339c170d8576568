//! Strings that the kernel passes to a program: arguments and variables.

use super::RequestError;

/// The kernel's bound on one argument or variable, with its NUL.
pub(super) const LONGEST_STRING: usize = (128 << 10) - 1;

/// Whether a variable can be in a program's environment: `[A-Za-z_][A-Za-z0-9_]*`, no NUL.
pub fn check_variable(name: &str, value: &str) -> Result<(), RequestError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.is_empty() || name.as_bytes()[0].is_ascii_digit() || !name.bytes().all(plain) {
        return Err(RequestError::BadVariable(name.to_owned()));
    }
    let what = format!("variable `{name}`");
    check_string(&what, value)?;
    if name.len() + 1 + value.len() > LONGEST_STRING {
        return Err(RequestError::TooLong {
            what,
            most: LONGEST_STRING,
        });
    }
    Ok(())
}

pub(super) fn check_string(what: &str, text: &str) -> Result<(), RequestError> {
    if text.contains('\0') {
        return Err(RequestError::Nul {
            what: what.to_owned(),
        });
    }
    if text.len() > LONGEST_STRING {
        return Err(RequestError::TooLong {
            what: what.to_owned(),
            most: LONGEST_STRING,
        });
    }
    Ok(())
}
