//! A victim beside eight hostile neighbours on one server: whatever they take, its answers are right.
//!
//! How long they take is for `scripts/interference` to say, which runs the same programs.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::mcp::client::Client;
use crate::raw::record;
use crate::support::everyone;

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
