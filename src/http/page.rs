//! The page at `/`: plain files that are part of the program, the same for everybody. They know nothing: what they show, they ask for at
//! `/mcp`, with the token.

use hyper::StatusCode;
use hyper::header::HeaderName;

use super::responses::{Answered, respond, set};

const FILES: [(&str, &str, &str); 3] = [
    (
        "/",
        "text/html; charset=utf-8",
        include_str!("../../web/index.html"),
    ),
    (
        "/page.css",
        "text/css; charset=utf-8",
        include_str!("../../web/page.css"),
    ),
    (
        "/page.js",
        "text/javascript; charset=utf-8",
        include_str!("../../web/page.js"),
    ),
];

/// SECURITY: what a program prints is shown there, next to the token. The page never makes HTML of a text; should it do so by mistake, nothing
/// in that runs, loads or sends anything.
const HEADERS: [(&str, &str); 6] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    ),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
];

/// The file of the page at `path`, if there is one.
pub fn find(path: &str) -> Option<Answered> {
    let (_, kind, text) = FILES.iter().find(|file| file.0 == path)?;
    let mut answer = respond(StatusCode::OK, kind, *text);
    for (name, value) in HEADERS {
        set(&mut answer, HeaderName::from_static(name), value);
    }
    Some(answer)
}
