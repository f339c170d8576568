//! Secrets that programs use and never see.

use std::process::Command;

use serde_json::Value;

use super::lines;
use super::stage::Stage;
use crate::support::{Hotcell, Running, everyone};

const VALUE: &str = "sesame-4711-open";
const CONFIG: &str = "
[[secret]]
name = 'API_KEY'
hosts = ['secret.test', '*.wild.test']
env = 'OWN_KEY'
header = 'X-Key: key {secret}'

[[secret]]
name = 'GONE'
hosts = ['secret.test']
env = 'NOT_SET'
";

/// Runs code where the owner has the secret, and trusts the world's certificate or not.
fn run(stage: &Stage, hotcell: &Hotcell, trust: bool, arguments: &[&str]) -> Value {
    let mut command = stage.dressed(hotcell);
    command.arg(format!("OWN_KEY={VALUE}"));
    if trust {
        command.arg(format!("SSL_CERT_FILE={}", stage.authority().display()));
    }
    finish(command, hotcell, arguments)
}

fn finish(mut command: Command, hotcell: &Hotcell, arguments: &[&str]) -> Value {
    command
        .arg(hotcell.binary())
        .args(["run", "--json"])
        .args(arguments);
    Running::start(&mut command).finish().json()
}

#[test]
fn a_secret_reaches_its_hosts_and_nothing_else_not_even_the_program() {
    let Some(stage) = Stage::set() else { return };
    let python = r#"
import json, os, sys, urllib.request
key = os.environ["API_KEY"]
for url in sys.argv[1:]:
    request = urllib.request.Request(url + "?key=" + key, headers={"Authorization": "Bearer " + key})
    try:
        answer = json.load(urllib.request.urlopen(request, timeout=10))
        print(answer["path"] == "/x?key=" + key, answer["headers"]["authorization"] == "Bearer " + key, answer["headers"].get("x-key") == "key " + key)
    except Exception as error:
        print("failed", error)
print(key.startswith("hotcell-secret-"))
"#;
    for hotcell in everyone() {
        hotcell.write("home/.config/hotcell/config.toml", CONFIG);
        stage.log();
        let grant = [
            "--network",
            "secret.test,allowed.test,a.wild.test",
            "-l",
            "python",
            "-c",
            python,
            "--",
        ];
        let call = |url| [&grant[..], &[url]].concat();
        for url in ["https://secret.test/x", "https://a.wild.test/x"] {
            let result = run(&stage, &hotcell, true, &call(url));
            // What comes back has the placeholder again, so that it looks as it was sent.
            assert_eq!(
                lines(&result),
                ["True True True", "True"],
                "{url}: {result}"
            );
            assert!(!result.to_string().contains(VALUE), "{result}");
            assert_eq!(
                result["notes"],
                serde_json::json!(["secret `GONE`: `NOT_SET` is not set"])
            );
            let log = stage.log().join("\n");
            let sent = format!("GET /x?key={VALUE} ");
            assert!(
                log.contains(&sent) && log.contains(&format!("auth Bearer {VALUE} key {VALUE}")),
                "{log}"
            );
        }
        // Neither unencrypted nor to others: they get the placeholder.
        let result = run(&stage, &hotcell, true, &call("http://secret.test/x"));
        assert_eq!(lines(&result), ["True True False", "True"], "{result}");
        let result = run(&stage, &hotcell, true, &call("http://allowed.test/x"));
        assert_eq!(lines(&result), ["True True False", "True"], "{result}");
        let log = stage.log().join("\n");
        assert!(
            !log.contains(VALUE) && log.contains("auth Bearer hotcell-secret-"),
            "{log}"
        );
        // Nor unencrypted to the port of TLS.
        run(&stage, &hotcell, true, &call("http://secret.test:443/x"));
        let log = stage.log().join("\n");
        assert!(
            !log.contains(VALUE) && log.contains("plain ") && log.contains("hotcell-secret-"),
            "{log}"
        );
        // Nor to somebody who only says that he is the host.
        let result = run(&stage, &hotcell, false, &call("https://secret.test/x"));
        assert!(lines(&result)[0].contains("502"), "{result}");
        assert!(!stage.log().join("\n").contains(VALUE));
        std::fs::remove_file(hotcell.place("home/.config/hotcell/config.toml"))
            .expect("it is there");
    }
}

