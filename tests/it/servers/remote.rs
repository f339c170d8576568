//! Servers at an address: over streamable HTTP and over the older transport, witnessed by the server's own log.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::{KEY, run, serve, structured};
use crate::support::{Hotcell, PATIENCE, Running, anyone, eventually, everyone};

const CONFIG: &str = "home/.config/hotcell/config.toml";

/// A server that runs as long as this lives.
pub struct Web {
    _running: Running,
    pub port: u16,
    log: std::path::PathBuf,
}

impl Web {
    pub fn start(hotcell: &Hotcell, name: &str) -> Self {
        let script = hotcell.write("web.py", include_str!("../../servers/web.py"));
        let log = hotcell.write(&format!("{name}.log"), "");
        let port = hotcell.place(format!("{name}.port"));
        let mut command = Command::new("python3");
        hotcell.dress(&mut command);
        command
            .env("WEB_TOKEN", KEY)
            .arg(script)
            .arg(&port)
            .arg(&log);
        // In a folder that it may write to.
        command.current_dir(hotcell.home());
        hotcell.make_folder("");
        let running = Running::start(&mut command);
        let mut number = None;
        eventually(PATIENCE, || {
            number = fs::read_to_string(&port)
                .ok()
                .and_then(|it| it.parse().ok());
            number.is_some()
        });
        Self {
            _running: running,
            port: number.expect("its port"),
            log,
        }
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("its log")
    }
}

