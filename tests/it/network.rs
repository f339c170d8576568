//! The network of a run: what was granted is reached, and nothing else, by any trick;
//! seen from outside by the world itself.

mod authorities;
mod deno;
mod hostile;
mod secrets;
mod serving;
mod stage;
mod tools;

use std::fs;

use serde_json::{Value, json};

use crate::support::{Hotcell, everyone};
use stage::Stage;

/// Asks each URL and prints what came of it.
const ASK: &str = r#"
import json, sys, urllib.request
for url in sys.argv[1:]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            facts = json.loads(answer.read())
            print("reached", url, facts["place"], facts["headers"]["host"])
    except Exception as error:
        print("failed", url, str(error)[:200])
"#;

fn ask(stage: &Stage, hotcell: &Hotcell, flags: &[&str], urls: &[&str]) -> Value {
    let call = [flags, &["-l", "python", "-c", ASK, "--"], urls].concat();
    stage.json(hotcell, &call)
}

/// The lines that it printed.
fn lines(result: &Value) -> Vec<&str> {
    result["stdout"]
        .as_str()
        .unwrap_or_default()
        .lines()
        .collect()
}

#[test]
fn a_granted_host_is_reached_in_that_run_alone_and_a_refused_one_is_named() {
    let Some(stage) = Stage::set() else { return };
    for hotcell in everyone() {
        let urls = [
            "http://allowed.test/a?b",
            "http://evil.test/",
            "http://a.wild.test/",
        ];
        let result = ask(&stage, &hotcell, &["--network", "allowed.test"], &urls);
        let expected = [
            "reached http://allowed.test/a?b 203.0.113.80:80 allowed.test",
            "failed http://evil.test/ HTTP Error 403: evil.test:80 was refused: it is not granted to this run",
            "failed http://a.wild.test/ HTTP Error 403: a.wild.test:80 was refused: it is not granted to this run",
        ];
        assert_eq!(lines(&result), expected, "{}: {result}", hotcell.name);
        let denied = |host: &str, grant: &str| json!({"host": host, "reason": "not_granted", "grant": grant, "times": 1});
        assert_eq!(
            result["network"]["denied"],
            json!([
                denied("evil.test:80", "evil.test"),
                denied("a.wild.test:80", "a.wild.test")
            ])
        );
        assert_eq!(
            result["network"]["reached"],
            json!([{"host": "allowed.test:80", "connections": 1}])
        );
        let log = stage.log();
        assert!(
            !log.iter()
                .any(|line| line.contains("evil") || line.contains("wild")),
            "{log:?}"
        );

        // The next run has nothing of it.
        let result = ask(&stage, &hotcell, &[], &["http://allowed.test/"]);
        assert!(lines(&result)[0].contains("name resolution"), "{result}");
        assert_eq!(result["network"], Value::Null);
        assert_eq!(stage.log(), [""; 0]);

        let said = stage.run(
            &hotcell,
            &[
                "--network",
                "allowed.test",
                "-l",
                "bash",
                "-c",
                "curl -s http://evil.test/",
            ],
        );
        assert_eq!(
            said.err(),
            "hotcell: network: `evil.test:80` was refused: it is not granted to this run. Grant it with `--network evil.test`.\n"
        );
        // How it is granted is said once.
        let code = "curl -sf http://evil.test/";
        let said = stage.run(
            &hotcell,
            &["--network", "allowed.test", "-l", "bash", "-c", code],
        );
        let grant = "Grant it with `--network evil.test`.";
        assert_eq!(said.err().matches(grant).count(), 1, "{}", said.err());
        // A failure is told by what the proxy refused, whatever the program says, or nothing.
        for code in [
            "curl -sf http://evil.test/",
            "wget -q -O - http://evil.test/",
        ] {
            let asked = ["--network", "allowed.test", "-l", "bash", "-c", code];
            let error = &stage.json(&hotcell, &asked)["error"];
            assert_eq!(error["kind"], "denied", "{code}: {error}");
            assert_eq!(
                error["hint"], "Grant it with `--network evil.test`.",
                "{code}"
            );
        }
        let said = stage.json(
            &hotcell,
            &["-l", "bash", "-c", "curl -sS http://evil.test/"],
        );
        assert_eq!(said["error"]["kind"], "denied", "{said}");
        assert_eq!(said["error"]["hint"], "Grant `evil.test` with `--network`.");
        stage.log();
    }
}

