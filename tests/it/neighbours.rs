//! What sandboxes share without meaning to: inodes that they can lock and watch, and what the kernel counts.

mod subordinate;

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};

use crate::mcp::client::Client;
use crate::raw::record;
use crate::support::{Hotcell, everyone};

/// Files and folders that every sandbox sees, by whom they come from.
const SEEN: &str = r#"
import ctypes, fcntl, os, socket, struct, sys
devices = ['/dev/null', '/dev/zero', '/dev/full', '/dev/random', '/dev/urandom']
others = [
    '/', '/etc', '/etc/passwd', '/etc/hosts', '/etc/ld.so.cache', '/etc/localtime', '/etc/ssl/certs', '/etc/alternatives',
    '/etc/ssl/certs/ca-certificates.crt', '/dev', '/opt', '/usr', '/usr/bin', '/usr/bin/env', '/proc/self/exe', os.path.realpath(sys.executable),
    '/proc/cmdline', '/proc/bus', '/proc/meminfo', '/proc/sys/fs/file-nr',
]
# Each inode once: two paths to one would be locked twice.
seen = list({(os.stat(path).st_dev, os.stat(path).st_ino): path for path in devices + others if os.path.exists(path)}.values())
libc = ctypes.CDLL(None, use_errno=True)
"#;

/// Locks them all, and watches who opens them.
const HOLD: &str = r#"
held = {path: os.open(path, os.O_RDONLY) for path in seen}
for fd in held.values():
    fcntl.flock(fd, fcntl.LOCK_EX)
queue = libc.inotify_init1(os.O_NONBLOCK)
IN_OPEN = 0x20
watched = {libc.inotify_add_watch(queue, path.encode(), IN_OPEN): path for path in seen}
def opened():
    found = set()
    try:
        while events := os.read(queue, 65536):
            while events:
                watch, _, _, size = struct.unpack_from('iIII', events)
                found.add(watched.get(watch, '?'))
                events = events[16 + size:]
    except BlockingIOError:
        pass
    return sorted(found)
sorted(held) == sorted(seen) and -1 not in watched
"#;

/// Opens them all, and says which somebody has locked.
const TRY: &str = r#"
def refused():
    found = []
    for path in seen:
        fd = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            found.append(path)
        os.close(fd)
    return sorted(found)
refused()
"#;

const DEVICES: [&str; 5] = [
    "/dev/full",
    "/dev/null",
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
];

fn serve(hotcell: &Hotcell) -> Client {
    let mut command = hotcell.command();
    command.arg("serve");
    let mut client = Client::of(command);
    client.begin();
    client
}

fn call(client: &mut Client, session: &str, code: &str) -> Value {
    let facts =
        record(&client.run(json!({ "session": session, "language": "python", "code": code })));
    assert_eq!(facts["status"], "ok", "{facts}");
    facts["value"].clone()
}

fn run(client: &mut Client, code: &str) -> String {
    let facts = record(&client.run(json!({ "language": "python", "code": code })));
    assert_eq!(facts["status"], "ok", "{facts}");
    facts["stdout"].as_str().unwrap_or_default().to_owned()
}

/// Opens a file of the host, and says whether somebody keeps it from everybody else.
fn is_locked(path: &Path) -> bool {
    let file = File::open(path).expect("a file of the host");
    flock(&file, FlockOperation::NonBlockingLockShared).is_err()
}

#[test]
fn nobody_locks_or_watches_what_others_see() {
    for hotcell in everyone() {
        // The same server, where both are copies of one interpreter, and another one.
        let (mut client, mut other) = (serve(&hotcell), serve(&hotcell));
        call(&mut client, "a", SEEN);
        assert_eq!(call(&mut client, "a", HOLD), json!(true));
        let missing = |wall: &str| {
            let result = hotcell.json(&["-l", "sh", "-c", "true"]);
            let walls = result["isolation"]["walls"].as_array().unwrap().clone();
            walls
                .iter()
                .any(|found| found["name"] == wall && found["stands"] == false)
        };
        // What the report says is missing, and nothing else, is shared.
        let shared = match missing("private devices") {
            true => json!(DEVICES),
            false => json!([]),
        };
        assert_eq!(shared == json!([]), hotcell.uid == 0, "{}", hotcell.name);
        assert!(!missing("private inodes"), "{}", hotcell.name);

        call(&mut client, "b", SEEN);
        call(&mut other, "b", SEEN);
        call(&mut client, "a", "opened(); None");
        assert_eq!(call(&mut client, "b", TRY), shared, "{}", hotcell.name);
        assert_eq!(call(&mut other, "b", TRY), shared, "{}", hotcell.name);
        let witness = DEVICES.iter().any(|path| is_locked(Path::new(path)));
        assert_eq!(witness, shared != json!([]), "{}", hotcell.name);
        for path in ["/etc/ld.so.cache", "/etc/localtime", "/usr/bin/env", "/usr"] {
            assert!(!is_locked(Path::new(path)), "{}: {path}", hotcell.name);
        }
        let seen = call(&mut client, "a", "opened()");
        // Files of the tests' own neighbours may be opened on the host at any time: of the devices nothing is to be said where they are shared.
        let seen: Vec<&str> = seen
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let unshared = seen
            .iter()
            .filter(|path| hotcell.uid == 0 || !DEVICES.contains(path));
        assert_eq!(unshared.count(), 0, "{}: {seen:?}", hotcell.name);

        // The control: in the sandbox itself all of them are locked, and their openings are seen.
        let all = call(&mut client, "a", "sorted(seen)");
        assert_eq!(call(&mut client, "a", TRY), all, "{}", hotcell.name);
        assert_eq!(call(&mut client, "a", "opened()"), all, "{}", hotcell.name);
    }
}

