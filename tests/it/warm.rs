//! A worker that waited for its program is as alone as one that was started for it: nothing of
//! another run is in it, and what it does to the one that waited for it costs only its own run.
//!
//! All of this must hold for cold cells too, and does not ask which it got.

mod bounds;
mod gathered;
mod liar;

use std::collections::HashSet;
use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::limits::COUNT_PROCESSORS;
use crate::mcp::client::Client;
use crate::raw;
use crate::support::{Hotcell, PATH, PATIENCE, anyone, eventually, everyone, has, open_to_all};

/// More runs than any pool has workers, so that some worker was made after the first run.
const RUNS: usize = 24;

/// Time for a runtime to start and wait.
const PAUSE: Duration = Duration::from_millis(150);

/// What a program must draw for itself, one to a line. numpy's only where it is installed.
const RANDOM: &str = "
import os, random, secrets, ssl, tempfile, uuid
print('random', random.random())
print('randrange', random.randrange(1 << 60))
print('Random', random.Random().random())
print('urandom', os.urandom(8).hex())
print('uuid4', uuid.uuid4())
print('secrets', secrets.token_hex(8))
print('ssl', ssl.RAND_bytes(8).hex())
print('tempfile', tempfile.mkdtemp())
try:
    import numpy
except ImportError:
    pass
else:
    print('numpy', numpy.random.random())
    print('default_rng', numpy.random.default_rng().random())
";

const RANDOM_JS: &str = "
const crypto = require('crypto');
console.log('Math', Math.random());
console.log('uuid', crypto.randomUUID());
console.log('bytes', crypto.randomBytes(8).toString('hex'));
";

/// What stands around a program, as it can see it.
const WALLS: &str = r#"
import ctypes, os, resource
names = 'Uid Gid Groups CapInh CapPrm CapEff CapBnd CapAmb NoNewPrivs Seccomp NSpid PPid SigBlk SigIgn SigCgt'.split()
for line in open('/proc/self/status'):
    if line.split(':')[0] in names: print(line.strip())
for name in 'CPU FSIZE NOFILE NPROC STACK CORE MEMLOCK AS'.split():
    print(name, resource.getrlimit(getattr(resource, 'RLIMIT_' + name)))
print(sorted(os.listdir('/')), sorted(os.listdir('/proc/self/fd')), os.getsid(0), os.getcwd(), sorted(os.environ))
print(sorted(line.split()[4] for line in open('/proc/self/mountinfo')), open('/proc/self/cgroup').read())
for path in ['/host', '/mask', '/facts', '/cell', '/zygote.so', '/proc/1/fd', '/proc/1/mem']: print(path, os.path.exists(path))
def denied(work):
    try: return work()
    except OSError as error: return error.errno
print(denied(lambda: os.chroot('/')), denied(lambda: open('/usr/x', 'w')), denied(lambda: os.setuid(0)))
libc = ctypes.CDLL(None, use_errno=True)
for number in [165, 272, 308, 425]: print(number, libc.syscall(number, 0, 0, 0, 0), ctypes.get_errno())
"#;

#[test]
fn a_cell_that_waited_has_the_walls_of_a_new_one() {
    if !has("python3") {
        return;
    }
    let trusts: [&[&str]; 2] = [&[], &["--trust", "separate"]];
    for (hotcell, trust) in everyone()
        .iter()
        .flat_map(|it| trusts.map(|trust| (it, trust)))
    {
        let mut client = serve_with(hotcell, trust);
        let program = |_| json!({ "code": WALLS, "language": "python" });
        // A run with arguments gets a new cell.
        let with_args = |_| json!({ "code": WALLS, "language": "python", "args": ["x"] });
        let new = many(&mut client, 1, with_args).remove(0);
        assert_eq!(new["status"], "ok", "{new}");
        assert!(
            new["stdout"]
                .as_str()
                .expect("text")
                .contains("NoNewPrivs:\t1"),
            "{new}"
        );
        for waited in many(&mut client, RUNS, program) {
            assert_eq!(waited["stdout"], new["stdout"], "{}", hotcell.name);
        }
    }
}

