//! Sandboxes of an ordinary user who has subordinate ids: each has a uid of its own, as root's have.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use serde_json::{Value, json};

use super::{call, serve};
use crate::mcp::client::Client;
use crate::raw::record;
use crate::support::{ordinary, with_ids};

/// Takes pipes of a megabyte until the kernel refuses one, which it does by what all processes of a uid have.
const PIPES: &str = r#"
import fcntl, os
held = []
def take():
    pair = os.pipe()
    try:
        fcntl.fcntl(pair[1], fcntl.F_SETPIPE_SZ, 1 << 20)
    except PermissionError:
        for end in pair:
            os.close(end)
        return False
    held.append(pair)
    return True
"#;

/// The uids of all processes below the server but its own.
fn uids_below(client: &Client, own: u32) -> BTreeSet<u32> {
    let entries = fs::read_dir("/proc").expect("a /proc").flatten();
    let processes: Vec<(String, String, u32)> = entries
        .filter_map(|entry| {
            let status = fs::read_to_string(entry.path().join("status")).ok()?;
            let field = |name: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(name))?;
                line.split_whitespace().next().map(str::to_owned)
            };
            Some((
                field("Pid:")?,
                field("PPid:")?,
                field("Uid:")?.parse().ok()?,
            ))
        })
        .collect();
    let mut below = vec![client.child.id().to_string()];
    let mut uids = BTreeSet::new();
    while let Some(parent) = below.pop() {
        for (pid, _, uid) in processes.iter().filter(|(_, of, _)| *of == parent) {
            below.push(pid.clone());
            uids.insert(*uid);
        }
    }
    uids.remove(&own);
    uids
}

fn missing(client: &mut Client) -> Vec<String> {
    let ran = client.run(json!({ "language": "python", "code": "print(1)" }));
    let walls = record(&ran)["isolation"]["walls"].clone();
    let walls = walls.as_array().cloned().unwrap_or_default();
    let missing = walls.iter().filter(|wall| wall["stands"] == false);
    let name = |wall: &Value| wall["name"].as_str().unwrap_or_default().to_owned();
    missing.map(name).collect()
}

#[test]
fn what_the_kernel_counts_by_uid_is_counted_for_each_sandbox() {
    for (hotcell, is_own) in [(with_ids(), true), (ordinary(), false)] {
        let Some(hotcell) = hotcell else { continue };
        let mut client = serve(&hotcell);
        let all =
            format!("{PIPES}\ncount = 0\nwhile count < 500 and take():\n    count += 1\ncount");
        let taken = call(&mut client, "hostile", &all);
        assert!(
            taken.as_u64().is_some_and(|it| (10..500).contains(&it)),
            "{taken}"
        );
        let one = call(&mut client, "victim", &format!("{PIPES}\ntake()"));
        assert_eq!(
            one, is_own,
            "{}: a pipe beside {taken} of another",
            hotcell.name
        );
        // The witness is outside: who the sandboxes are to the host.
        let uids = uids_below(&client, hotcell.uid);
        let of_range = hotcell.first_id()..hotcell.first_id() + 1024;
        assert!(uids.iter().all(|uid| of_range.contains(uid)), "{uids:?}");
        assert_eq!(uids.len() >= 2, is_own, "{}: {uids:?}", hotcell.name);
        let missing = missing(&mut client);
        assert!(!missing.is_empty(), "a user lacks devices at least");
        let says = missing.iter().any(|wall| wall == "private quotas");
        assert_eq!(says, !is_own, "{}: {missing:?}", hotcell.name);
    }
}

#[test]
fn servers_of_one_user_have_different_ids_and_who_comes_too_late_says_so() {
    let Some(hotcell) = with_ids() else { return };
    // 1024 ids are four blocks.
    let mut servers: Vec<Client> = (0..5).map(|_| serve(&hotcell)).collect();
    let mut found = BTreeSet::new();
    let mut without = 0;
    for client in &mut servers {
        call(client, "a", "1");
        let uids = uids_below(client, hotcell.uid);
        let says = missing(client).contains(&"private quotas".to_owned());
        assert_eq!(says, uids.is_empty(), "{uids:?}");
        without += usize::from(uids.is_empty());
        assert!(found.is_disjoint(&uids), "{uids:?} and {found:?}");
        found.extend(uids);
    }
    assert_eq!(without, 1, "{found:?}");
}

