//! Attacks on the grant: the cases of the hostile suite that mean a network, the table of
//! hosts, and requests that say one thing and mean another.

use serde_json::Value;

use super::lines;
use super::stage::Stage;
use crate::support::{Hotcell, everyone};

/// The programs of the suite that need a grant to fool, and the grant.
const CASES: [(&str, &str); 6] = [
    ("NET-02-cloud-metadata", "all"),
    ("NET-04-dns-exfiltration", "allowed.test"),
    ("NET-04-dns-exfiltration", "all"),
    ("NET-11-allowlist-suffix-and-userinfo", "allowed.test"),
    ("NET-14-unset-proxy-variables", "allowed.test"),
    ("NET-14-unset-proxy-variables", "all"),
];

fn program(id: &str) -> String {
    let cases: Value =
        serde_json::from_str(include_str!("../../attacks/attacks.json")).expect("JSON");
    let cases = cases.as_array().expect("a list");
    let case = cases
        .iter()
        .find(|case| case["id"] == id)
        .expect("the case");
    case["code"].as_str().expect("its program").to_owned()
}

#[test]
fn the_cases_of_the_suite_are_contained_with_a_network() {
    let Some(stage) = Stage::set() else { return };
    let is_breach = |line: &&str| line.starts_with("BREACH");
    for (id, _) in CASES {
        // Control: the program gets out where nothing holds it.
        let mut plain = stage.enter(65_000);
        let plain = plain
            .args(["python3", "-c", &program(id)])
            .output()
            .expect("python runs");
        let plain = String::from_utf8_lossy(&plain.stdout).into_owned();
        assert!(plain.lines().any(|line| is_breach(&line)), "{id}: {plain}");
    }
    stage.log();
    for hotcell in everyone() {
        for (id, grant) in CASES {
            let result = stage.json(
                &hotcell,
                &["--network", grant, "-l", "python", "-c", &program(id)],
            );
            let lines = lines(&result);
            assert!(
                !lines.is_empty() && !lines.iter().any(is_breach),
                "{id} with {grant}: {result}"
            );
            let log = stage.log();
            assert_eq!(log, [""; 0], "{id} with {grant} as {}", hotcell.name);
        }
    }
}

/// Sends each of a list of raw requests to the proxy, and prints the status of the answer.
const RAW: &str = r#"
import json, socket
for text in json.load(open("requests.json")):
    s = socket.create_connection(("127.0.0.1", 3128), 10)
    status = "none"
    try:
        s.sendall(text.encode("utf-8", "surrogateescape"))
        s.settimeout(10)
        status = s.recv(4096).split(b" ", 2)[1].decode()
    except (OSError, IndexError):
        pass
    print(status)
    s.close()
"#;

fn send(stage: &Stage, hotcell: &Hotcell, grant: &str, requests: &[String]) -> Vec<String> {
    let file = hotcell.write(
        "home/requests.json",
        serde_json::to_vec(requests).expect("JSON"),
    );
    let file = format!("{}:requests.json", file.display());
    let flags = [
        "--network",
        grant,
        "--timeout",
        "300",
        "--file",
        &file,
        "-l",
        "python",
        "-c",
        RAW,
    ];
    let result = stage.json(hotcell, &flags);
    assert_eq!(result["status"], "ok", "{result}");
    lines(&result).into_iter().map(str::to_owned).collect()
}

