use std::path::PathBuf;
use std::time::Duration;

use super::*;
use crate::request::AskedLimits;
use crate::secret::Hidden;

fn read(text: &str) -> Result<Config, String> {
    let located = |mistake: Mistake| mistake.located(Path::new("config.toml"), text).to_string();
    Config::parse(Path::new("config.toml"), text).map_err(located)
}

#[test]
fn a_file_narrows_what_runs_may_ask_for() {
    let text = "[network]\nallow = ['*.a.test']\nprivate = ['b.a.test']\ntransfer = '1m'\n";
    let config = read(text).unwrap();
    let asked = |text: &str| config.egress(&Network::parse(text).unwrap());
    assert!(asked("none").unwrap().0.is_none());
    let (egress, notes) = asked("b.a.test").unwrap();
    let egress = egress.unwrap();
    assert_eq!(
        (egress.transfer, egress.private.len(), notes.len()),
        (1 << 20, 1, 0)
    );
    let (egress, notes) = asked("all").unwrap();
    assert_eq!(egress.unwrap().network.to_string(), "*.a.test");
    assert_eq!(
        notes,
        ["network: all was asked for; *.a.test was granted, which is all that is allowed"]
    );
    let beyond = asked("b.test").unwrap_err();
    assert_eq!(beyond.hint(), "Ask only for: *.a.test.");
}

#[test]
fn what_is_not_written_is_as_usual() {
    let config = read("").unwrap();
    assert_eq!(config.ceiling, Network::All);
    assert_eq!(config.packages, Packages::default());
    assert!(config.auto_install.is_none() && config.servers.is_empty());
    assert_eq!(
        read("auto_install = true").unwrap().auto_install,
        Some(true)
    );
    assert!(config.save_tools && !read("save_tools = false").unwrap().save_tools);
    let config = read("[packages]\nsize = '1g'\noffline = true\nfolder = '/p'").unwrap();
    let expected = Packages {
        size: Some(1 << 30),
        offline: true,
        folder: Some(PathBuf::from("/p")),
        ..Packages::default()
    };
    assert_eq!(config.packages, expected);
}

#[test]
fn records_are_kept_for_a_month_unless_their_owner_says_otherwise() {
    let usual = read("").unwrap().records;
    assert!(usual.enabled);
    assert_eq!(usual.time, Duration::from_secs(30 * 24 * 60 * 60));
    let text = "[records]\nenabled = false\ndays = 2\nsize = '10m'";
    let expected = Records {
        enabled: false,
        time: Duration::from_secs(2 * 24 * 60 * 60),
        bytes: 10 << 20,
    };
    assert_eq!(read(text).unwrap().records, expected);
}

#[test]
fn limits_are_numbers_or_texts_and_a_server_has_the_last_word() {
    let text = "[limits]\ndefault = { memory = '1g', timeout = 60 }\nmax = { cpus = 2.5, processes = '9' }";
    let config = read(text).unwrap();
    let of_file = OwnerLimits {
        default: AskedLimits {
            memory: Some(1 << 30),
            timeout: Some(Duration::from_secs(60)),
            ..AskedLimits::default()
        },
        max: AskedLimits {
            cpus: Some(2.5),
            tasks: Some(9),
            ..AskedLimits::default()
        },
    };
    assert_eq!(config.limits, of_file);
    let mut flags = OwnerLimits::default();
    flags.default.memory = Some(2 << 30);
    flags.max.timeout = Some(Duration::from_secs(3600));
    let limits = config.for_server(flags, []).unwrap().limits;
    assert_eq!(limits.default.memory, Some(2 << 30));
    assert_eq!(limits.default.timeout, of_file.default.timeout);
    assert_eq!(limits.max.timeout, flags.max.timeout);
    assert_eq!(limits.max.cpus, Some(2.5));
}