#[test]
fn an_address_that_is_not_public_is_refused_under_any_name() {
    let Some(stage) = Stage::set() else { return };
    let names = [
        "loop.test",
        "zero.test",
        "private.test",
        "lan.test",
        "carrier.test",
        "meta.test",
        "azure.test",
        "mixed.test",
        "mapped.test",
        "nat.test",
        "sixtofour.test",
        "link.test",
        "own.test",
        "10.0.0.5",
        "127.0.0.1:8080",
        "169.254.169.254",
        "100.100.100.200",
        "[::1]",
        "[::ffff:10.0.0.5]",
        "[fd00:ec2::254]",
        "203.0.113.2",
    ];
    let urls: Vec<String> = names.iter().map(|name| format!("http://{name}/")).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    // Control: with nothing in between the world answers at these.
    let mut plain = stage.enter(65_000);
    let plain = plain.args([
        "python3",
        "-c",
        ASK,
        "http://10.0.0.5/",
        "http://meta.test/",
        "http://lan.test/",
    ]);
    let plain = String::from_utf8(plain.output().expect("python runs").stdout).expect("text");
    assert_eq!(plain.matches("reached").count(), 3, "{plain}");
    stage.log();
    for hotcell in everyone() {
        let all = format!("all,{}", names.join(","));
        for grant in ["all", &all, &names.join(",")] {
            // Not by NO_PROXY, which would have it ask its own loopback.
            let flags = ["--network", grant, "--env", "no_proxy="];
            let result = ask(&stage, &hotcell, &flags, &urls);
            for line in lines(&result) {
                let refused = ["not public", "not granted"]
                    .iter()
                    .any(|why| line.contains(why));
                assert!(line.starts_with("failed") && refused, "{line}");
            }
            assert_eq!(lines(&result).len(), urls.len(), "{result}");
            let dialled = stage.dialled();
            assert!(
                dialled.is_empty(),
                "{} with {grant}: {dialled:?}",
                hotcell.name
            );
        }
        // What the owner names may be private; what a cloud hands credentials out at may not.
        let config = "[network]\nprivate = ['private.test', 'meta.test', 'mixed.test']\n";
        hotcell.write("home/.config/hotcell/config.toml", config);
        let urls = [
            "http://private.test/",
            "http://meta.test/",
            "http://lan.test/",
            "http://mixed.test/",
        ];
        let result = ask(&stage, &hotcell, &["--network", "all"], &urls);
        assert_eq!(
            lines(&result)[0],
            "reached http://private.test/ 10.0.0.5:80 private.test"
        );
        assert!(
            lines(&result)[1..3]
                .iter()
                .all(|line| line.contains("not public")),
            "{result}"
        );
        assert!(lines(&result)[3].starts_with("reached"), "{result}");
        fs::remove_file(hotcell.place("home/.config/hotcell/config.toml")).expect("it is there");
        stage.log();
    }
}

#[test]
fn a_name_that_changes_its_address_is_checked_each_time_it_is_dialled() {
    let Some(stage) = Stage::set() else { return };
    for hotcell in everyone() {
        let urls = ["http://rebind.test/"; 6];
        let result = ask(&stage, &hotcell, &["--network", "rebind.test"], &urls);
        let dialled = stage.dialled();
        assert!(
            dialled.iter().all(|place| place == "203.0.113.80:80"),
            "{dialled:?}"
        );
        let refused = lines(&result)
            .iter()
            .filter(|line| line.contains("not public"))
            .count();
        assert!(refused > 0 && refused < 6, "{result}");
    }
}

#[test]
fn a_run_moves_no_more_bytes_than_it_may() {
    let Some(stage) = Stage::set() else { return };
    for hotcell in everyone() {
        hotcell.write(
            "home/.config/hotcell/config.toml",
            "[network]\ntransfer = '1m'\n",
        );
        for url in [
            "http://allowed.test/big/5000000",
            "https://allowed.test/big/5000000",
        ] {
            let code = format!("curl -sk {url} | wc -c");
            let result = stage.json(
                &hotcell,
                &["--network", "allowed.test", "-l", "bash", "-c", &code],
            );
            let received: u64 = lines(&result)[0].trim().parse().expect("a number");
            assert!((500_000..=1 << 20).contains(&received), "{url}: {result}");
            assert_eq!(result["network"]["limit_reached"], true, "{url}");
        }
        fs::remove_file(hotcell.place("home/.config/hotcell/config.toml")).expect("it is there");
        let code = "curl -s http://allowed.test/big/5000000 | wc -c";
        let result = stage.json(
            &hotcell,
            &["--network", "allowed.test", "-l", "bash", "-c", code],
        );
        assert_eq!(lines(&result), ["5000000"]);
    }
}