#[test]
fn the_usual_tools_trust_the_proxy_for_the_hosts_of_a_secret_and_no_others() {
    let Some(stage) = Stage::set() else { return };
    for hotcell in everyone() {
        hotcell.write("home/.config/hotcell/config.toml", CONFIG);
        stage.log();
        let curl = "curl -sS -u me:$API_KEY https://secret.test/x > answer && grep -c hotcell-secret answer; \
            for host in secret allowed; do curl -sv https://$host.test/ 2>&1 | grep -c 'issuer: CN=hotcell'; done";
        let node = "fetch('https://secret.test/x').then(r => r.json()).then(r => console.log(r.headers['x-key'] === 'key ' + process.env.API_KEY))";
        for (language, code, expected) in [("bash", curl, "1\n1\n0"), ("javascript", node, "true")]
        {
            let result = run(
                &stage,
                &hotcell,
                true,
                &[
                    "--network",
                    "secret.test,allowed.test",
                    "-l",
                    language,
                    "-c",
                    code,
                ],
            );
            assert_eq!(lines(&result).join("\n"), expected, "{result}");
            assert!(stage.log().join("\n").contains(&format!("key {VALUE}")));
        }
        std::fs::remove_file(hotcell.place("home/.config/hotcell/config.toml"))
            .expect("it is there");
    }
}

#[test]
fn what_a_program_prints_is_cleaned_of_the_secret() {
    let Some(stage) = Stage::set() else { return };
    let code = format!(
        "import sys, time\nvalue = '{}' + '{}'\nfor letter in 'a' + value + 'b' + value[:-1]:\n    sys.stdout.write(letter); sys.stdout.flush()\nsys.stderr.write(value)\n",
        &VALUE[..5],
        &VALUE[5..]
    );
    for hotcell in everyone() {
        hotcell.write("home/.config/hotcell/config.toml", CONFIG);
        let result = run(
            &stage,
            &hotcell,
            true,
            &["--network", "secret.test", "-l", "python", "-c", &code],
        );
        let out = result["stdout"].as_str().expect("text");
        assert!(
            out.starts_with("ahotcell-secret-")
                && out.ends_with(&format!("b{}", &VALUE[..VALUE.len() - 1])),
            "{out}"
        );
        assert!(!result.to_string().contains(VALUE), "{result}");
        // Control: a run that has nothing to do with the secret prints what it likes.
        let result = run(&stage, &hotcell, true, &["-l", "python", "-c", &code]);
        assert!(result["stdout"].as_str().expect("text").contains(VALUE));
        std::fs::remove_file(hotcell.place("home/.config/hotcell/config.toml"))
            .expect("it is there");
    }
}