#[test]
fn a_mistake_is_told_with_its_line_and_its_key() {
    for (bad, told) in [
        (
            "[netwrok]\nallow = 'all'",
            "1: key `netwrok`: there is no such key; did you mean `network`?",
        ),
        (
            "[network]\n\nalow = 'all'",
            "3: key `network.alow`: there is no such key; did you mean `network.allow`?",
        ),
        (
            "[network]\nallow = 'ftp://a.test'",
            "2: key `network.allow`: `ftp://a.test` is not a host that can be granted",
        ),
        (
            "[network]\nallow = 5",
            "2: key `network.allow`: a word or a list of words was expected",
        ),
        (
            "[network]\nprivate = [\n  'a.test',\n  '*',\n]",
            "4: key `network.private`: `*` is not a host",
        ),
        (
            "[network]\ntransfer = 'much'",
            "2: key `network.transfer`: `much` is not a size above zero",
        ),
        (
            "auto_install = 'yes'",
            "1: key `auto_install`: invalid type: string \"yes\", expected a boolean",
        ),
        (
            "[packages]\npypi = 'https://a.test'\nsize = 'much'",
            "3: key `packages.size`: `much` is not a size above zero",
        ),
        (
            "[packages]\nfolder = 'here'",
            "2: key `packages.folder`: the path is not absolute",
        ),
        ("[packages]\nage = -1", "2: key `packages.age`: "),
        (
            "[records]\ndays = 0",
            "2: key `records.days`: it must be at least 1",
        ),
        (
            "[records]\nsize = 'much'",
            "2: key `records.size`: `much` is not a size above zero",
        ),
        ("[env]\npass = ['A', 'B=c']", "2: key `env.pass`: "),
        (
            "[[mount]]\nhost = '/none/such'\ncell = '/data'",
            "2: key `mount.host`: cannot read `/none/such`: No such file",
        ),
        (
            "[[mount]]\nhost = '/tmp'\ncell = '/etc'",
            "3: key `mount.cell`: `/etc` cannot be mounted: ",
        ),
        (
            "[[mount]]\nhost = '/tmp'\ncell = '/a'\n[[mount]]\nhost = '/tmp'\ncell = '/a'",
            "6: key `mount.cell`: `/a` cannot be mounted: ",
        ),
        (
            "[limits]\nmax = { memory = 'much' }",
            "2: key `limits.max.memory`: `much` is not a size above zero",
        ),
        (
            "[limits.default]\ncpus = 1\ntimeout = -1",
            "3: key `limits.default.timeout`: `-1` is not a duration above zero",
        ),
        (
            "[limits.max]\nprocesses = true",
            "2: key `limits.max.processes`: a number or a text",
        ),
        (
            "[limits]\nmost = 1",
            "2: key `limits.most`: there is no such key",
        ),
        (
            "[[mount]]\ncell = '/data'",
            "1: key `mount`: missing field `host`",
        ),
        (
            "[[secret]]\nname = 'A B'\nhosts = []",
            "2: key `secret.name`: ",
        ),
        (
            "[[secret]]\nname = 'A'\nhosts = []",
            "2: key `secret.name`: its table needs one of `env` and `file`",
        ),
        (
            "[[secret]]\nname = 'A'\nhosts = []\nenv = 'X'\nheader = 'X'",
            "5: key `secret.header`: it is not ",
        ),
        ("servers = 5", "1: key `servers`: a table was expected"),
        (
            "[servers]\ndiscover = 'yes'",
            "2: key `servers.discover`: `true` or `false` was expected",
        ),
        ("allow\n", "1: "),
    ] {
        let error = read(bad).unwrap_err();
        assert!(
            error.starts_with(&format!("config.toml:{told}")),
            "{bad:?}: {error}"
        );
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn a_mistake_in_an_entry_is_the_matter_of_that_server() {
    let others = "[servers.a]\ncommand = 'x'\n[servers.z]\nurl = 'https://z.test/mcp'\n";
    for (bad, told) in [
        (
            "command = ''",
            "5: key `servers.b`: it has no `command` and no `url`",
        ),
        ("", "5: key `servers.b`: it has no `command` and no `url`"),
        (
            "command = 'x'\nurl = 'https://b.test'",
            "5: key `servers.b`: it has a `command` and a `url`",
        ),
        (
            "command = 'x'\nenv = { 'A=b' = 'c' }",
            "5: key `servers.b`: ",
        ),
        (
            "command = 5",
            "6: key `servers.b.command`: invalid type: integer",
        ),
        (
            "comand = 'x'",
            "6: key `servers.b.comand`: there is no such key; did you mean `servers.b.command`?",
        ),
        (
            "url = 'nowhere'",
            "5: key `servers.b`: its `url` is not one: ",
        ),
        (
            "url = 'file:///etc'",
            "5: key `servers.b`: its `url` is not one of HTTP",
        ),
        (
            "url = 'https://b.test'\ntransport = 'pigeon'",
            "7: key `servers.b.transport`: `http` or `sse` was expected",
        ),
        ("command = 'x'\nidle = 'long'", "7: key `servers.b.idle`: "),
        (
            "url = 'https://b.test'\nheaders = { 'A B' = 'c' }",
            "5: key `servers.b`: `A B` is not a header",
        ),
    ] {
        let config = read(&format!("{others}[servers.b]\n{bad}\n")).unwrap();
        let names: Vec<&str> = config.servers.iter().map(|it| it.0.as_str()).collect();
        assert_eq!(names, ["a", "b", "z"], "{bad}");
        let reach = |at: usize| &config.servers[at].1.reach;
        let Reach::Mistake(why) = reach(1) else {
            panic!("{bad}: {:?}", reach(1));
        };
        assert!(
            why.starts_with(&format!("config.toml:{told}")),
            "{bad}: {why}"
        );
        assert!(matches!(reach(0), Reach::Program(_)) && matches!(reach(2), Reach::Remote(_)));
    }
    let none = read("[servers.a]\ncommand = 'x'\ndisabled = true").unwrap();
    assert!(none.servers.is_empty());
}

#[test]
fn what_a_server_must_not_tell_is_known_and_is_not_printed() {
    let text = "[servers.a]\nurl = 'https://me:password-1@a.test/mcp?api_key=query-secret&page=harmless-page'\n\
        headers = { Authorization = 'Bearer header-token', Accept = 'x/y', 'X-Plain' = 'harmless-header' }";
    let config = read(text).unwrap();
    let server = &config.servers[0].1;
    let secrets: Vec<&str> = server.secrets.iter().map(Hidden::reveal).collect();
    assert_eq!(secrets, ["password-1", "query-secret", "header-token"]);
    let Reach::Remote(remote) = &server.reach else {
        panic!("{server:?}");
    };
    let names: Vec<&str> = remote.headers.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(names, ["authorization", "x-plain"]);
    assert!(!format!("{:?}", server.secrets).contains("token"));
}
