//! A victim beside eight hostile neighbours on one server: whatever they take, its answers are right.
//!
//! How long they take is for `scripts/interference` to say, which runs the same programs. Here it is asked what the kernel shares processors out by.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::mcp::client::Client;
use crate::raw::record;
use crate::support::left::children;
use crate::support::{Hotcell, PATIENCE, eventually, everyone, ordinary, with_ids};

/// Each goes on for as long as it is let; those that are ended are started again.
const HOSTILE: [(&str, &str); 8] = [
    ("cpu", include_str!("../attacks/neighbours/cpu.py")),
    ("memory", include_str!("../attacks/neighbours/memory.py")),
    ("forks", include_str!("../attacks/neighbours/forks.py")),
    ("files", include_str!("../attacks/neighbours/files.py")),
    ("watches", include_str!("../attacks/neighbours/watches.py")),
    (
        "descriptors",
        include_str!("../attacks/neighbours/descriptors.py"),
    ),
    ("output", include_str!("../attacks/neighbours/output.py")),
    ("signals", include_str!("../attacks/neighbours/signals.py")),
];

/// What the victim runs, and what it must print.
const VICTIM: [(&str, &str, &str); 4] = [
    ("python", "print(sum(range(1000)))", "499500\n"),
    (
        "python",
        "import os, socket, subprocess\none, two = socket.socketpair(); one.send(b'x'); print(two.recv(1))\n\
         open('/tmp/a', 'w').write('y' * 100000); print(os.path.getsize('/tmp/a'))\n\
         print(subprocess.run(['echo', 'z'], capture_output=True).stdout)",
        "b'x'\n100000\nb'z\\n'\n",
    ),
    ("bash", "echo $((6 * 7)) | tr 4 5", "52\n"),
    (
        "python",
        "import select; pair = __import__('os').pipe(); poll = select.epoll(); poll.register(pair[0]); print(len(poll.poll(0)))",
        "0\n",
    ),
];

fn start(client: &mut Client, code: &str) -> u64 {
    let arguments = json!({ "language": "python", "code": code, "timeout": 300, "memory": "128M" });
    client.post(
        "tools/call",
        json!({ "name": "run", "arguments": arguments }),
    )
}

/// The answer to one of these requests that has come by now.
fn ended(client: &mut Client, running: &BTreeMap<u64, usize>) -> Option<(u64, Value)> {
    let id = |message: &Value| message["id"].as_u64().filter(|id| running.contains_key(id));
    let message = client.wait_for(Duration::ZERO, |message| id(message).is_some())?;
    Some((id(&message)?, message["result"].clone()))
}

#[test]
fn a_victim_beside_eight_hostile_neighbours_gets_the_right_answers() {
    for hotcell in everyone() {
        let mut command = hotcell.command();
        // A place for each of them, and for the victim.
        command.args(["serve", "--max-runs", "16"]);
        let mut client = Client::of(command);
        client.begin();
        let mut running = BTreeMap::new();
        for (number, (_, code)) in HOSTILE.iter().enumerate() {
            running.insert(start(&mut client, code), number);
        }
        let mut ends: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        let mut rounds = 0;
        // Until one was ended for what it did, and longer than that takes.
        while rounds < 6 || (!ends.contains_key("memory") && rounds < 100) {
            for (language, code, printed) in VICTIM {
                let asked = json!({ "language": language, "code": code, "timeout": 120 });
                let facts = record(&client.run(asked));
                assert_eq!(facts["status"], "ok", "{}: {facts}", hotcell.name);
                assert_eq!(facts["stdout"], printed, "{}: {facts}", hotcell.name);
            }
            while let Some((id, result)) = ended(&mut client, &running) {
                let number = running.remove(&id).expect("it ran");
                let (name, code) = HOSTILE[number];
                let kind = record(&result)["error"]["kind"].clone();
                let kind = kind.as_str().unwrap_or("nothing").to_owned();
                ends.entry(name).or_default().push(kind);
                running.insert(start(&mut client, code), number);
            }
            rounds += 1;
        }
        println!("{}: {rounds} rounds, {ends:?}", hotcell.name);
        // The control: they were at it. What one was ended for is its own, and the others have never ended.
        for (name, kinds) in &ends {
            let expected = match *name {
                "memory" => "memory",
                "output" => "output",
                other => panic!("{other} ended: {kinds:?}"),
            };
            assert!(
                kinds.iter().all(|kind| kind == expected),
                "{}: {name}: {kinds:?}",
                hotcell.name
            );
        }
        assert!(ends.contains_key("memory"), "{}: {ends:?}", hotcell.name);
        client.close();
    }
}