#[test]
fn no_spelling_of_a_host_reaches_another_than_the_granted_ones() {
    let Some(stage) = Stage::set() else { return };
    let table: Vec<(&str, String)> = include_str!("../../egress/hosts.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('\t'))
        .map(|(verdict, text)| (verdict, unescaped(text)))
        .collect();
    let grant = "allowed.test,*.wild.test,port.test:8443,203.0.113.9,[2001:db8::9]:443";
    let has_port = |text: &str| {
        text.rsplit_once(':')
            .is_some_and(|(_, port)| !port.contains(']'))
    };
    let connect = |text: &String| {
        let port = if has_port(text) { "" } else { ":443" };
        format!("CONNECT {text}{port} HTTP/1.1\r\nHost: allowed.test\r\n\r\n")
    };
    let get = |scheme: &str, text: &String| {
        format!("GET {scheme}://{text}/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n")
    };
    for hotcell in everyone() {
        stage.log();
        let requests: Vec<String> = table.iter().map(|(_, text)| connect(text)).collect();
        let statuses = send(&stage, &hotcell, grant, &requests);
        assert_eq!(statuses.len(), table.len());
        for ((verdict, text), status) in table.iter().zip(&statuses) {
            let shown: String = text.escape_debug().take(80).collect();
            // The world has no such address where it has no IPv6.
            let reached = ["200", "502"].contains(&status.as_str());
            assert_eq!(reached, verdict.starts_with("yes"), "{shown}: {status}");
        }
        for scheme in ["http", "https"] {
            // TLS to the port of plain HTTP would be nothing that the world can read.
            let readable = |text: &String| scheme == "http" || !text.contains(":80");
            let texts = table.iter().map(|(_, text)| text);
            let requests = texts.filter(|text| readable(text));
            let requests: Vec<String> = requests.map(|text| get(scheme, text)).collect();
            send(&stage, &hotcell, grant, &requests);
        }
        let log = stage.log();
        // Who was asked, and as whom: hosts that were granted, each at its own address.
        for line in log.iter().filter(|line| !line.starts_with("broken")) {
            let words: Vec<&str> = line.split(' ').collect();
            let granted = match words[..] {
                ["dns", name] => {
                    ["allowed.test", "port.test"].contains(&name) || name.ends_with(".wild.test")
                }
                ["tcp", place] | ["plain", place, ..] => [
                    "203.0.113.80:80",
                    "203.0.113.80:443",
                    "203.0.113.81:80",
                    "203.0.113.81:443",
                    "203.0.113.82:8443",
                    "203.0.113.9:80",
                    "203.0.113.9:443",
                    "2001:db8::9:443",
                ]
                .contains(&place),
                ["http", "203.0.113.80:80", "GET", _, "host=allowed.test"] => true,
                ["http", "203.0.113.81:80", "GET", _, host] => host.ends_with(".wild.test"),
                ["http", "203.0.113.9:80", "GET", _, "host=203.0.113.9"] => true,
                _ => false,
            };
            assert!(granted, "{} reached {line:?}", hotcell.name);
        }
        assert!(
            log.iter()
                .any(|line| line.starts_with("http 203.0.113.80:80")),
            "{log:?}"
        );
    }
}

#[test]
fn a_request_that_names_two_hosts_reaches_neither_but_the_granted_one() {
    let Some(stage) = Stage::set() else { return };
    let tunnel = "CONNECT allowed.test:80 HTTP/1.1\r\nHost: allowed.test:80\r\n\r\n";
    let get = "GET / HTTP/1.1\r\nHost: ";
    let requests = [
        // The URL counts, not the header.
        "GET http://allowed.test/1 HTTP/1.1\r\nHost: evil.test\r\n\r\n".to_owned(),
        // One connection, two requests: each is checked.
        "GET http://allowed.test/2 HTTP/1.1\r\nHost: allowed.test\r\n\r\nGET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"
            .to_owned(),
        // A second request hidden in a body that two readers would end at different places.
        format!("POST http://allowed.test/3 HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{get}evil.test\r\n\r\n"),
        format!("POST http://allowed.test/4 HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 0\r\nContent-Length: 44\r\n\r\n{get}evil.test\r\n\r\n"),
        format!("GET http://allowed.test/5 HTTP/1.1\r\nHost: allowed.test\r\nConnection: content-length\r\nContent-Length: 37\r\n\r\n{get}evil.test\r\n\r\n"),
        // Inside a tunnel to the port of plain HTTP the header is all there is.
        format!("{tunnel}{get}evil.test\r\n\r\n"),
        format!("{tunnel}{get}allowed.test\r\n\r\n{get}evil.test\r\n\r\n"),
        format!("{tunnel}{get}allowed.test\r\nHost: evil.test\r\n\r\n"),
        format!("{tunnel}GET http://evil.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n"),
        "GET https://allowed.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n".to_owned(),
        // Not a proxy's kind of request at all.
        "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n".to_owned(),
        "CONNECT allowed.test HTTP/1.1\r\nHost: evil.test\r\n\r\n".to_owned(),
    ];
    for hotcell in everyone() {
        stage.log();
        send(&stage, &hotcell, "allowed.test", &requests);
        let log = stage.log();
        let other = |line: &&String| {
            let is_granted = ["203.0.113.80:80", "203.0.113.80:443"].map(|it| line.ends_with(it));
            line.contains("evil") || (line.contains("tcp") && !is_granted.contains(&true))
        };
        assert_eq!(log.iter().find(other), None, "{log:?}");
        for path in ["/1", "/2"] {
            let line = format!("http 203.0.113.80:80 GET {path} host=allowed.test");
            assert!(log.contains(&line), "{log:?}");
        }
    }
}

#[test]
fn tls_that_names_another_host_than_the_tunnel_never_reaches_it() {
    let Some(stage) = Stage::set() else { return };
    let code = |host: &str, name: &str| {
        format!(
            "import http.client, ssl, socket\n\
             c = http.client.HTTPConnection('127.0.0.1', 3128, timeout=10)\n\
             c.set_tunnel('{host}', 443)\nc.connect()\n\
             context = ssl._create_unverified_context()\n\
             try:\n    context.wrap_socket(c.sock, server_hostname={name})\n    print('through')\n\
             except OSError as error:\n    print('refused')\n"
        )
    };
    for hotcell in everyone() {
        for (host, name, expected, reason) in [
            ("allowed.test", "'allowed.test'", "through", Value::Null),
            ("allowed.test", "'ALLOWED.test'", "through", Value::Null),
            ("203.0.113.9", "None", "through", Value::Null),
            (
                "allowed.test",
                "'evil.test'",
                "refused",
                "other_tls_name".into(),
            ),
            (
                "allowed.test",
                "'allowed.test.evil.test'",
                "refused",
                "other_tls_name".into(),
            ),
            ("allowed.test", "None", "refused", "other_tls_name".into()),
            (
                "203.0.113.9",
                "'evil.test'",
                "refused",
                "other_tls_name".into(),
            ),
        ] {
            stage.log();
            let code = code(host, name);
            let result = stage.json(
                &hotcell,
                &[
                    "--network",
                    "allowed.test,203.0.113.9",
                    "-l",
                    "python",
                    "-c",
                    &code,
                ],
            );
            assert_eq!(lines(&result), [expected], "{host} {name}: {result}");
            assert_eq!(result["network"]["denied"][0]["reason"], reason);
            let met = stage.log().iter().any(|line| line.starts_with("tls "));
            assert_eq!(met, expected == "through", "{host} {name}");
        }
        // Something else than TLS has no name to check, and is refused where TLS belongs.
        let code = "import http.client\nc = http.client.HTTPConnection('127.0.0.1', 3128, timeout=10)\n\
             c.set_tunnel('allowed.test', 443)\nc.request('GET', '/', headers={'Host': 'evil.test'})\n\
             try:\n    print(c.getresponse().status)\nexcept Exception as error:\n    print('refused')\n";
        let result = stage.json(
            &hotcell,
            &["--network", "allowed.test", "-l", "python", "-c", code],
        );
        assert_eq!(lines(&result), ["refused"], "{result}");
        assert_eq!(result["network"]["denied"][0]["reason"], "not_tls");
    }
}

#[test]
fn a_redirect_is_checked_like_any_other_request() {
    let Some(stage) = Stage::set() else { return };
    for hotcell in everyone() {
        for (to, status) in [
            ("evil.test/", "403"),
            ("10.0.0.5/", "403"),
            ("allowed.test/x", "200"),
        ] {
            let code = format!(
                "curl -s -o /dev/null -L -w '%{{http_code}}' http://allowed.test/redirect/{to}"
            );
            let result = stage.json(
                &hotcell,
                &["--network", "allowed.test", "-l", "bash", "-c", &code],
            );
            assert_eq!(result["stdout"], status, "{to}: {result}");
        }
        assert_eq!(stage.dialled(), ["203.0.113.80:80"]);
    }
}

#[test]
fn the_way_out_of_one_run_is_no_way_for_another() {
    let Some(stage) = Stage::set() else { return };
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    let code = "import sys, time\nprint('up', flush=True)\ntime.sleep(20)\n";
    let mut command = stage.command(&hotcell);
    command.args(["run", "--network", "all", "-l", "python", "-c", code]);
    let mut open = crate::support::Running::start(&mut command);
    open.stdout.until("up");
    // Neither from another cell nor from the host: the port is the cell's own.
    let knock = "import socket\ntry:\n    socket.create_connection(('127.0.0.1', 3128), 2)\n    print('open')\nexcept OSError as error:\n    print(error)\n";
    let other = stage.json(&hotcell, &["-l", "python", "-c", knock]);
    assert_eq!(lines(&other), ["[Errno 111] Connection refused"]);
    let outside = stage
        .enter(0)
        .args(["python3", "-c", knock])
        .output()
        .expect("python runs");
    assert_eq!(
        String::from_utf8_lossy(&outside.stdout),
        "[Errno 111] Connection refused\n"
    );
    // Control: it is open inside.
    let inside = stage.json(&hotcell, &["--network", "all", "-l", "python", "-c", knock]);
    assert_eq!(lines(&inside), ["open"]);
}

/// The escapes of the table, as its head describes them.
fn unescaped(text: &str) -> String {
    if let Some((count, letter)) = text.strip_prefix('{').and_then(|rest| rest.split_once('}'))
        && let Ok(count) = count.parse()
    {
        return letter.repeat(count);
    }
    let mut out = String::new();
    let mut rest = text.chars();
    while let Some(char) = rest.next() {
        if char != '\\' {
            out.push(char);
            continue;
        }
        let code = |digits: String| {
            char::from_u32(u32::from_str_radix(&digits, 16).expect("digits")).expect("a letter")
        };
        out.push(match rest.next() {
            Some('0') => '\0',
            Some('r') => '\r',
            Some('n') => '\n',
            Some('t') => '\t',
            Some('x') => code(rest.by_ref().take(2).collect()),
            Some('u') => code(
                rest.by_ref()
                    .skip(1)
                    .take_while(|char| *char != '}')
                    .collect(),
            ),
            other => other.expect("a letter after the backslash"),
        });
    }
    out
}
