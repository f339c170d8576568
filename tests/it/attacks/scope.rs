//! What of the suite is driven here, and what is not, with the reason. Nothing is
//! left out in silence: a test compares these lists with the file.

use super::case::Case;

/// Cases not driven, by the thing they need.
pub const EXCLUDED: &[(&str, &[&str])] = &[
    (
        "driven against the HTTP server by `tests/it/hostile_server`",
        &[
            "HTT-01-no-bearer",
            "HTT-02-malformed-bearer",
            "HTT-03-foreign-origin",
            "HTT-04-dns-rebinding-host",
            "HTT-05-cors-and-simple-post",
            "HTT-06-session-of-other-principal",
            "HTT-07-session-id-guessing",
            "HTT-08-slowloris",
            "HTT-09-oversize-bodies",
            "HTT-10-request-smuggling",
            "HTT-11-header-flood",
            "HTT-12-path-and-method-tricks",
            "HTT-13-protocol-version-and-accept",
            "HTT-14-unsafe-start-options",
            "HTT-15-http2-floods",
            "HTT-18-compressed-body-bomb",
        ],
    ),
    (
        "driven against the server on stdio by `tests/it/hostile_server`",
        &[
            "PRO-01-malformed-json",
            "PRO-02-deep-nesting",
            "PRO-03-hostile-ids",
            "PRO-04-duplicate-inflight-ids",
            "PRO-05-wrong-argument-types",
            "PRO-06-lifecycle-order",
            "PRO-07-batch-bomb",
            "PRO-08-cancellation-races",
            "PRO-09-notification-flood",
            "PRO-10-byte-level-stdin",
            "PRO-11-duplicate-keys-surrogates",
            "PRO-15-resource-uri-and-cursor",
            "PRO-16-structure-aware-fuzz",
        ],
    ),
    (
        "driven against a local index by `tests/it/packages`",
        &[
            "PKG-01-sdist-setup-py",
            "PKG-02-npm-postinstall",
            "PKG-03-package-argument-injection",
            "PKG-04-workspace-index-redirect",
            "PKG-05-cache-poisoning-across-tenants",
            "PKG-06-typosquat-and-dependency-confusion",
            "PKG-07-wheel-slip-and-pth",
            "PKG-11-registry-bombs",
        ],
    ),
    (
        "needs installs of other ecosystems than PyPI's and npm's",
        &["PKG-08-build-rs-and-friends"],
    ),
    (
        "driven against upstream servers by `tests/it/servers/attacks.rs`",
        &[
            "MCP-01-ungranted-server-or-tool",
            "MCP-02-recursion-into-self",
            "MCP-03-hostile-upstream-responses",
            "MCP-04-argument-injection",
            "MCP-05-upstream-env-secrets",
            "MCP-06-call-flood",
            "MCP-07-bridge-token-replay",
            "MCP-08-tool-poisoning-and-rug-pull",
            "MCP-09-token-passthrough",
            "MCP-11-upstream-sampling-elicitation",
        ],
    ),
    (
        "driven against servers by `tests/it/hostile_server`",
        &[
            "XRN-02-other-principal-session",
            "XRN-09-warm-worker-pollution",
            "XRN-10-session-id-entropy-and-injection",
        ],
    ),
    (
        "needs sessions whose files outlive a run",
        &["XRN-05-planted-symlink-fifo-before-next-run"],
    ),
    (
        "needs the artifact store and its readers",
        &[
            "ART-01-file-tool-path-traversal",
            "ART-03-artifact-toctou-race",
            "ART-09-archive-slip-and-bombs",
        ],
    ),
];

/// Cases that run here without a network, and once more with the grant that they mean to
/// fool in `network::hostile`, where the world beyond it looks on.
pub const GRANTED: &[&str] = &["NET-02", "NET-04", "NET-11", "NET-14"];

/// Cases that are driven but whose expectation also speaks of a part that does not
/// exist yet; that half is asserted when the part is built.
pub const PARTLY: &[(&str, &str)] = &[
    (
        "FSE-09",
        "no option sets the working directory: the names of `--file` stand in for it",
    ),
    ("OUT-03", "no option strips escape sequences yet"),
    ("OUT-10", "nothing is collected or served yet"),
    (
        "XRN-03",
        "two runs at the command line stand in for one session",
    ),
    (
        "LEK-07",
        "the token is in a host path on the command line; secrets of the configuration are in `network::secrets`",
    ),
    (
        "ART-02",
        "nothing is collected yet: the answer is in time, valid and without host content",
    ),
    ("ART-04", "as ART-02"),
    ("ART-05", "as ART-02"),
    ("ART-06", "as ART-02"),
    ("ART-07", "as ART-02"),
    ("ART-08", "as ART-02"),
    ("ART-12", "as ART-02"),
];