/// Six sessions with two threads each that never rest. When one is lowered it asks for its priority back.
const MANY: &str = r#"
import os, threading, time
def spin():
    while True:
        pass
ends, end = os.pipe()
for _ in range(6):
    if os.fork() == 0:
        os.setsid()
        threading.Thread(target=spin, daemon=True).start()
        # Where a cgroup divides the processors nothing is ever lowered.
        while os.getpriority(os.PRIO_PROCESS, 0) == 0 and time.process_time() < LONGEST:
            pass
        taken = []
        try:
            os.setpriority(os.PRIO_PROCESS, 0, 0)
            taken = ['nice'] if os.getpriority(os.PRIO_PROCESS, 0) == 0 else []
        except OSError:
            pass
        try:
            with open('/proc/self/autogroup', 'w') as file:
                file.write('0')
            taken.append('autogroup')
        except OSError:
            pass
        os.write(end, (','.join(taken) or 'nothing').encode() + b'\n')
        while True:
            pass
with os.fdopen(ends) as lines:
    for _ in range(6):
        print('taken back:', next(lines).strip(), flush=True)
print('all', flush=True)
time.sleep(600)
"#;

/// What the threads weigh that can run below `server`, and the scheduler groups of their sessions, beside one at the usual priority.
fn weights(server: u32) -> (f64, f64) {
    let weight = |nice: &str| 0.8_f64.powi(nice.parse().expect("a number"));
    let (mut threads, mut sessions) = (0.0, BTreeSet::new());
    let mut pids = children(server);
    while let Some(pid) = pids.pop() {
        pids.extend(children(pid));
        let group = fs::read_to_string(format!("/proc/{pid}/autogroup")).unwrap_or_default();
        let tasks = fs::read_dir(format!("/proc/{pid}/task"));
        for task in tasks.into_iter().flatten().flatten() {
            let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
            let fields: Vec<&str> = fields.split_whitespace().collect();
            if fields.first() == Some(&"R") {
                threads += weight(fields[16]);
                sessions.insert(group.trim_end().to_owned());
            }
        }
    }
    let nices = sessions.iter().filter_map(|it| it.rsplit_once("nice "));
    (threads, nices.map(|(_, nice)| weight(nice)).sum())
}

#[test]
fn a_program_has_no_more_of_the_processors_for_many_sessions_and_threads() {
    let run = |hotcell: &Hotcell, longest: &str| {
        let code = MANY.replace("LONGEST", longest);
        let mut run = hotcell.start(&["-l", "python", "--timeout", "300", "-c", &code]);
        let said = run.stdout.until("all\n");
        (run, said)
    };
    for hotcell in [ordinary(), with_ids()].into_iter().flatten() {
        let report = hotcell.json(&["-l", "python", "-c", "0"]);
        let walls = report["isolation"]["walls"].as_array().expect("walls");
        let is_grouped = |wall: &Value| wall["name"] == "control groups" && wall["stands"] == true;
        if walls.iter().any(is_grouped) {
            println!("{}: a cgroup divides the processors", hotcell.name);
            continue;
        }
        let (run, said) = run(&hotcell, "60");
        let mut last = (0.0, 0.0);
        let lowered = eventually(PATIENCE, || {
            last = weights(run.pid());
            // Sessions of another uid than the server's keep theirs.
            last.0 > 0.0 && last.0 < 0.4 && (last.1 < 0.4 || hotcell.name == "user with ids")
        });
        assert!(lowered, "{}: they weigh {last:?}", hotcell.name);
        assert_eq!(said.matches("taken back: nothing").count(), 6, "{said}");
    }
    // The control: where a cgroup divides them nobody is lowered, and they weigh as many as they are.
    for hotcell in everyone().iter().filter(|hotcell| hotcell.uid == 0) {
        let (run, _) = run(hotcell, "0.5");
        let mut last = (0.0, 0.0);
        let seen = eventually(PATIENCE, || {
            last = weights(run.pid());
            last.0 > 2.0
        });
        assert!(seen, "{last:?}");
    }
}