#[test]
fn a_host_cannot_tell_a_secret_in_another_form() {
    let Some(stage) = Stage::set() else { return };
    // Prints all that comes back, and what it looks like when it is taken out of its form.
    let python = r#"
import base64, gzip, socket, ssl, os, sys, urllib.request
proxy = os.environ["https_proxy"].split("//")[1].rstrip("/").rsplit(":", 1)
for how in sys.argv[1:]:
    raw = socket.create_connection((proxy[0], int(proxy[1])), 10)
    raw.sendall(b"CONNECT secret.test:443 HTTP/1.1\r\nHost: secret.test:443\r\n\r\n")
    raw.recv(4096)
    context = ssl.create_default_context()
    stream = context.wrap_socket(raw, server_hostname="secret.test")
    stream.sendall(("GET /tell/%s HTTP/1.1\r\nHost: secret.test\r\nRange: bytes=7-\r\nTE: trailers\r\nConnection: close\r\n\r\n" % how).encode())
    said = b""
    while piece := stream.recv(65536): said += piece
    head, _, body = said.partition(b"\r\n\r\n")
    try: body += b" " + gzip.decompress(body)
    except Exception: pass
    try: body += b" " + base64.b64decode(body.split()[0])
    except Exception: pass
    print(how, repr(head + b" " + body))
"#;
    for hotcell in everyone() {
        hotcell.write("home/.config/hotcell/config.toml", CONFIG);
        let forms = [
            "plain", "reason", "header", "name", "base64", "percent", "range", "gzip", "part",
            "early", "pieces", "trailer",
        ];
        for form in forms {
            stage.log();
            let arguments = [
                "--network",
                "secret.test",
                "-l",
                "python",
                "-c",
                python,
                "--",
                form,
            ];
            // One that is written in another way in a URL.
            let value = match form {
                "percent" => "sesame-4711/op+en",
                _ => VALUE,
            };
            let mut command = stage.dressed(&hotcell);
            command.arg(format!("OWN_KEY={value}"));
            command.arg(format!("SSL_CERT_FILE={}", stage.authority().display()));
            let result = finish(command, &hotcell, &arguments);
            let said = result["stdout"].as_str().expect("text").to_lowercase();
            assert!(said.starts_with(form), "{form}: {result}");
            // No part of it that is more than its first letters, as it is or as it stands in a URL.
            for part in [value, &value[7..], "sesame-4711"] {
                assert!(!said.contains(part), "{form}: {said}");
            }
            // Control: the host has it, and has answered.
            let log = stage.log().join("\n");
            assert!(log.contains(&format!("key {value}")), "{form}: {log}");
            let is_refused = said.contains("502") && said.contains("cannot be searched");
            let cannot_be = ["gzip", "part"].contains(&form);
            assert_eq!(is_refused, cannot_be, "{form}: {said}");
        }
        std::fs::remove_file(hotcell.place("home/.config/hotcell/config.toml"))
            .expect("it is there");
    }
}

#[test]
fn an_authority_that_the_host_trusts_is_trusted_by_programs_whatever_they_are_written_in() {
    let Some(stage) = Stage::set() else { return };
    let python =
        "import urllib.request as u; print(u.urlopen('https://allowed.test/', timeout=20).status)";
    let node = "require('https').get('https://allowed.test/', r => console.log(r.statusCode)).on('error', e => console.log(e.code))";
    let fetched = "fetch('https://allowed.test/').then(r => console.log(r.status), e => console.log(e.cause.code))";
    let curl = "curl -s -o /dev/null -w '%{http_code}\\n' https://allowed.test/";
    let ruby = "require 'net/http'; puts Net::HTTP.get_response(URI('https://allowed.test/')).code";
    for hotcell in everyone() {
        for (language, code) in [
            ("python", python),
            ("javascript", node),
            ("javascript", fetched),
            ("bash", curl),
            ("ruby", ruby),
        ] {
            let grant = ["--network", "allowed.test", "-l", language, "-c", code];
            let seen = run(&stage, &hotcell, true, &grant);
            assert_eq!(lines(&seen), ["200"], "{language} {code}: {seen}");
            // Control: where the host does not trust it, nobody does.
            let seen = run(&stage, &hotcell, false, &grant);
            assert_ne!(lines(&seen), ["200"], "{language}: {seen}");
        }
        // What else lies in such a file stays outside.
        let authority = std::fs::read_to_string(stage.authority()).expect("it is there");
        let key = "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\n";
        let both = hotcell.write("home/both.pem", format!("{key}{authority}"));
        let mut command = stage.dressed(&hotcell);
        command.arg(format!("SSL_CERT_FILE={}", both.display()));
        let look = "cat $SSL_CERT_FILE | grep -c 'BEGIN CERTIFICATE' | sed 's/^[1-9][0-9]*$/some/'; grep -c PRIVATE $SSL_CERT_FILE";
        let result = finish(
            command,
            &hotcell,
            &["--network", "allowed.test", "-l", "bash", "-c", look],
        );
        assert_eq!(lines(&result), ["some", "0"], "{result}");
    }
}