#[test]
fn what_the_starter_of_a_server_ignores_is_not_ignored_in_a_cell_that_waited() {
    if !has("python3") {
        return;
    }
    let mut command = Command::new("env");
    command.args([
        "--ignore-signal=QUIT",
        env!("CARGO_BIN_EXE_hotcell"),
        "serve",
    ]);
    let mut client = Client::of(command);
    client.begin();
    let code = "import os; os.kill(os.getpid(), 3)";
    for _ in 0..8 {
        let result = client.run(json!({ "code": code, "language": "python" }));
        let how = &result["structuredContent"];
        assert_eq!(how["status"], "killed", "{result}");
        assert_eq!(how["signal"], "SIGQUIT", "{result}");
    }
}

#[test]
fn no_two_runs_draw_the_same_random_numbers() {
    for hotcell in everyone() {
        for (language, program, code) in [
            ("python", "python3", RANDOM),
            ("javascript", "node", RANDOM_JS),
        ] {
            if !has(program) {
                continue;
            }
            let mut client = serve(&hotcell);
            let mut seen = HashSet::new();
            for output in many(
                &mut client,
                RUNS,
                |_| json!({ "code": code, "language": language }),
            ) {
                assert_eq!(output["status"], "ok", "{output}");
                for line in output["stdout"].as_str().expect("text").lines() {
                    assert!(
                        seen.insert(line.to_owned()),
                        "two runs of {language} drew {line}"
                    );
                }
            }
            assert!(seen.len() >= 3 * RUNS);
        }
    }
}

#[test]
fn the_hash_secret_and_the_addresses_of_a_cold_program_are_its_own() {
    // Programs that were forked from one interpreter share both, which is why callers that
    // distrust each other get workers of their own making.
    let code = "print(hash('a'))\nprint(id([]))";
    for hotcell in everyone() {
        if !has("python3") {
            return;
        }
        let mut seen = HashSet::new();
        for _ in 0..4 {
            let output = hotcell.json(&["-l", "python", "-c", code]);
            let lines = output["stdout"].as_str().expect("text").to_owned();
            for line in lines.lines() {
                assert!(seen.insert(line.to_owned()), "again: {line}");
            }
        }
        assert_eq!(seen.len(), 8);
    }
}

/// Its hash secret, where its libc lies, and whether it waited.
const LAYOUT: &str = "
maps = open('/proc/self/maps').read()
print(hash('a'))
print([line.split('-')[0] for line in maps.splitlines() if 'libc.so' in line][0])
print('zygote' in maps)";

#[test]
fn callers_that_distrust_each_other_share_neither_addresses_nor_hash_secret() {
    if !has("python3") {
        return;
    }
    for hotcell in everyone() {
        let layouts = |trust: &[&str]| {
            let mut client = serve_with(&hotcell, trust);
            let mut seen: [HashSet<String>; 2] = Default::default();
            let mut waited = 0;
            let enough = eventually(PATIENCE, || {
                thread::sleep(PAUSE);
                let output = client.run(json!({ "code": LAYOUT, "language": "python" }));
                let lines = output["stdout"].as_str().expect("text").lines();
                let lines: Vec<_> = lines.collect();
                assert_eq!(lines.len(), 3, "{output}");
                // One that is new has the library too.
                if output["runtime"]["start"] == "warm" {
                    assert_eq!(lines[2], "True", "{output}");
                    waited += 1;
                    seen[0].insert(lines[0].to_owned());
                    seen[1].insert(lines[1].to_owned());
                }
                waited == 5
            });
            assert!(enough, "{waited} of 5 waited");
            seen.map(|seen| seen.len())
        };
        let seen = layouts(&["--trust", "separate"]);
        assert_eq!(seen, [5, 5], "{}", hotcell.name);
        // Control: those that trust each other share both.
        assert_eq!(layouts(&[]), [1, 1], "{}", hotcell.name);
    }
}

#[test]
fn a_user_names_what_waiting_interpreters_have_loaded() {
    let Some(hotcell) = anyone() else { return };
    if !has("python3") {
        return;
    }
    // No program would see this one, but it shows where the module came from.
    let tiers =
        "[[python]]\nmodules = ['colorsys']\nbefore = 'import colorsys; colorsys.mark = 7'\n";
    let code = "import colorsys\nprint(getattr(colorsys, 'mark', None))";
    let call = json!({ "code": code, "language": "python" });
    // Control: nobody else's has it.
    assert_eq!(serve(&hotcell).run(call.clone())["stdout"], "None\n");
    let mut client = raw::Stdio::start_as(&[], |command, home| {
        let folder = home.join("config/hotcell");
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("warm.toml"), tiers).expect("a file");
        for path in [home, &home.join("config"), &folder] {
            open_to_all(path);
        }
        hotcell.dress(command);
        command
            .env("XDG_CONFIG_HOME", home.join("config"))
            .env("PATH", PATH)
            .stdin(Stdio::piped());
    });
    client.initialize("2025-11-25");
    let loaded = eventually(PATIENCE, || client.run(call.clone())["stdout"] == "7\n");
    assert!(loaded);
}