/// What a network namespace remembers, as any program can read it.
const REMEMBERED: &str = r#"
def remembered():
    pairs = {}
    for file in ('snmp', 'netstat'):
        lines = [line.split() for line in open(f'/proc/net/{file}')]
        for names, values in zip(lines[::2], lines[1::2]):
            pairs.update({names[0] + name: int(value) for name, value in zip(names[1:], values[1:])})
    for line in open('/proc/net/snmp6'):
        name, value = line.split()
        pairs[name] = int(value)
    settings = {'Ip:Forwarding', 'Ip:DefaultTTL', 'Tcp:RtoAlgorithm', 'Tcp:RtoMin', 'Tcp:RtoMax', 'Tcp:MaxConn'}
    lo = open('/proc/net/dev').read().split('lo:')[1].split()
    pairs.update({f'lo{n}': int(value) for n, value in enumerate(lo)})
    sockets = [line.split()[1] for file in ('tcp', 'tcp6', 'udp') for line in list(open(f'/proc/net/{file}'))[1:]]
    return {name: value for name, value in pairs.items() if value and name not in settings}, sockets
"#;

/// Leaves as much as it can: bytes, connections that wait for their end, an address without a route, a label.
const USE: &str = r#"
import os, socket, struct
listener = socket.create_server(('127.0.0.1', 0))
one = socket.create_connection(listener.getsockname()); two = listener.accept()[0]
one.sendall(b'x' * 100_000)
while len(two.recv(1 << 20)) == 0: pass
one.close(); two.close()
for family, address in ((socket.AF_INET, '203.0.113.1'), (socket.AF_INET6, '2001:db8::1')):
    try: socket.socket(family).connect((address, 9))
    except OSError: pass
counters, sockets = remembered()
print(counters['Ip:OutNoRoutes'], counters['Ip6OutNoRoutes'], counters['Tcp:ActiveOpens'], counters['lo0'] > 100_000, len(sockets) > 1)
"#;

#[test]
fn a_slot_that_is_used_again_tells_nothing_of_the_sandbox_before() {
    for hotcell in everyone() {
        let mut client = serve(&hotcell);
        let (mut namespaces, mut runs) = (Vec::new(), 0);
        let ask = format!(
            "{REMEMBERED}\nimport os\nprint(os.readlink('/proc/self/ns/net'), *remembered())"
        );
        for _ in 0..12 {
            // The control: it is remembered as long as it is the same sandbox's.
            let said = run(&mut client, &format!("{REMEMBERED}\n{USE}"));
            assert_eq!(said, "1 1 1 True True\n", "{}", hotcell.name);
            for _ in 0..2 {
                let said = run(&mut client, &ask);
                let (namespace, rest) = said.split_once(' ').expect("a namespace");
                assert_eq!(rest, "{} []\n", "{}", hotcell.name);
                namespaces.push(namespace.to_owned());
                runs += 1;
            }
        }
        // Those that were left as they were found are used again: slots are.
        namespaces.sort();
        namespaces.dedup();
        assert!(namespaces.len() < runs, "{}", hotcell.name);
    }
}

/// What a program finds of the machine; the same program outside is the control.
const FACTS: &str = r#"
import os, socket
disk = os.statvfs('/usr')
named = [line.split(' - ')[1].split() for line in open('/proc/self/mountinfo')]
print(disk.f_blocks * disk.f_frsize >> 30)
print(sorted({source for _, source, *_ in named if source.startswith('/')}))
hidden = ['consoles', 'crypto', 'devices', 'misc', 'sys/fs/file-nr', 'sys/fs/inode-nr', 'sys/fs/dentry-state', 'sys/fs/inode-state', 'sys/fs/aio-nr']
print([name for name in hidden if os.path.exists(f'/proc/{name}') and open(f'/proc/{name}').read()])
one, two = socket.socketpair()
try:
    one.send(b'x', socket.MSG_OOB); print('sent')
except OSError as error:
    print(os.strerror(error.errno))
"#;

#[test]
fn a_program_learns_nothing_of_the_hosts_disks_and_devices() {
    let control = std::process::Command::new("python3")
        .args(["-I", "-c", FACTS])
        .output()
        .expect("python");
    let control = String::from_utf8_lossy(&control.stdout).into_owned();
    let control: Vec<&str> = control.lines().collect();
    assert_ne!(control[0], "0", "the disk of the host");
    assert!(
        control[2].contains("devices") && control[2].contains("file-nr"),
        "{control:?}"
    );
    for hotcell in everyone() {
        let said = hotcell.run(&["-l", "python", "-c", FACTS]).out();
        assert_eq!(
            said, "0\n[]\n[]\nOperation not supported\n",
            "{}",
            hotcell.name
        );
    }
}