#[test]
fn files_go_in_and_come_back_and_belong_to_nobody_else_outside() {
    let Some(hotcell) = with_ids() else { return };
    hotcell.write("home/data.txt", "from outside");
    hotcell.write(
        "home/main.py",
        "import os\nprint(open('data.txt').read(), os.stat('data.txt').st_uid)\nos.mkdir('left', 0o700)\nopen('left/a.txt', 'w').write('from inside')\n\
         os.system('echo said > /dev/stderr')",
    );
    let ran = hotcell.json(&["--file", "data.txt", "--out", "back", "main.py"]);
    assert_eq!(ran["stdout"], "from outside 65534\n", "{ran}");
    assert_eq!(ran["stderr"], "said\n", "{ran}");
    let back = hotcell.place("home/back/left/a.txt");
    assert_eq!(
        fs::read_to_string(&back).expect("it came back"),
        "from inside"
    );
    assert_eq!(fs::metadata(&back).expect("a file").uid(), hotcell.uid);
}

#[test]
fn a_folder_of_the_host_is_its_owners_and_the_report_says_what_is_shared() {
    let Some(hotcell) = with_ids() else { return };
    hotcell.write("home/secret/a.txt", "mine");
    let closed = fs::Permissions::from_mode(0o700);
    fs::set_permissions(hotcell.place("home/secret"), closed).expect("a mode");
    hotcell.write("home/main.py", "print(open('/data/a.txt').read())");
    let stands = |ran: &Value| {
        let walls = ran["isolation"]["walls"].as_array().cloned();
        let walls = walls.unwrap_or_default();
        let found = walls.iter().find(|wall| wall["name"] == "private quotas");
        found.map(|wall| wall["stands"].clone())
    };
    let ran = hotcell.json(&["--mount", "secret:/data", "main.py"]);
    assert_eq!(ran["stdout"], "mine\n", "{ran}");
    assert_eq!(stands(&ran), Some(json!(false)), "{ran}");
    // A binary that only its owner may run could not be an engine of anybody else.
    let own = fs::Permissions::from_mode(0o700);
    fs::copy(hotcell.binary(), hotcell.place("bin/own")).expect("a copy");
    fs::rename(hotcell.place("bin/own"), hotcell.binary()).expect("in its place");
    fs::set_permissions(hotcell.binary(), own).expect("a mode");
    std::os::unix::fs::chown(hotcell.binary(), Some(hotcell.uid), Some(hotcell.uid)).expect("root");
    let ran = hotcell.json(&["-l", "lua", "-c", "print(7)"]);
    assert_eq!(ran["stdout"], "7\n", "{ran}");
    assert_eq!(stands(&ran), Some(json!(false)), "{ran}");
}

/// Ends of the process that maps workspaces, whoever ends it, end no sandbox.
#[test]
fn who_gives_workspaces_away_is_replaced() {
    let Some(hotcell) = with_ids() else { return };
    let mut client = serve(&hotcell);
    call(&mut client, "a", "1");
    let server = client.child.id().to_string();
    let mut ended = 0;
    for entry in fs::read_dir("/proc").expect("a /proc").flatten() {
        let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.split_whitespace().next())
                .map(str::to_owned)
        };
        // A child of a spawner's, with the user's own uid: nothing else is.
        let parent = field("PPid:").unwrap_or_default();
        let above = fs::read_to_string(format!("/proc/{parent}/status")).unwrap_or_default();
        let is_below = above.lines().any(|line| line == format!("PPid:\t{server}"));
        if is_below && field("Uid:") == Some(hotcell.uid.to_string()) {
            let pid = field("Pid:").and_then(|pid| pid.parse().ok());
            let pid = pid.and_then(rustix::process::Pid::from_raw).expect("a pid");
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("root may");
            ended += 1;
        }
    }
    assert!(ended > 0, "nobody to end");
    for session in ["b", "c"] {
        assert_eq!(call(&mut client, session, "2 + 2"), 4);
    }
}