#[test]
fn whoever_counts_processors_in_a_pre_started_cell_comes_to_one_number() {
    let code = format!("{COUNT_PROCESSORS}\nprint('zygote' in open('/proc/self/maps').read())");
    for hotcell in everyone() {
        let mut client = serve(&hotcell);
        let prestarted = eventually(PATIENCE, || {
            thread::sleep(PAUSE);
            let output = client.run(json!({ "code": code, "language": "python" }));
            let told: Vec<&str> = output["stdout"].as_str().expect("text").lines().collect();
            let [counts, prestarted] = told[..] else {
                panic!("{output}");
            };
            counts.parse::<u32>().expect("one number");
            prestarted == "True" && output["runtime"]["start"] == "warm"
        });
        assert!(prestarted, "no python is pre-started as {}", hotcell.name);
    }
}

/// What says that a program waited for its code: our library is there.
const WAITED: [(&str, &str, &str); 6] = [
    (
        "python",
        "python3",
        "print('zygote' in open('/proc/self/maps').read())",
    ),
    (
        "javascript",
        "node",
        "console.log(require('fs').readFileSync('/proc/self/maps', 'utf8').includes('zygote'))",
    ),
    (
        "shellscript",
        "bash",
        "grep -q zygote /proc/$$/maps && echo true || echo false",
    ),
    (
        "perl",
        "perl",
        "open my $f, '<', '/proc/self/maps'; print grep({ /zygote/ } <$f>) ? 'true' : 'false'",
    ),
    (
        "ruby",
        "ruby",
        "puts File.read('/proc/self/maps').include?('zygote')",
    ),
    (
        "php",
        "php",
        "<?php echo str_contains(file_get_contents('/proc/self/maps'), 'zygote') ? 'true' : 'false';",
    ),
];

#[test]
fn the_second_program_of_a_language_finds_a_runtime_that_waits() {
    for hotcell in everyone() {
        let mut client = serve(&hotcell);
        for (language, program, code) in WAITED {
            if !has(program) {
                continue;
            }
            let waited = eventually(PATIENCE, || {
                thread::sleep(PAUSE);
                let output = client.run(json!({ "code": code, "language": language }));
                let told = output["stdout"].as_str().expect("text").trim();
                output["runtime"]["start"] == "warm" && told.eq_ignore_ascii_case("true")
            });
            assert!(waited, "no {language} waits as {}", hotcell.name);
            let waited = eventually(PATIENCE, || {
                thread::sleep(PAUSE);
                let output =
                    client.run(json!({ "code": code, "language": language, "stdin": "x" }));
                let told = output["stdout"].as_str().expect("text").trim();
                output["runtime"]["start"] == "warm" && told.eq_ignore_ascii_case("true")
            });
            assert!(waited, "no {language} waits for input as {}", hotcell.name);
            // Control: arguments get a new cell, and there is nothing of ours in it but in Python, whose output is gathered.
            let new = client.run(json!({ "code": code, "language": language, "args": ["x"] }));
            let told = new["stdout"].as_str().expect("text").trim();
            let has_library = language == "python";
            assert_eq!(told.eq_ignore_ascii_case("true"), has_library, "{new}");
            assert_eq!(new["runtime"]["start"], "cold", "{new}");
        }
    }
}

/// Looks for 32 bytes in all memory it can read. It is told them masked, and masks what it reads
/// instead of unmasking them, so that it does not find itself.
const SCAN: &str = "
import os, sys
masked = bytes.fromhex(sys.argv[1])
table = bytes(byte ^ 0x5a for byte in range(256))
memory = os.open('/proc/self/mem', os.O_RDONLY)
found, looked = 0, 0
for line in open('/proc/self/maps'):
    place, rights = line.split()[:2]
    if rights[0] != 'r' or '[v' in line:
        continue
    at, end = (int(word, 16) for word in place.split('-'))
    while at < end:
        try:
            piece = os.pread(memory, min(1 << 20, end - at), at)
        except OSError:
            break
        found += piece.translate(table).count(masked)
        looked += len(piece)
        if len(piece) < 32 or at + len(piece) >= end:
            break
        # Overlapping: it may lie across two pieces.
        at += len(piece) - 31
