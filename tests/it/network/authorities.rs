//! A certificate authority that this machine trusts, such as a company's own: programs trust it too, whatever runs them.

use std::path::Path;

use serde_json::Value;

use super::lines;
use super::stage::Stage;
use crate::support::{Hotcell, PATH, Running, everyone, has, has_heavy, skip};

const JAVA: &str = r#"import java.net.*;
import java.net.http.*;
public class Main {
    public static void main(String[] args) throws Exception {
        var old = (HttpURLConnection) new URL("https://allowed.test/").openConnection();
        System.out.println(old.getResponseCode());
        var request = HttpRequest.newBuilder(URI.create("https://allowed.test/")).build();
        System.out.println(HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).statusCode());
    }
}
"#;
const GO: &str = "package main\nimport (\n\"fmt\"\n\"net/http\"\n)\nfunc main() {\nanswer, err := http.Get(\"https://allowed.test/\")\nif err != nil { panic(err) }\nfmt.Println(answer.StatusCode)\n}\n";
const FETCH: &str =
    "const answer = await fetch('https://allowed.test/'); console.log(answer.status)";
const REQUESTS: &str = "import requests; print(requests.get('https://allowed.test/').status_code)";
const PHP: &str = r#"<?php
$line = stream_socket_client('tcp://127.0.0.1:3128');
fwrite($line, "CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test\r\n\r\n");
while (trim(fgets($line)) !== '');
stream_context_set_option($line, 'ssl', 'peer_name', 'allowed.test');
echo @stream_socket_enable_crypto($line, true, STREAM_CRYPTO_METHOD_TLS_CLIENT) ? 200 : 0, "\n";
"#;
const WGET: &str = "wget -q -O /dev/null https://allowed.test/ && echo 200";
const R: &str = "x <- readLines(url('https://allowed.test/', method = 'libcurl'), warn = FALSE); cat(200, '\\n')";
const SCALA: &str = r#"println(new java.net.URL("https://allowed.test/").openConnection().asInstanceOf[java.net.HttpURLConnection].getResponseCode)"#;
const GROOVY: &str = "println new URL('https://allowed.test/').openConnection().responseCode";
const CLOJURE: &str =
    r#"(println (.getResponseCode (.openConnection (java.net.URL. "https://allowed.test/"))))"#;
const KOTLIN: &str = r#"println((java.net.URL("https://allowed.test/").openConnection() as java.net.HttpURLConnection).responseCode)"#;

/// What code prints where this machine trusts the world's authority, or does not.
fn said(stage: &Stage, hotcell: &Hotcell, trusts: bool, words: &[&str]) -> Value {
    let mut command = stage.dressed(hotcell);
    command.arg(format!("PATH={PATH}:/usr/local/go/bin"));
    if trusts {
        command.arg(format!("SSL_CERT_FILE={}", stage.authority().display()));
    }
    command
        .arg(hotcell.binary())
        .args(["run", "--json", "--network", "allowed.test"])
        .args(["--timeout", "120", "--memory", "1g"])
        .args(words);
    // A tool chain's cache is filled at its first use, which takes longer than a test may: nobody looks at the clock.
    let output = command.output().expect("it can be started");
    serde_json::from_slice(&output.stdout).expect("a result")
}

fn is_trusted(stage: &Stage, hotcell: &Hotcell, words: &[&str]) {
    let seen = said(stage, hotcell, true, words);
    let lines_seen = lines(&seen);
    assert!(
        !lines_seen.is_empty() && lines_seen.iter().all(|it| it.trim() == "200"),
        "{words:?}: {seen}"
    );
    // Control: where the host does not trust it, nobody does.
    let seen = said(stage, hotcell, false, words);
    assert!(!lines(&seen).contains(&"200"), "{words:?}: {seen}");
}