#[test]
fn many_connections_at_once_wait_for_their_turn() {
    let Some(stage) = Stage::set() else { return };
    let code = r#"
import socket, threading, urllib.request
opener, done = threading.Semaphore(200), []
def ask():
    with urllib.request.urlopen("http://allowed.test/", timeout=25) as answer:
        done.append(answer.status)
threads = [threading.Thread(target=ask) for _ in range(100)]
[t.start() for t in threads]; [t.join() for t in threads]
print(done.count(200))
"#;
    for hotcell in everyone() {
        let result = stage.json(
            &hotcell,
            &["--network", "allowed.test", "-l", "python", "-c", code],
        );
        assert_eq!(lines(&result), ["100"], "{result}");
        assert_eq!(result["network"]["reached"][0]["connections"], 100);
    }
}

#[test]
fn a_program_may_talk_to_itself_with_a_network_and_without() {
    let Some(stage) = Stage::set() else { return };
    let code = r#"
import http.server, threading, urllib.request
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
for host in ("127.0.0.1", "localhost"):
    print(urllib.request.urlopen(f"http://{host}:{server.server_port}/").status)
"#;
    for hotcell in everyone() {
        for network in ["none", "allowed.test", "all"] {
            let result = stage.json(
                &hotcell,
                &["--network", network, "-l", "python", "-c", code],
            );
            assert_eq!(lines(&result), ["200", "200"], "{network}: {result}");
        }
    }
}

#[test]
fn the_owner_of_the_machine_has_the_last_word() {
    let Some(stage) = Stage::set() else { return };
    for hotcell in everyone() {
        hotcell.write(
            "home/.config/hotcell/config.toml",
            "[network]\nallow = ['*.wild.test']\n",
        );
        let beyond = ask(
            &stage,
            &hotcell,
            &["--network", "allowed.test"],
            &["http://allowed.test/"],
        );
        assert_eq!(beyond["status"], "rejected");
        assert_eq!(beyond["error"]["kind"], "denied");
        assert_eq!(beyond["error"]["hint"], "Ask only for: *.wild.test.");
        let urls = ["http://a.wild.test/", "http://allowed.test/"];
        let all = ask(&stage, &hotcell, &["--network", "all"], &urls);
        assert!(
            lines(&all)[0].starts_with("reached") && lines(&all)[1].starts_with("failed"),
            "{all}"
        );
        assert_eq!(
            all["notes"],
            json!([
                "network: all was asked for; *.wild.test was granted, which is all that is allowed"
            ])
        );
        assert_eq!(stage.dialled(), ["203.0.113.81:80"]);
        hotcell.write("home/.config/hotcell/config.toml", "[netwrok]\n");
        let broken = stage.json(&hotcell, &["-l", "bash", "-c", "echo no"]);
        assert_eq!(
            (&broken["status"], &broken["error"]["kind"]),
            (&json!("rejected"), &json!("config"))
        );
        fs::remove_file(hotcell.place("home/.config/hotcell/config.toml")).expect("it is there");
    }
}

#[test]
fn a_host_with_an_ipv6_address_alone_is_reached() {
    let Some(stage) = Stage::set() else { return };
    if !stage.ipv6 {
        return crate::support::skip("no IPv6 on this host");
    }
    for hotcell in everyone() {
        let urls = ["http://six.test/", "http://[2001:db8::9]/"];
        let grant = "six.test,[2001:db8::9]";
        let result = ask(&stage, &hotcell, &["--network", grant], &urls);
        let expected = [
            "reached http://six.test/ 2001:db8:2::80:80 six.test",
            "reached http://[2001:db8::9]/ 2001:db8::9:80 [2001:db8::9]",
        ];
        assert_eq!(lines(&result), expected, "{result}");
    }
}

#[test]
fn after_ten_thousand_connections_nobody_listens_any_more() {
    let Some(stage) = Stage::set() else { return };
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    let code = r#"
import socket
count = 0
try:
    while count < 20000:
        socket.create_connection(("127.0.0.1", 3128), 100).close()
        count += 1
except OSError as error:
    print(type(error).__name__)
# Those that waited to be accepted were connected too.
print(10000 <= count <= 10200)
"#;
    let flags = [
        "--network",
        "allowed.test",
        "--timeout",
        "300",
        "-l",
        "python",
        "-c",
        code,
    ];
    let result = stage.json(&hotcell, &flags);
    let said = lines(&result);
    assert!(
        said[0].starts_with("Connection") && said[1] == "True",
        "{result}"
    );
    assert_eq!(result["network"]["limit_reached"], true);
}