assert looked > 1 << 20, looked
print('found' if found else 'nothing')
";

#[test]
fn nothing_of_a_former_program_is_in_the_memory_of_a_later_one() {
    for hotcell in everyone() {
        if !has("python3") {
            return;
        }
        let mut client = serve(&hotcell);
        let marker = &raw::fresh_word()[1..33];
        let masked: String = marker
            .bytes()
            .map(|byte| format!("{:02x}", byte ^ 0x5a))
            .collect();
        // Control: who was told the marker is found out by its own scan.
        let told = json!({ "code": SCAN, "language": "python", "args": [masked, marker] });
        assert_eq!(client.run(told)["stdout"], "found\n");

        let code = format!(
            "import sys, os\nx = sys.argv + [sys.stdin.read(), open('f').read(), '{marker}']\n\
             open('/tmp/{marker}', 'w').write('{marker}')\nos.environ['X'] = '{marker}'\nprint(x)\n\
             raise ValueError('{marker}')"
        );
        let full = json!({
            "code": code, "language": "python", "args": [marker], "stdin": marker, "files": { "f": marker },
        });
        let mut languages = vec!["shellscript"];
        languages.extend(has("node").then_some("javascript"));
        for language in languages {
            let code = format!("// 2>/dev/null; true {marker}");
            client.run(
                json!({ "code": code, "language": language, "args": [marker], "stdin": marker }),
            );
        }
        for round in many(&mut client, 2 * RUNS, |n| match n % 2 {
            0 => full.clone(),
            _ => json!({ "code": SCAN, "language": "python", "args": [masked] }),
        })
        .chunks(2)
        {
            assert_eq!(round[0]["error"]["kind"], "exception", "{}", round[0]);
            assert_eq!(round[1]["stdout"], "nothing\n", "{}", round[1]);
        }
    }
}

#[test]
fn nothing_that_a_former_program_left_is_found_by_a_later_one() {
    let leave = "
import os, subprocess
for folder in ('/tmp', '/dev/shm', '/workspace', '/workspace/.home'):
    open(folder + '/left', 'w').write('x')
subprocess.Popen(['sleep', '30'], start_new_session=True)
print('left')";
    let look = "
import os
for folder in ('/tmp', '/dev/shm', '/workspace', '/workspace/.home'):
    print(folder, 'left' in os.listdir(folder))
print('others', len([name for name in os.listdir('/proc') if name.isdigit()]) > 1)";
    for hotcell in everyone() {
        if !has("python3") {
            return;
        }
        let mut client = serve(&hotcell);
        // Control: in the cell of who left it, it is there.
        let both = client.run(json!({ "code": format!("{leave}\n{look}"), "language": "python" }));
        let both = both["stdout"].as_str().expect("text").to_owned();
        assert_eq!(both.matches("True").count(), 5, "{both}");
        for round in many(
            &mut client,
            RUNS,
            |n| json!({ "code": if n % 2 == 0 { leave } else { look }, "language": "python" }),
        )
        .chunks(2)
        {
            let found = round[1]["stdout"].as_str().expect("text");
            assert_eq!(found.matches("False").count(), 5, "{found}");
        }
    }
}

/// A server whose runtimes are those of the tests.
fn serve(hotcell: &Hotcell) -> raw::Stdio {
    serve_with(hotcell, &[])
}

fn serve_with(hotcell: &Hotcell, options: &[&str]) -> raw::Stdio {
    let mut client = raw::Stdio::start_as(options, |command, _| {
        hotcell.dress(command);
        command.env("PATH", PATH).stdin(Stdio::piped());
    });
    client.initialize("2025-11-25");
    client
}

/// The records of so many runs, in order, four of them in flight at a time.
fn many(client: &mut raw::Stdio, count: usize, call: impl Fn(usize) -> Value) -> Vec<Value> {
    let mut records = Vec::new();
    for start in (0..count).step_by(4) {
        let ids: Vec<Value> = (start..count.min(start + 4))
            .map(|n| client.begin_call("run", call(n)))
            .collect();
        for id in ids {
            records.push(raw::record(&client.answer(&id)["result"]));
        }
    }
    records
}
