//! The table itself.

use super::{Group, Kind, REQUIRED, Setting};

pub const GROUPS: &[Group] = &[
    group("", "For all runs.", None),
    group("network", "What programs may reach.", Some("network")),
    group("env", "Variables of programs.", Some("network")),
    group(
        "mount[]",
        "A folder that every program sees. Repeat the table for more.",
        Some("network"),
    ),
    group(
        "secret[]",
        "A secret that goes to its hosts alone; programs see a placeholder. Repeat the table for more.",
        Some("network"),
    ),
    group("packages", "Packages of programs.", Some("packages")),
    group(
        "warm",
        "What sandboxes wait with over MCP.",
        Some("packages"),
    ),
    group("container", "For Podman and Docker.", Some("isolation")),
    group(
        "limits.default",
        "What a program gets whose call asks for nothing else.",
        Some("limits"),
    ),
    group(
        "limits.max",
        "The most that a call may ask for.",
        Some("limits"),
    ),
    group("records", "What `hotcell logs` shows.", Some("records")),
    group("servers", "For all upstream MCP servers.", Some("servers")),
    group(
        "servers.NAME",
        "An upstream MCP server whose tools programs may call: a `command` or a `url`. Repeat the table with other names for more.",
        Some("servers"),
    ),
];

const fn group(table: &'static str, says: &'static str, topic: Option<&'static str>) -> Group {
    Group { table, says, topic }
}

const fn setting(
    key: &'static str,
    kind: Kind,
    default: &'static str,
    example: &'static str,
    says: &'static str,
) -> Setting {
    Setting {
        key,
        kind,
        default,
        example,
        over: &[],
        under: &[],
        says,
    }
}

impl Setting {
    const fn over(self, over: &'static [&'static str]) -> Self {
        Self { over, ..self }
    }

    const fn under(self, under: &'static [&'static str]) -> Self {
        Self { under, ..self }
    }
}

