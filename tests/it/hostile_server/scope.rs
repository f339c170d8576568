//! What of the suite is driven against the server, and what is not, with the reason.

use serde_json::Value;

/// Cases of these names are for a server; the others are programs for a cell.
const OURS: [&str; 9] = [
    "ART-", "HTT-", "PRO-", "OUT-", "LEK-03", "LEK-07", "XRN-01", "XRN-02", "XRN-03",
];

/// Not driven here.
pub const EXCLUDED: &[(&str, &str)] = &[
    ("ART-09", "no archive is unpacked for a caller"),
    (
        "XRN-04",
        "a plain program: it runs in a cell in the other half of the suite",
    ),
    (
        "XRN-05",
        "needs sessions whose files outlive a run; none exist yet",
    ),
    (
        "XRN-08",
        "a plain program: it runs in a cell in the other half of the suite",
    ),
];

/// Driven, but the expectation also speaks of something that does not exist yet.
pub const PARTLY: &[(&str, &str)] = &[
    ("OUT-03", "no option strips escape sequences yet"),
    ("OUT-10", "files are served over MCP alone, never as pages"),
    (
        "HTT-06",
        "there is one token: the other principal is one without it",
    ),
    (
        "HTT-10",
        "lines that end with a bare LF are read, as RFC 9112 allows, and in that one way only",
    ),
    (
        "HTT-15",
        "HTTP/2 is not spoken at all, so its floods are refused at the first byte",
    ),
    (
        "XRN-02",
        "two servers stand for two principals; there is no audit log yet",
    ),
    ("XRN-03", "two runs of one client stand for one session"),
    (
        "XRN-10",
        "the sessions are those of legacy HTTP; no run has one yet",
    ),
];

/// All cases of the suite, as they are written.
pub fn all() -> Vec<Value> {
    serde_json::from_str(include_str!("../../attacks/attacks.json"))
        .expect("attacks.json is readable")
}

#[test]
fn every_case_for_a_server_is_driven_or_excluded_with_a_reason() {
    let driven: Vec<&str> = super::protocol::CASES
        .iter()
        .chain(super::http::CASES)
        .chain(super::output::CASES)
        .chain(super::crossing::CASES)
        .chain(super::artifacts::CASES)
        .map(|(id, _)| *id)
        .chain(["PRO-16"])
        .collect();
    let cases = all();
    let ids: Vec<&str> = cases
        .iter()
        .filter_map(|case| case["id"].as_str()?.get(..6))
        .collect();
    for id in &ids {
        let ours = OURS.iter().any(|start| id.starts_with(start)) || id.starts_with("XRN-");
        let times = driven.iter().filter(|driven| *driven == id).count();
        let excluded = EXCLUDED.iter().any(|(excluded, _)| excluded == id);
        let expected = usize::from(ours && !excluded);
        assert_eq!(times, expected, "{id} is driven {times} times");
    }
    let partly = PARTLY.iter().map(|(id, _)| id);
    let excluded = EXCLUDED.iter().map(|(id, _)| id);
    for id in driven.iter().chain(partly).chain(excluded) {
        assert!(ids.contains(id), "no case is called {id}");
    }
}
