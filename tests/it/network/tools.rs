//! The tools that people use find the way out by themselves.

use std::path::Path;

use super::lines;
use super::stage::Stage;
use crate::support::{Running, everyone, has, skip};

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
                "/usr/bin/python3 -m pip install -q -i http://allowed.test/simple --trusted-host allowed.test tinything",
                "GET /simple/tinything/ host=allowed.test",
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

/// Says what it got of each URL; the engine has no TLS of its own.
const FETCH: &str = "for (const url of process.argv.slice(2)) {
    try {
        const answer = await fetch(url, { method: 'POST', body: 'é', headers: { 'X-Own': 'yes' } });
        const facts = answer.status === 200 ? await answer.json() : {};
        console.log(answer.status, facts.place, facts.headers?.['x-own'], facts.body?.length);
    } catch (error) { console.log(String(error), '-', error.cause?.message); }
}";

#[test]
fn the_engine_inside_the_binary_fetches_through_the_proxy_and_nowhere_else() {
    let Some(stage) = Stage::set() else { return };
    for hotcell in everyone() {
        let run = |trust: bool, flags: &[&str], urls: &[&str]| {
            let mut command = stage.dressed(&hotcell);
            if trust {
                command.arg(format!("SSL_CERT_FILE={}", stage.authority().display()));
            }
            let program = ["-l", "javascript@embedded", "-c", FETCH, "--"];
            command.arg(hotcell.binary()).args(["run", "--json"]);
            command.args([flags, &program, urls].concat());
            Running::start(&mut command).finish().json()
        };
        let urls = [
            "http://allowed.test/x",
            "https://allowed.test/x",
            "https://evil.test/",
            "http://169.254.169.254/",
            "http://allowed.test/redirect/evil.test/",
        ];
        let result = run(true, &["--network", "allowed.test"], &urls);
        let refused = |host: &str| {
            format!("TypeError: fetch failed - {host} was refused: it is not granted to this run")
        };
        let expected = [
            "200 203.0.113.80:80 yes 2".to_owned(),
            "200 203.0.113.80:443 yes 2".to_owned(),
            refused("evil.test:443"),
            refused("169.254.169.254:80"),
            refused("evil.test:80"),
        ];
        assert_eq!(lines(&result), expected, "{}: {result}", hotcell.name);
        assert_eq!(
            result["network"]["denied"].as_array().map(Vec::len),
            Some(3)
        );
        // A host that only says that it is the one gets nothing.
        stage.log();
        let result = run(false, &["--network", "allowed.test"], &urls[1..2]);
        assert!(
            lines(&result)[0].starts_with("TypeError: fetch failed - allowed.test:443"),
            "{result}"
        );
        assert!(!stage.log().iter().any(|line| line.starts_with("http ")));
        // Nobody is asked without a grant.
        let result = run(true, &[], &urls[..1]);
        let nobody = ["TypeError: fetch failed - getaddrinfo EAI_AGAIN allowed.test"];
        assert_eq!(lines(&result), nobody, "{result}");
        assert_eq!(stage.log(), [""; 0]);
    }
}

#[test]
fn deno_imports_by_url_and_from_jsr_where_the_host_is_granted() {
    let Some(stage) = Stage::set() else { return };
    // Fetched by `scripts/test`, as a user would, and for that user alone.
    let own = rustix::process::getuid().as_raw();
    let Some(hotcell) = everyone().into_iter().find(|it| it.uid == own) else {
        return;
    };
    let data = std::env::var_os("HOTCELL_TEST_DATA").unwrap_or_default();
    if !Path::new(&data)
        .join("hotcell/runtimes/first/deno")
        .exists()
    {
        return skip("no deno");
    }
    let certificate = format!("{}:ca.pem", stage.authority().display());
    let run = |language: &str, module: &str, network: &str| {
        let code = format!("import {{ said }} from \"{module}\"; console.log(said)");
        let mut command = stage.dressed(&hotcell);
        command
            .arg(format!("XDG_DATA_HOME={}", data.display()))
            .arg(hotcell.binary())
            .args([
                "run",
                "--json",
                "--network",
                network,
                "--file",
                &certificate,
            ])
            .args(["--env", "DENO_CERT=/workspace/ca.pem"])
            .args(["--env", "JSR_URL=https://allowed.test/"])
            .args(["-l", language, "-c", &code]);
        Running::start(&mut command).finish().json()
    };
    for module in ["https://allowed.test/x.ts", "jsr:@a/b"] {
        for language in ["typescript", "javascript"] {
            let result = run(language, module, "allowed.test");
            assert_eq!(
                lines(&result),
                ["from afar"],
                "{language} {module}: {result}"
            );
        }
        let refused = run("typescript", module, "none");
        assert_eq!(
            (&refused["error"]["kind"], &refused["error"]["hint"]),
            (
                &"denied".into(),
                &"Grant `allowed.test` with `--network`.".into()
            ),
            "{module}: {refused}"
        );
        let other = run("typescript", module, "other.test");
        assert_eq!(
            other["network"]["denied"][0]["grant"], "allowed.test",
            "{other}"
        );
    }
}
