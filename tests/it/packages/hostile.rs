//! What a package, a registry or a caller may try with an install, by the numbers of the hostile
//! suite: PKG-01 to 05, 07 and 11. Each denial has a control. PKG-06 is next door: names that are
//! nearly another's and brand-new ones are not installed unnamed. There is one index and no other.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::json;
use sha2::{Digest, Sha256};

use super::registry::{Registry, hex, tarball, wheel, zip};
use super::{OLD, command, installer, json, run};
use crate::raw;
use crate::support::{Hotcell, PATH, Running, anyone, everyone, has};

/// A port of the host that nobody may reach, and who did.
struct Canary {
    port: u16,
    reached: Arc<AtomicUsize>,
}

impl Canary {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let reached = Arc::new(AtomicUsize::new(0));
        let count = reached.clone();
        // Ends with the process.
        thread::spawn(move || {
            for _ in listener.incoming() {
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self { port, reached }
    }

    fn reached(&self) -> usize {
        self.reached.load(Ordering::Relaxed)
    }
}

fn allow_building(hotcell: &Hotcell) {
    hotcell.write(
        "home/.config/hotcell/config.toml",
        "[packages]\nbuild = true\n",
    );
}

/// A source package whose build tries what PKG-01 lists, and tells what came of it.
fn evil_source(canary: u16, secret: &str) -> Vec<u8> {
    let backend = format!(
        r#"
import os, socket, zipfile
def build_wheel(folder, settings=None, metadata=None):
    said = []
    for path in ('/etc/shadow', '{secret}'):
        try: said.append('BREACH ' + open(path).read(10))
        except OSError as error: said.append('SAFE')
    for host in (('127.0.0.1', {canary}), ('169.254.169.254', 80), ('1.1.1.1', 443)):
        try: socket.create_connection(host, 2); said.append('BREACH net %s' % (host,))
        except OSError as error: said.append('SAFE')
    said.append('BREACH env' if 'sbx-canary' in str(dict(os.environ)) else 'SAFE')
    name = 'sbxevil-1.0-py3-none-any.whl'
    with zipfile.ZipFile(os.path.join(folder, name), 'w') as wheel:
        wheel.writestr('sbxevil.py', 'SAID = %r' % (said,))
        wheel.writestr('sbxevil-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\nName: sbxevil\nVersion: 1.0\n')
        wheel.writestr('sbxevil-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
        wheel.writestr('sbxevil-1.0.dist-info/RECORD', '')
    return name
"#
    );
    tarball(&[
        ("sbxevil-1.0/pyproject.toml", "[build-system]\nrequires = []\nbuild-backend = 'evil'\nbackend-path = ['.']\n[project]\nname = 'sbxevil'\nversion = '1.0'\n".to_owned()),
        ("sbxevil-1.0/evil.py", backend),
        ("sbxevil-1.0/PKG-INFO", "Metadata-Version: 2.1\nName: sbxevil\nVersion: 1.0\n".to_owned()),
    ])
}

#[test]
fn pkg01_the_build_of_a_source_package_runs_only_where_it_was_allowed_and_only_in_a_cell() {
    if !has("python3") || installer().is_none() {
        return;
    }
    for hotcell in everyone() {
        a_build_runs_only_in_a_cell(&hotcell);
    }
}

pub fn a_build_runs_only_in_a_cell(hotcell: &Hotcell) {
    let (registry, canary) = (Registry::start(), Canary::start());
    let secret = hotcell.write("home/secret", "sbx-canary");
    let secret = secret.to_str().expect("a path");
    registry.add_file(
        "sbxevil",
        "sbxevil-1.0.tar.gz",
        OLD,
        &evil_source(canary.port, secret),
    );
    let program = [
        "--package",
        "sbxevil",
        "-c",
        "import sbxevil; print(*sbxevil.SAID)",
    ];
    let refused = json(hotcell, &registry, &program);
    assert_eq!(refused["error"]["kind"], "package_not_found", "{refused}");
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("no usable wheels"),
        "{refused}"
    );
    let hint = refused["error"]["hint"].as_str().expect("a hint");
    assert!(hint.contains("`build = true`"), "{hint}");

    // Control: where building is allowed it does run, and finds nothing.
    allow_building(hotcell);
    let mut command = command(hotcell, &registry, installer());
    command
        .env("SECRET", "sbx-canary")
        .args(["run", "-l", "python"])
        .args(program);
    let built = Running::start(&mut command).finish();
    assert_eq!(
        built.out(),
        "SAFE SAFE SAFE SAFE SAFE SAFE\n",
        "{}: {}",
        hotcell.name,
        built.err()
    );
    assert_eq!(canary.reached(), 0);
}

#[test]
fn pkg02_a_postinstall_script_runs_only_where_it_was_allowed_and_only_in_a_cell() {
    if !has("node") || !has("npm") {
        return;
    }
    let Some(hotcell) = anyone() else { return };
    let (registry, canary) = (Registry::start(), Canary::start());
    let secret = hotcell.write("home/secret", "sbx-canary");
    let evil = format!(
        "const fs=require('fs'),net=require('net');let said=[];try{{said.push('BREACH '+fs.readFileSync('{}','utf8'))}}catch(e){{said.push('SAFE')}};\
         const s=net.connect({},'127.0.0.1');const end=(w)=>{{said.push(w);fs.writeFileSync('ran.json',JSON.stringify(said));process.exit(0)}};\
         s.on('connect',()=>end('BREACH net'));s.on('error',()=>end('SAFE'));",
        secret.display(),
        canary.port
    );
    let package = json!({ "name": "sbxevil", "version": "1.0.0", "main": "main.js", "scripts": { "postinstall": "node evil.js" } });
    let main = "let said; try { said = require('./ran.json') } catch { said = 'not run' } module.exports = said";
    let bytes = tarball(&[
        ("package/package.json", package.to_string()),
        ("package/evil.js", evil),
        ("package/main.js", main.to_owned()),
    ]);
    let scripts = json!({ "postinstall": "node evil.js" });
    let about = json!({ "hasInstallScript": true, "scripts": scripts });
    registry.publish("sbxevil", "1.0.0", about, &bytes);
    let run = |said: &str| {
        let mut command = command(&hotcell, &registry, None);
        command.args([
            "run",
            "-l",
            "js",
            "-c",
            "console.log(String(require('sbxevil')))",
        ]);
        let answer = Running::start(&mut command).finish();
        assert_eq!(answer.out(), said, "{}", answer.err());
    };
    run("not run\n");
    // Control: where scripts are allowed it does run, and finds nothing.
    let prune =
        Running::start(command(&hotcell, &registry, None).args(["packages", "prune", "--all"]))
            .finish();
    assert_eq!(prune.code, Some(0));
    allow_building(&hotcell);
    run("SAFE,SAFE\n");
    assert_eq!(canary.reached(), 0);
}

#[test]
fn pkg03_what_is_no_package_is_refused_before_anything_starts() {
    let Some(hotcell) = anyone().filter(|_| has("python3")) else {
        return;
    };
    let (registry, canary) = (Registry::start(), Canary::start());
    let port = canary.port;
    let long = "a".repeat(10_000);
    let hostile = [
        format!("--index-url=http://127.0.0.1:{port}"),
        "-r/etc/passwd".into(),
        "-e .".into(),
        "git+https://x".into(),
        "git+ssh://x".into(),
        "file:///etc".into(),
        "../x".into(),
        "./x".into(),
        format!("http://127.0.0.1:{port}/x.whl"),
        format!("x @ http://127.0.0.1:{port}/x.whl"),
        "--config-settings=a".into(),
        "x;id".into(),
        "$(id)".into(),
        "x\ny".into(),
        "x[--y]".into(),
        "npm:evil@1".into(),
        "github:u/r".into(),
        "@scope/../../x".into(),
        "link:/etc".into(),
        "requests==2.*; python_version>\"0\" --hash=x".into(),
        long,
    ];
    let home = hotcell.home();
    let mut client = raw::Stdio::open_as(&[], |command, _| {
        command
            .env("HOTCELL_PYPI_INDEX", registry.pypi())
            .env("HOME", &home)
            .env("PATH", PATH);
    });
    for text in &hostile {
        for packages in [json!([text]), json!({ "x": text })] {
            let result = client.call(
                "run",
                json!({ "code": "print(1)", "language": "python", "packages": packages }),
            );
            let facts = &result["structuredContent"];
            assert_eq!(
                (&facts["status"], &facts["error"]["kind"]),
                (&"rejected".into(), &"invalid_request".into()),
                "{text:.80}: {facts}"
            );
        }
    }
    let many: Vec<String> = (0..5000).map(|n| format!("p{n}")).collect();
    let result = client.call(
        "run",
        json!({ "code": "print(1)", "language": "python", "packages": many }),
    );
    assert_eq!(
        result["structuredContent"]["error"]["kind"],
        "invalid_request"
    );
    assert_eq!((canary.reached(), registry.asked()), (0, 0));
    // Control: a name that is one gets as far as the registry.
    let result = client.call(
        "run",
        json!({ "code": "print(1)", "language": "python", "packages": ["plain-name"] }),
    );
    assert_eq!(result["structuredContent"]["status"], "failed", "{result}");
    assert!(registry.asked() > 0);
}

#[test]
fn pkg04_no_file_and_no_variable_of_a_request_chooses_the_registry() {
    let Some(hotcell) = anyone().filter(|_| has("python3") && installer().is_some()) else {
        return;
    };
    let (registry, canary) = (Registry::start(), Canary::start());
    registry.add(
        "plainthing",
        "1.0",
        OLD,
        &wheel("plainthing", "1.0", &[("plainthing.py", "")], &[]),
    );
    let evil = format!("http://127.0.0.1:{}/simple", canary.port);
    let files = [
        ("pip.conf", format!("[global]\nindex-url = {evil}\n")),
        (
            "uv.toml",
            format!("[[index]]\nurl = \"{evil}\"\ndefault = true\n"),
        ),
        (
            "pyproject.toml",
            format!("[[tool.uv.index]]\nurl = \"{evil}\"\ndefault = true\n"),
        ),
        ("setup.cfg", format!("[easy_install]\nindex_url = {evil}\n")),
        (".npmrc", format!("registry={evil}\n")),
    ];
    let mut arguments: Vec<String> = Vec::new();
    for (name, text) in files {
        let file = hotcell.write(&format!("work/{name}"), text);
        arguments.extend(["--file".to_owned(), file.display().to_string()]);
    }
    for name in [
        "PIP_INDEX_URL",
        "UV_INDEX_URL",
        "UV_DEFAULT_INDEX",
        "UV_EXTRA_INDEX_URL",
        "NPM_CONFIG_REGISTRY",
        "UV_CONFIG_FILE",
    ] {
        arguments.extend(["--env".to_owned(), format!("{name}={evil}")]);
    }
    let mut words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    words.extend(["-c", "import plainthing; print('ok')"]);
    let answer = run(&hotcell, &registry, &words);
    assert_eq!(answer.out(), "ok\n", "{}", answer.err());
    assert_eq!(canary.reached(), 0);
    assert!(registry.asked() > 0);
}

#[test]
fn pkg05_no_program_can_change_or_list_what_others_import() {
    if !has("python3") || installer().is_none() {
        return;
    }
    for hotcell in everyone() {
        no_program_changes_what_others_import(&hotcell);
    }
}

pub fn no_program_changes_what_others_import(hotcell: &Hotcell) {
    let code = r#"
import os, plainthing
folder = os.path.dirname(plainthing.__file__)
print(plainthing.WORD, folder.startswith('/opt/packages/'))
for work in (lambda: open(plainthing.__file__, 'w'), lambda: open(folder + '/new.py', 'w'), lambda: os.remove(plainthing.__file__),
             lambda: os.listdir('/opt/packages'), lambda: os.chmod('/opt/packages', 0o777), lambda: os.rename(folder, folder + 'x')):
    try: work(); print('BREACH')
    except OSError as error: print('SAFE')
"#;
    let registry = Registry::start();
    registry.add(
        "plainthing",
        "1.0",
        OLD,
        &wheel(
            "plainthing",
            "1.0",
            &[("plainthing.py", "WORD = 'own'\n")],
            &[],
        ),
    );
    for _ in 0..2 {
        let answer = run(hotcell, &registry, &["-c", code]);
        let expected = format!("own True\n{}", "SAFE\n".repeat(6));
        assert_eq!(answer.out(), expected, "{}: {}", hotcell.name, answer.err());
    }
}

#[test]
fn pkg07_a_wheel_writes_into_its_own_folder_only() {
    let Some(hotcell) = anyone().filter(|_| has("python3") && installer().is_some()) else {
        return;
    };
    let registry = Registry::start();
    let mark = hotcell.place("home/slipped");
    let slip = format!("../../../../../../../..{}", mark.display());
    for (name, path) in [
        ("slipone", slip.as_str()),
        ("sliptwo", mark.to_str().unwrap()),
        ("slipthree", "../../evil.py"),
    ] {
        let info = format!("{name}-1.0.dist-info");
        let files = [
            (format!("{name}.py"), String::new()),
            (path.to_owned(), "BREACH".to_owned()),
            (
                format!("{info}/METADATA"),
                format!("Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"),
            ),
            (
                format!("{info}/WHEEL"),
                "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
                    .to_owned(),
            ),
            (format!("{info}/RECORD"), String::new()),
        ];
        registry.add(name, "1.0", OLD, &zip(&files));
        let _ = run(&hotcell, &registry, &["--package", name, "-c", "0"]);
        assert!(!mark.exists(), "{name}");
    }
    // A path file is code, and runs in the program's cell at most; a script named like a runtime is none.
    let files = [
        ("pathwheel.py", "WORD = 1\n"),
        (
            "pathwheel.pth",
            &format!("import os; os.system('touch {}')\n", mark.display()),
        ),
        ("pathwheel-1.0.data/scripts/sh", "#!/bin/sh\necho BREACH\n"),
    ];
    registry.add(
        "pathwheel",
        "1.0",
        OLD,
        &wheel("pathwheel", "1.0", &files, &[]),
    );
    let answer = run(
        &hotcell,
        &registry,
        &[
            "-c",
            "import pathwheel, subprocess; print(pathwheel.WORD, subprocess.check_output(['sh', '-c', 'echo 2']))",
        ],
    );
    assert_eq!(answer.out(), "1 b'2\\n'\n", "{}", answer.err());
    assert!(!mark.exists());
}

#[test]
fn pkg11_a_registry_that_misbehaves_ends_the_install_with_a_reason_and_nothing_else() {
    let Some(hotcell) = anyone().filter(|_| has("python3") && installer().is_some()) else {
        return;
    };
    let registry = Registry::start();
    registry.add(
        "circleone",
        "1.0",
        OLD,
        &wheel("circleone", "1.0", &[("circleone.py", "")], &["circletwo"]),
    );
    registry.add(
        "circletwo",
        "1.0",
        OLD,
        &wheel("circletwo", "1.0", &[("circletwo.py", "")], &["circleone"]),
    );
    let circle = json(&hotcell, &registry, &["-c", "import circleone"]);
    assert_eq!(circle["status"], "ok", "{circle}");

    let bytes = wheel("brokenthing", "1.0", &[("brokenthing.py", "")], &[]);
    registry.add("brokenthing", "1.0", OLD, &bytes);
    // Other bytes than the page promises, a page that is none, a link to another machine.
    let mut other = bytes.clone();
    other.extend_from_slice(b"more");
    registry.replace("brokenthing", "1.0", &other);
    registry.add_page("/simple/pageless/", "\u{0}\u{1}<a href=\"");
    let canary = Canary::start();
    let link = format!(
        "<a href=\"http://127.0.0.1:{}/x-1.0-py3-none-any.whl#sha256={}\" data-upload-time=\"{OLD}\">x-1.0-py3-none-any.whl</a>",
        canary.port,
        hex(&Sha256::digest(&bytes))
    );
    registry.add_page("/simple/elsewhere/", link);
    for name in ["brokenthing", "pageless", "elsewhere"] {
        let output = json(
            &hotcell,
            &registry,
            &["--package", name, "-c", "print('ran')"],
        );
        assert_eq!(
            (&output["status"], &output["stdout"]),
            (&"failed".into(), &"".into()),
            "{name}: {output}"
        );
        assert!(
            output["error"]["message"].as_str().unwrap().contains(name),
            "{output}"
        );
    }
    assert_eq!(canary.reached(), 0, "a page sent us to another server");
    let staging = hotcell.home().join(".cache/hotcell/packages/staging");
    assert_eq!(
        std::fs::read_dir(staging).expect("it is there").count(),
        0,
        "something is left"
    );
    let after = json(&hotcell, &registry, &["-c", "import circleone"]);
    assert_eq!(
        (&after["status"], &after["packages"]["cached"]),
        (&"ok".into(), &true.into())
    );
}