/// Cases in words that `steps` carries out at the command line.
pub const STEPS: &[&str] = &["FSE-09", "LEK-07", "XRN-01", "XRN-03"];

/// Programs that may end without a word on standard output; their outcome, which
/// `verdict` and `prose` check, is the sign that they ran.
pub const SILENT: &[&str] = &[
    "RES-01", "RES-02", "RES-03", "RES-05", "RES-07", "RES-10", "RES-11", "RES-15", "PRC-02",
    "PRC-03",
];

/// Cases that run once more without `--json`: their processes hold the pipes longer
/// than the program lives, which the two ways to read them see differently.
pub const STREAMED: &[&str] = &["RES-01", "RES-02", "RES-10", "PRC-01", "PRC-02", "PRC-08"];

const SYSFS: &str = "the engine shows what the kernel says of its devices, read-only and in a network namespace of its own";
/// What does not hold behind other walls, by the beginning of what the driver says then, with the reason.
pub const LESS: &[(&str, &str, &str, &str)] = &[
    (
        "podman",
        "INF-04",
        "no server path appears",
        "the table of mounts tells where a bind mount comes from, as that of our own binary",
    ),
    (
        "podman",
        "FSE-07",
        "/dev holds only the plain devices",
        "the engine makes its own: a multiplexer of its own terminals and a folder for queues of its own are there too",
    ),
    (
        "podman",
        "FSE-13",
        "never:BREACH: BREACH suid ok on",
        "the engine's mounts allow it, and no program can gain privileges",
    ),
    ("podman", "FSE-13", "never:BREACH: BREACH sysfs", SYSFS),
    ("podman", "INF-03", "never:BREACH: BREACH /sys/", SYSFS),
    (
        "podman",
        "INF-08",
        "the host's memory is hidden",
        "an engine can hide a file of /proc and not change it",
    ),
    (
        "gvisor",
        "INF-02",
        "never:BREACH: BREACH /proc/cmdline",
        "it is gVisor's own, and the same everywhere",
    ),
];

/// What did not hold, without what is known not to behind these walls. That is said aloud.
pub fn without_known(walls: Option<&'static str>, case: &Case, failed: Vec<String>) -> Vec<String> {
    let known = |text: &str| {
        let mut here = LESS.iter().filter(|it| Some(it.0) == walls);
        here.find(|it| case.id.starts_with(it.1) && text.starts_with(it.2))
    };
    let mut rest = Vec::new();
    for text in failed {
        match known(&text) {
            Some((walls, _, _, why)) => {
                super::say(&format!("{} in {walls}: {text}: {why}", case.id));
            }
            None => rest.push(text),
        }
    }
    rest
}

/// What becomes of a case here.
#[derive(Debug, PartialEq, Eq)]
pub enum Scope {
    Program,
    Steps,
    Excluded,
}

/// Sorts a case by the lists above, or says that no list knows it.
pub fn of(case: &Case) -> Option<Scope> {
    let excluded = EXCLUDED
        .iter()
        .any(|(_, ids)| ids.contains(&case.id.as_str()));
    let steps = STEPS.contains(&case.short());
    let program = ["python", "bash", "c", "cpp", "javascript"].contains(&case.language.as_str());
    match (excluded, steps, program) {
        (true, false, _) => Some(Scope::Excluded),
        (false, true, false) => Some(Scope::Steps),
        (false, false, true) => Some(Scope::Program),
        _ => None,
    }
}

#[test]
fn every_case_is_driven_or_excluded_with_a_reason() {
    let cases = super::case::all();
    for case in &cases {
        assert!(of(case).is_some(), "{} is in no list, or in two", case.id);
    }
    let known = |id: &str| cases.iter().any(|case| case.id == id || case.short() == id);
    let listed = EXCLUDED.iter().flat_map(|(_, ids)| ids.iter());
    let partly = PARTLY.iter().map(|(id, _)| id);
    for id in listed
        .chain(partly)
        .chain(STEPS)
        .chain(GRANTED)
        .chain(SILENT)
        .chain(STREAMED)
    {
        assert!(known(id), "no case is called {id}");
    }
    // A program may be left out only for the surface it attacks.
    let surfaces = [
        "http",
        "protocol",
        "package-install",
        "mcp-proxy",
        "artifact",
    ];
    for case in cases
        .iter()
        .filter(|case| of(case) == Some(Scope::Excluded))
    {
        let words = case.language == "harness";
        assert!(
            words || surfaces.contains(&case.category.as_str()),
            "{} is a plain program",
            case.id
        );
    }
}