pub const SETTINGS: &[Setting] = &[
    setting(
        "auto_install",
        Kind::Bool,
        "false",
        "true",
        "whether a missing runtime is fetched without being asked for",
    ),
    setting(
        "save_tools",
        Kind::Bool,
        "true",
        "false",
        "whether programs may keep functions as tools",
    ),
    setting(
        "isolation",
        Kind::Text,
        "\"jail\"",
        "\"podman\"",
        "what makes the sandboxes: \"jail\", \"container\" (Podman, or Docker without it), \"podman\", \"docker\", \"gvisor\" or \"auto\"",
    ),
    setting(
        "isolation_of",
        Kind::Map,
        "{}",
        "{ token = \"gvisor\" }",
        "the same for some callers: \"local\" (this machine's shell and stdio), \"token\" (HTTP with the token), \"anonymous\" (HTTP without)",
    ),
    setting(
        "isolation_choices",
        Kind::List,
        "[]",
        "[\"gvisor\"]",
        "what a call of `run` over MCP may choose besides, by its parameter `isolation`",
    ),
    setting(
        "warm.packages",
        Kind::List,
        "[]",
        "[\"numpy\", \"matplotlib.pyplot\"]",
        "modules that are installed and imported in sandboxes which wait, from the start",
    ),
    setting(
        "container.image",
        Kind::Text,
        "none",
        "\"localhost/own:1\"",
        "an image that is used as it is, in place of one with this system's `/usr`",
    ),
    setting(
        "container.runtime",
        Kind::Text,
        "the engine's own",
        "\"runc\"",
        "the OCI runtime of the engine",
    ),
    setting(
        "container.user",
        Kind::Text,
        "one that nobody else has",
        "\"65534:65534\"",
        "the user and group of programs, by their numbers; not root",
    ),
    setting(
        "container.machine_idle",
        Kind::Text,
        "\"5m\"",
        "\"1m\"",
        "after how long without a program a Podman machine is stopped that hotcell has started",
    ),
    setting(
        "network.allow",
        Kind::Words,
        "\"all\"",
        "[\"*.example.com\"]",
        "what a run may ask for: \"none\", \"all\" or hosts",
    ),
    setting(
        "network.private",
        Kind::List,
        "[]",
        "[\"registry.example.com\"]",
        "of those, the hosts that may have a private address",
    ),
    setting(
        "network.transfer",
        Kind::Size,
        "\"1g\"",
        "\"256m\"",
        "bytes that a run may send, and as many that it may receive",
    ),
    setting(
        "env.pass",
        Kind::List,
        "[]",
        "[\"TEAM\"]",
        "variables of hotcell's own environment that every program gets",
    ),
    setting(
        "mount[].host",
        Kind::Path,
        REQUIRED,
        "\"/srv/data\"",
        "the folder",
    ),
    setting(
        "mount[].cell",
        Kind::Text,
        REQUIRED,
        "\"/data\"",
        "its path in the sandbox",
    ),
    setting(
        "mount[].write",
        Kind::Bool,
        "false",
        "true",
        "whether programs may write to it",
    ),
    setting(
        "secret[].name",
        Kind::Text,
        REQUIRED,
        "\"API_KEY\"",
        "the variable in which a program finds the placeholder",
    ),
    setting(
        "secret[].hosts",
        Kind::List,
        REQUIRED,
        "[\"api.example.com\"]",
        "the hosts that may receive the secret",
    ),
    setting(
        "secret[].env",
        Kind::Text,
        "none",
        "\"API_KEY\"",
        "hotcell's own variable that has the value; or `file`",
    ),
    setting(
        "secret[].file",
        Kind::Path,
        "none",
        "\"/run/secrets/api\"",
        "the file that has the value; or `env`",
    ),
    setting(
        "secret[].header",
        Kind::Text,
        "none",
        "\"Authorization: Bearer {secret}\"",
        "a header for requests that lack it",
    ),
    setting(
        "packages.pypi",
        Kind::Text,
        "PyPI",
        "\"https://mirror.example.com/simple\"",
        "where Python packages come from",
    )
    .over(&["HOTCELL_PYPI_INDEX"])
    .under(&["UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"]),
    setting(
        "packages.npm",
        Kind::Text,
        "the npm registry",
        "\"https://mirror.example.com/npm\"",
        "where JavaScript packages come from",
    )
    .over(&["HOTCELL_NPM_REGISTRY"])
    .under(&["NPM_CONFIG_REGISTRY", "npm_config_registry"]),
    setting(
        "packages.go",
        Kind::Text,
        "the Go proxy",
        "\"https://mirror.example.com/go\"",
        "where Go modules come from",
    )
    .over(&["HOTCELL_GO_PROXY"])
    .under(&["GOPROXY"]),
    setting(
        "packages.crates",
        Kind::Text,
        "the index of crates",
        "\"https://mirror.example.com/crates\"",
        "where Rust crates come from",
    )
    .over(&["HOTCELL_CRATES_INDEX"]),
    setting(
        "packages.folder",
        Kind::Path,
        "hotcell/packages in the folder for caches",
        "\"/srv/packages\"",
        "where installed packages are kept",
    )
    .over(&["HOTCELL_PACKAGES_DIR"]),
    setting(
        "packages.size",
        Kind::Size,
        "\"8g\"",
        "\"20g\"",
        "what they may take on disk; the least used are removed first",
    ),
    setting(
        "packages.offline",
        Kind::Bool,
        "false",
        "true",
        "whether nothing is fetched",
    )
    .over(&["HOTCELL_OFFLINE"]),
    setting(
        "packages.detect",
        Kind::Bool,
        "true",
        "false",
        "whether imports are installed that nobody named",
    ),
    setting(
        "packages.build",
        Kind::Bool,
        "false",
        "true",
        "whether packages may run code while they are installed, in a sandbox",
    ),
    setting(
        "packages.age",
        Kind::Whole,
        "90",
        "30",
        "days that a package must have existed to be installed without being named",
    ),
    setting(
        "limits.default.timeout",
        Kind::Amount,
        "\"30s\"",
        "\"60s\"",
        "time",
    ),
    setting(
        "limits.default.memory",
        Kind::Amount,
        "\"512m\"",
        "\"1g\"",
        "memory of all its processes and files",
    ),
    setting(
        "limits.default.processes",
        Kind::Amount,
        "128",
        "256",
        "processes and threads",
    ),
    setting("limits.default.cpus", Kind::Amount, "1", "2", "processors"),
    setting(
        "limits.max.timeout",
        Kind::Amount,
        "\"10m\"",
        "\"1h\"",
        "time",
    ),
    setting(
        "limits.max.memory",
        Kind::Amount,
        "\"16g\"",
        "\"8g\"",
        "memory of all its processes and files",
    ),
    setting(
        "limits.max.processes",
        Kind::Amount,
        "4096",
        "512",
        "processes and threads",
    ),
    setting("limits.max.cpus", Kind::Amount, "64", "4", "processors"),
    setting(
        "records.enabled",
        Kind::Bool,
        "true",
        "false",
        "whether runs are recorded",
    ),
    setting(
        "records.days",
        Kind::Whole,
        "30",
        "7",
        "how long records are kept",
    ),
    setting(
        "records.size",
        Kind::Size,
        "\"1g\"",
        "\"200m\"",
        "what they may take on disk; the oldest are removed first",
    ),
    setting(
        "servers.discover",
        Kind::Bool,
        "false",
        "true",
        "whether the servers of other programs on this machine are used too",
    ),
    setting(
        "servers.redact",
        Kind::Redact,
        "false",
        "[\"email\", \"phone\", \"card\"]",
        "personal data in whose place programs get tokens",
    ),
    setting(
        "servers.NAME.command",
        Kind::Text,
        "none",
        "\"npx\"",
        "the program to start",
    ),
    setting(
        "servers.NAME.args",
        Kind::List,
        "[]",
        "[\"-y\", \"some-server\"]",
        "its arguments",
    ),
    setting(
        "servers.NAME.env",
        Kind::Map,
        "{}",
        "{ REGION = \"eu\", KEY = \"${API_KEY}\" }",
        "variables for it, beside the few that every program needs",
    ),
    setting(
        "servers.NAME.pass",
        Kind::List,
        "[]",
        "[\"GITHUB_TOKEN\"]",
        "variables of hotcell's own environment for it",
    ),
    setting(
        "servers.NAME.cwd",
        Kind::Text,
        "none",
        "\"~/project\"",
        "the folder that it is started in",
    ),
    setting(
        "servers.NAME.url",
        Kind::Text,
        "none",
        "\"https://mcp.example.com/mcp\"",
        "the address of a server that runs elsewhere",
    ),
    setting(
        "servers.NAME.headers",
        Kind::Map,
        "{}",
        "{ X-Team = \"blue\" }",
        "headers for it",
    ),
    setting(
        "servers.NAME.bearer",
        Kind::Text,
        "none",
        "\"REMOTE_TOKEN\"",
        "the variable of hotcell's own environment that has its token",
    ),
    setting(
        "servers.NAME.transport",
        Kind::Text,
        "none",
        "\"http\"",
        "\"stdio\", \"http\" or \"sse\", where it cannot be told",
    ),
    setting(
        "servers.NAME.type",
        Kind::Text,
        "none",
        "\"http\"",
        "the same as `transport`, as other programs write it",
    ),
    setting(
        "servers.NAME.description",
        Kind::Text,
        "none",
        "\"issues and pull requests\"",
        "what it is for, which models are told",
    ),
    setting(
        "servers.NAME.disabled",
        Kind::Bool,
        "false",
        "true",
        "whether it is left out",
    ),
    setting(
        "servers.NAME.idle",
        Kind::Amount,
        "\"10m\"",
        "\"1h\"",
        "how long it is kept when nobody calls it",
    ),
    setting(
        "servers.NAME.allow",
        Kind::List,
        "[]",
        "[\"get_*\"]",
        "the tools that may be called; none named: all",
    ),
    setting(
        "servers.NAME.ask",
        Kind::List,
        "[]",
        "[\"create_*\"]",
        "the tools whose calls the user must agree to",
    ),
    setting(
        "servers.NAME.deny",
        Kind::List,
        "[]",
        "[\"delete_*\"]",
        "the tools that may not be called, whatever `allow` says",
    ),
    setting(
        "servers.NAME.calls",
        Kind::Whole,
        "none",
        "100",
        "calls of one run",
    ),
    setting(
        "servers.NAME.bytes",
        Kind::Amount,
        "none",
        "\"10m\"",
        "bytes of arguments and results of one run",
    ),
    setting(
        "servers.NAME.timeout",
        Kind::Amount,
        "none",
        "\"30s\"",
        "how long one call may take",
    ),
    setting(
        "servers.NAME.expose",
        Kind::List,
        "[]",
        "[\"get_issue\"]",
        "tools that MCP clients get as they are, beside `run`",
    ),
    setting(
        "servers.NAME.redact",
        Kind::Redact,
        "as for all servers",
        "true",
        "personal data in whose place programs get tokens",
    ),
];

/// Variables that no key of the file is about.
pub const VARIABLES: &[(&str, &str)] = &[
    (
        "HOTCELL_LOG",
        "logs to standard error: `error`, `warn`, `info`, `debug` or `trace`",
    ),
    (
        "HOTCELL_TOKEN",
        "the token of HTTP clients, instead of the one in a file",
    ),
    (
        "HOTCELL_DEBIAN_MIRROR",
        "where fetched runtimes come from that Debian has",
    ),
    ("HOTCELL_DEBIAN_SECURITY_MIRROR", "the same for its updates"),
    (
        "UV_PYTHON_INSTALL_MIRROR",
        "where fetched Pythons come from",
    ),
    ("NO_COLOR", "no colours in hotcell's own messages"),
];
