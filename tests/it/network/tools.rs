//! The tools that people use find the way out by themselves.

use super::lines;
use super::stage::Stage;
use crate::support::{everyone, has};

/// A tool, what it is told, and what it must say.
const CASES: [(&str, &str, &str, &str); 8] = [
    (
        "curl",
        "bash",
        "curl -s --cacert ca.pem https://allowed.test/x | grep -o '\"path\": \"/x\"'",
        "\"path\": \"/x\"",
    ),
    (
        "curl",
        "bash",
        "curl -s -x '' --cacert ca.pem https://allowed.test/x || echo no way",
        "no way",
    ),
    (
        "wget",
        "bash",
        "wget -q -O - --ca-certificate=ca.pem https://allowed.test/x | grep -o '\"/x\"'",
        "\"/x\"",
    ),
    (
        "node",
        "javascript",
        "fetch('https://allowed.test/x').then(r => r.json()).then(r => console.log(r.path))",
        "/x",
    ),
    (
        "node",
        "javascript",
        "for (const name of ['http', 'https']) require(name).get(`${name}://allowed.test/x`, r => { let t = ''; \
         r.on('data', d => t += d); r.on('end', () => { if (JSON.parse(t).path === '/x') console.log('got it') }) })",
        "got it\ngot it",
    ),
    (
        "node",
        "javascript",
        "fetch('https://evil.test/').catch(e => console.log(/not granted/.test(String(e.cause) + e.message)))",
        "true",
    ),
    (
        "python3",
        "python",
        "import ssl, urllib.request, json\ncontext = ssl.create_default_context(cafile='ca.pem')\n\
         print(json.load(urllib.request.urlopen('https://allowed.test/x', context=context))['path'])",
        "/x",
    ),
    (
        "python3",
        "python",
        "import socket\ns = socket.create_connection(('127.0.0.1', 3128))\n\
         s.sendall(b'CONNECT port.test:5432 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')\nf = s.makefile('rb')\n\
         while f.readline().strip(): pass\nprint(f.readline())\ns.sendall(b'hi\\n')\nprint(f.readline())",
        "b'greetings\\n'\nb'HI\\n'",
    ),
];

#[test]
fn the_usual_tools_work_unchanged() {
    let Some(stage) = Stage::set() else { return };
    let certificate = format!("{}:ca.pem", stage.authority().display());
    for hotcell in everyone() {
        for (tool, language, code, expected) in CASES {
            if !has(tool) {
                continue;
            }
            let grant = "allowed.test,port.test:5432";
            let flags = [
                "--network",
                grant,
                "--file",
                &certificate,
                "--env",
                "NODE_EXTRA_CA_CERTS=ca.pem",
            ];
            let result = stage.json(
                &hotcell,
                &[&flags[..], &["-l", language, "-c", code]].concat(),
            );
            assert_eq!(
                lines(&result).join("\n"),
                expected,
                "{tool} as {}: {code}\n{result}",
                hotcell.name
            );
        }
    }
}

#[test]
fn git_and_pip_ask_the_granted_host() {
    let Some(stage) = Stage::set() else { return };
    for hotcell in everyone() {
        stage.log();
        for (tool, code, asked) in [
            (
                "git",
                "git ls-remote http://allowed.test/repo",
                "GET /repo/info/refs?service=git-upload-pack host=allowed.test",
            ),
            (
                "pip3",
                "/usr/bin/python3 -m pip download -q -i http://allowed.test/simple --trusted-host allowed.test six",
                "GET /simple/six/ host=allowed.test",
            ),
        ] {
            if !has(tool) {
                continue;
            }
            stage.run(
                &hotcell,
                &["--network", "allowed.test", "-l", "bash", "-c", code],
            );
            let log = stage.log();
            assert!(
                log.iter().any(|line| line.ends_with(asked)),
                "{tool}: {log:?}"
            );
        }
    }
}

#[test]
fn every_example_of_the_page_prints_what_it_says() {
    let Some(stage) = Stage::set() else { return };
    let page = include_str!("../../../docs/network.md");
    let blocks: Vec<&str> = page
        .split("```console\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert_eq!(blocks.len(), 1);
    for hotcell in everyone() {
        for example in blocks[0].split("$ hotcell ").filter(|it| !it.is_empty()) {
            let (command, shown) = example.split_once('\n').expect("what it prints");
            let line = format!("\"$0\" {command} 2>&1");
            let mut shell = stage.dressed(&hotcell);
            let shell = shell.args(["sh", "-c", &line]).arg(hotcell.binary());
            let output = shell.output().expect("a shell");
            assert_eq!(
                String::from_utf8_lossy(&output.stdout),
                shown,
                "$ hotcell {command}"
            );
        }
    }
}