#[test]
fn java_go_php_r_and_the_engine_inside_trust_what_the_host_trusts() {
    let Some(stage) = Stage::set() else { return };
    for hotcell in everyone() {
        is_trusted(
            &stage,
            &hotcell,
            &["-l", "javascript@embedded", "-c", FETCH],
        );
        if has("wget") {
            is_trusted(&stage, &hotcell, &["-l", "bash", "-c", WGET]);
        }
        for (language, runtime, code) in [
            ("java", "javac", JAVA),
            ("php", "php", PHP),
            ("r", "Rscript", R),
        ] {
            if has_heavy(runtime) {
                is_trusted(&stage, &hotcell, &["-l", language, "-c", code]);
            }
        }
        // Its client takes long to build, and trusts the same variable whoever asks.
        let is_first = hotcell.name == everyone()[0].name;
        let has_go = || Path::new("/usr/local/go/bin/go").exists() || has_heavy("go");
        if is_first && has_go() {
            is_trusted(&stage, &hotcell, &["-l", "go", "-c", GO]);
        }
    }
}

/// Each starts Java by a script of its own, and none reads a variable.
#[test]
fn languages_that_run_on_java_trust_what_the_host_trusts() {
    let Some(stage) = Stage::set() else { return };
    for hotcell in everyone() {
        for (language, runtime, code) in [
            ("scala", "scala", SCALA),
            ("groovy", "groovy", GROOVY),
            ("clojure@clojure", "clojure", CLOJURE),
            ("kotlin", "kotlinc", KOTLIN),
        ] {
            if has_heavy(runtime) {
                is_trusted(&stage, &hotcell, &["-l", language, "-c", code]);
            }
        }
    }
}

/// These come from the real registries first.
#[test]
fn requests_and_deno_trust_what_the_host_trusts() {
    let Some(stage) = Stage::set() else { return };
    for hotcell in everyone() {
        for (words, found) in [
            (
                &["packages", "add", "requests"][..],
                ".cache/hotcell/packages",
            ),
            (
                &["languages", "add", "deno"],
                ".local/share/hotcell/runtimes/bin/deno",
            ),
        ] {
            let added = hotcell.command().args(words).output();
            let added = added.expect("it can be started");
            if !added.status.success() || !hotcell.home().join(found).exists() {
                skip(&format!(
                    "{words:?}: {}",
                    String::from_utf8_lossy(&added.stderr)
                ));
                return;
            }
        }
        if has("python3") {
            let words = ["--offline", "-l", "python", "-c", REQUESTS];
            is_trusted(&stage, &hotcell, &words);
        }
        for language in ["typescript@deno", "javascript@deno"] {
            is_trusted(&stage, &hotcell, &["-l", language, "-c", FETCH]);
        }
    }
}

/// These cannot be had from a registry that every machine reaches: something that prints what it is started with is in their place.
#[test]
fn runtimes_that_read_no_variables_are_told_of_the_proxy_by_options() {
    for hotcell in everyone() {
        let echo = std::fs::read("/bin/echo").expect("a program");
        for (language, runtime, program) in [
            ("clojure@bb", "bb", "main.clj a\n"),
            ("scala@scala-cli", "scala-cli", "main.scala -- a\n"),
        ] {
            let file = hotcell.write(&format!("fake/bin/{runtime}"), &echo);
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&file, mode).expect("a mode");
            let words = |network: &[&str]| {
                let mut command = hotcell.command();
                let folder = hotcell.place("fake/bin");
                command.env("PATH", format!("{}:{PATH}", folder.display()));
                command.arg("run").args(network);
                command.args(["-l", language, "-c", "x", "a"]);
                Running::start(&mut command).finish().out()
            };
            let said = words(&["--network", "allowed.test"]);
            assert!(said.contains("-Dhttps.proxyHost=127.0.0.1 "), "{said}");
            assert!(said.contains("-Dhttps.proxyPort=3128 "), "{said}");
            assert!(said.ends_with(program), "{said}");
            // Control: without a grant there is none.
            let said = words(&[]);
            assert!(!said.contains("proxy"), "{said}");
            assert!(said.ends_with(program), "{said}");
        }
    }
}