#[test]
fn a_server_over_http_is_called_like_any_other() {
    for hotcell in everyone() {
        let web = Web::start(&hotcell, "home/web");
        let at = format!("http://127.0.0.1:{}", web.port);
        let ways = [
            format!("url = '{at}/mcp'\nbearer = 'OWN_CLOCK_KEY'"),
            format!(
                "url = '{at}/mcp'\nheaders = {{ Authorization = 'Bearer ${{OWN_CLOCK_KEY}}' }}\ntransport = 'http'"
            ),
            format!("url = '{at}/sse'\nbearer = 'OWN_CLOCK_KEY'\ntype = 'sse'"),
            format!("url = '{at}/sse'\nbearer = 'OWN_CLOCK_KEY'"),
        ];
        for way in ways {
            hotcell.write(CONFIG, format!("[servers.web]\n{way}\n"));
            let code = r#"
import asyncio, time
print(web.say(text="né"), len(web.large(bytes=1_000_000)))
print("sesame" in str(web.headers()), web.headers()["user-agent"].startswith("hotcell/"))
async def three():
    begun = time.monotonic()
    await asyncio.gather(*[web.wait(seconds=1) for _ in range(3)])
    return time.monotonic() - begun < 2.5
print(asyncio.run(three()))
try:
    web.nothing()
except ToolError as error:
    print(error.kind)
"#;
            let result = run(&hotcell, &["-l", "python", "-c", code]);
            let expected = "né 1000000\nFalse True\nTrue\nunknown_tool\n";
            assert_eq!(result["stdout"], expected, "{way}: {result}");
            assert!(!result.to_string().contains(KEY), "{result}");
            assert!(web.log().contains(r#"call say {"text": "n\u00e9"}"#));
        }
    }
}

#[test]
fn a_server_that_refuses_or_is_not_there_says_so_and_no_token_is_seen() {
    let Some(hotcell) = anyone() else { return };
    let web = Web::start(&hotcell, "home/web");
    let other = Web::start(&hotcell, "home/other");
    let at = format!("http://127.0.0.1:{}", web.port);
    // Control: what is refused below works with the token at its own address.
    let config = format!(
        "[servers.good]\nurl = '{at}/mcp'\nbearer = 'OWN_CLOCK_KEY'\n\
         [servers.stranger]\nurl = '{at}/mcp'\nheaders = {{ Authorization = 'Bearer wrong-token-987' }}\n\
         [servers.nameless]\nurl = '{at}/mcp'\n\
         [servers.elsewhere]\nurl = '{at}/elsewhere?{}'\nbearer = 'OWN_CLOCK_KEY'\ntransport = 'http'\n\
         [servers.nobody]\nurl = 'http://127.0.0.1:9/mcp?token=query-secret-1'\n\
         [servers.page]\nurl = '{at}/nothing'\nbearer = 'OWN_CLOCK_KEY'\n",
        other.port
    );
    hotcell.write(CONFIG, config);
    let code = r#"
print(good.say(text="yes"))
for server in [stranger, nameless, elsewhere, nobody, page]:
    try:
        print(server.say(text="no"))
    except ToolError as error:
        print(error.kind, error)
"#;
    let result = run(&hotcell, &["-l", "python", "-c", code]);
    let hint = "; run `hotcell servers` to see its messages\n";
    let expected = [
        "yes\n".to_owned(),
        format!(
            "unavailable stranger.say: the server is not available: it refuses its token{hint}"
        ),
        format!(
            "unavailable nameless.say: the server is not available: it wants a login (`hotcell servers login nameless`){hint}"
        ),
        format!(
            "unavailable elsewhere.say: the server is not available: it answered HTTP 307{hint}"
        ),
        format!(
            "unavailable nobody.say: the server is not available: it cannot be reached: Connection refused (os error 111){hint}"
        ),
        format!("unavailable page.say: the server is not available: it answered HTTP 404{hint}"),
    ];
    assert_eq!(result["stdout"], expected.concat(), "{result}");
    assert_eq!(other.log(), "", "a token went to another origin");
    for secret in [KEY, "wrong-token", "query-secret"] {
        assert!(!result.to_string().contains(secret), "{result}");
    }
}

#[test]
fn one_bad_entry_is_one_bad_server() {
    let Some(hotcell) = anyone() else { return };
    let script = hotcell.write("clock.py", include_str!("../../servers/clock.py"));
    let config = format!(
        "[servers.clock]\ncommand = 'python3'\nargs = [{script:?}]\n\
         [servers.bad]\nurl = 'no address'\n\
         [servers.worse]\ncommnad = 'x'\n\
         [servers.lost]\ncommand = 'python3'\nargs = [{script:?}]\ncwd = '/no/such/folder'\n\
         [servers.off]\ncommand = 'x'\ndisabled = true\n"
    );
    hotcell.write(CONFIG, config);
    assert_eq!(
        run(&hotcell, &["-l", "python", "-c", "print(1)"])["stdout"],
        "1\n"
    );
    let code = r#"
print(clock.text(text="works"))
for server in [bad, worse, lost]:
    try:
        server.any()
    except ToolError as error:
        print(error)
print("off" in globals())
"#;
    let result = run(&hotcell, &["-l", "python", "-c", code]);
    let hint = "; run `hotcell servers` to see its messages\n";
    let expected = [
        "works\n".to_owned(),
        format!("bad.any: the server is not available: its entry has a mistake{hint}"),
        format!("worse.any: the server is not available: its entry has a mistake{hint}"),
        format!("lost.any: the server is not available: its folder (`cwd`) does not exist{hint}"),
        "False\n".to_owned(),
    ];
    assert_eq!(result["stdout"], expected.concat(), "{result}");
    let mut client = serve(&hotcell);
    let result =
        client.run(json!({ "language": "python", "code": "print(clock.text(text='served'))" }));
    assert_eq!(structured(&result)["stdout"], "served\n", "{result}");

    let listed = Running::start(hotcell.command().arg("servers")).finish();
    assert_eq!(listed.code, Some(1));
    let said = listed.out();
    for line in [
        "config.toml:4: key `servers.bad`: its `url` is not one: ",
        "config.toml:7: key `servers.worse.commnad`: there is no such key; did you mean `servers.worse.command`?",
        "lost: the server is not available: its folder (`cwd`) does not exist\n",
        "clock: 9 tools\n",
    ] {
        assert!(said.contains(line), "{line}\nis not in\n{said}");
    }
}

#[test]
fn servers_are_noticed_while_serving() {
    let Some(hotcell) = anyone() else { return };
    let script = hotcell.write("clock.py", include_str!("../../servers/clock.py"));
    let log = hotcell.write("clock.log", "");
    let entry = |name: &str| {
        format!(
            "[servers.{name}]\ncommand = 'python3'\nargs = [{script:?}]\nenv = {{ CLOCK_LOG = {log:?} }}\n"
        )
    };
    hotcell.write(CONFIG, "");
    let mut client = serve(&hotcell);
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let mut expect = |config: String, code: &str, expected: &str| {
        hotcell.write(CONFIG, config);
        let mut last = Value::Null;
        let came = eventually(PATIENCE, || {
            last = client.run(json!({ "language": "python", "code": code }));
            structured(&last)["stdout"] == expected
        });
        assert!(came, "{last}");
    };
    expect(entry("first"), "print(first.text(text='1'))", "1\n");
    let text = fs::read_to_string(&log).expect("its log");
    let pid = text.lines().find_map(|line| line.strip_prefix("start "));
    let process = std::path::Path::new("/proc").join(pid.expect("its pid"));
    expect(
        entry("second"),
        "print(second.text(text='2'), 'first' in globals())",
        "2 False\n",
    );
    assert!(
        eventually(PATIENCE, || !process.exists()),
        "the old one runs on"
    );
    // A file that is broken now changes nothing.
    expect("[servers".to_owned(), "print(second.text(text='3'))", "3\n");
    expect(String::new(), "print('second' in globals())", "False\n");
}

#[test]
fn an_answer_without_an_end_is_not_read_to_its_end() {
    let Some(hotcell) = anyone() else { return };
    let web = Web::start(&hotcell, "home/web");
    let at = format!("http://127.0.0.1:{}", web.port);
    hotcell.write(
        CONFIG,
        format!("[servers.web]\nurl = '{at}/mcp'\nbearer = 'OWN_CLOCK_KEY'\n"),
    );
    let code = r#"
for kind in ["plain", "refusal", "event", "lines"]:
    try:
        print(web.flood(kind=kind))
    except ToolError as error:
        print(kind, error.kind, error.message.partition(": ")[2].partition(";")[0])
# Control: a long answer that ends.
print(len(web.large(bytes=50_000_000)))
"#;
    let mut client = serve(&hotcell);
    let result = client.run(json!({ "language": "python", "code": code, "timeout": 120 }));
    let said = structured(&result)["stdout"].as_str().unwrap_or_default();
    assert!(said.ends_with("\n50000000\n"), "{result}");
    let plain = "plain unavailable the server is not available: its answer is too long\n";
    assert!(said.starts_with(plain), "{result}");
    assert_eq!(said.matches(" unavailable ").count(), 4, "{result}");
    // How many MiB each could send, by its own account. What is on its way is a few more than were read.
    let floods = web.log();
    let floods: Vec<(&str, u32)> = floods
        .lines()
        .filter_map(|line| line.strip_prefix("flood ")?.split_once(' '))
        .map(|(kind, taken)| (kind, taken.parse().expect("a number")))
        .collect();
    assert!(floods.len() >= 4, "{floods:?}");
    for (kind, taken) in floods {
        assert!(taken < 128, "{kind}: {taken} MiB");
    }
}
