//! Folders that belong to somebody: a cell of root's has an id of its own, and is the folder's owner in it all the same,
//! for as long as it was granted and for nobody else.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use serde_json::json;

use crate::mcp::client::Client;
use crate::support::left::Before;
use crate::support::{Hotcell, everyone, skip};

/// The one who is root, where the kernel has idmapped mounts.
fn root() -> Option<Hotcell> {
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy().into_owned();
    let mut numbers = release.split(['.', '-']).map(|part| part.parse().ok());
    let version: (u32, u32) = (numbers.next()??, numbers.next()??);
    if version < (5, 12) {
        skip(&format!("no idmapped mounts in Linux {release}"));
        return None;
    }
    everyone().into_iter().find(|hotcell| hotcell.uid == 0)
}

/// A folder that is open to its owner alone, with such a file.
fn closed(hotcell: &Hotcell, name: &str, owner: u32) -> String {
    let file = hotcell.write(&format!("{name}/in.txt"), "private\n");
    let folder = hotcell.place(name);
    for (path, mode) in [(&file, 0o600), (&folder, 0o700)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode can be set");
        chown(path, Some(owner), Some(owner + 1)).expect("root gives it away");
    }
    folder.display().to_string()
}

#[test]
fn a_folder_that_is_its_owners_alone_is_read_if_it_was_granted() {
    let Some(hotcell) = root() else { return };
    for owner in [0, 4321] {
        let host = closed(&hotcell, &format!("data-{owner}"), owner);
        let code = "cat /data/in.txt; ls -A /data; touch /data/new 2>&1; true";
        let mount = format!("{host}:/data:ro");
        let answer = hotcell.run(&["--mount", &mount, "-l", "sh", "-c", code]);
        assert!(
            answer.out().starts_with("private\nin.txt\n")
                && answer.out().contains("Read-only file system"),
            "{}: {}",
            answer.out(),
            answer.err()
        );
        // Control: nobody else may, with or without a cell.
        let grant = format!("cat {host}/in.txt /data/in.txt");
        let without = hotcell.run(&["-l", "sh", "-c", &grant]);
        assert_eq!((without.code, without.out()), (Some(1), String::new()));
        let found = fs::metadata(&host).expect("it is there");
        assert_eq!((found.mode() & 0o7777, found.uid()), (0o700, owner));
    }
}

#[test]
fn what_a_cell_writes_there_is_the_owners_and_open_to_nobody_else() {
    let Some(hotcell) = root() else { return };
    for owner in [0, 4321] {
        let name = format!("data-{owner}");
        let host = closed(&hotcell, &name, owner);
        let code = "echo more >> /data/in.txt && mkdir /data/sub && echo new > /data/sub/new && \
            chmod 600 /data/sub/new && stat -c '%u %g %a' /data/sub/new && rm /data/in.txt";
        let mount = format!("{host}:/data:rw");
        let answer = hotcell.run(&["--mount", &mount, "-l", "sh", "-c", code]);
        assert_eq!(answer.out(), "65534 65534 600\n", "{}", answer.err());
        assert!(!hotcell.place(format!("{name}/in.txt")).exists());
        for (path, mode) in [("", 0o700), ("/sub", 0o755), ("/sub/new", 0o600)] {
            let found = fs::metadata(format!("{host}{path}")).expect("it is there");
            assert_eq!(
                (found.uid(), found.gid(), found.mode() & 0o7777),
                (owner, owner + 1, mode),
                "{path}"
            );
        }
    }
}

#[test]
fn what_belongs_to_others_in_a_granted_folder_stays_theirs() {
    let Some(hotcell) = root() else { return };
    let host = closed(&hotcell, "data", 4321);
    for (name, mode, owner) in [
        ("open", 0o666, 7777),
        ("shut", 0o600, 7777),
        ("roots", 0o600, 0),
    ] {
        let file = hotcell.write(&format!("data/{name}"), "theirs\n");
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("a mode can be set");
        chown(&file, Some(owner), Some(owner)).expect("root gives it away");
    }
    let mount = format!("{host}:/data");
    let code = "cd /data; echo mine >> open; cat open; chmod 777 open || echo kept; cat shut roots || echo closed";
    let answer = hotcell.run(&["--mount", &mount, "-l", "sh", "-c", code]);
    assert_eq!(
        answer.out(),
        "theirs\nmine\nkept\nclosed\n",
        "{}",
        answer.err()
    );
    let found = fs::metadata(hotcell.place("data/open")).expect("it is there");
    assert_eq!((found.uid(), found.mode() & 0o7777), (7777, 0o666));
}

/// A file with that bit would let anybody on the host run the program's code as its owner.
#[test]
fn no_file_on_the_host_gets_a_set_user_id_bit() {
    let code = "import os
def attempt(work):
    try:
        work()
        print('done')
    except OSError as error:
        print(error.errno)
os.chdir(WHERE)
open('a', 'w').close()
attempt(lambda: os.chmod('a', 0o4755))
attempt(lambda: os.fchmod(os.open('a', os.O_RDWR), 0o2755))
attempt(lambda: os.open('b', os.O_CREAT | os.O_RDWR, 0o6755))
attempt(lambda: os.mknod('c', 0o104755))
import ctypes, struct
libc = ctypes.CDLL(None, use_errno=True)
how = struct.pack('QQQ', os.O_CREAT | os.O_RDWR, 0o4755, 0)
print(libc.syscall(437, -100, b'd', how, 24) >= 0)
attempt(lambda: os.chmod('a', 0o755))
";
    for hotcell in everyone() {
        let folder = hotcell.make_folder("out");
        let mount = format!("{}:/out", folder.display());
        let run = |flags: &[&str], place: &str| {
            let code = code.replace("WHERE", &format!("'{place}'"));
            hotcell.run(&[flags, &["-l", "python", "-c", &code]].concat())
        };
        let refused = run(&["--mount", &mount], "/out");
        let expected = "1\n1\n1\n1\nFalse\ndone\n";
        assert_eq!(
            refused.out(),
            expected,
            "{}: {}",
            hotcell.name,
            refused.err()
        );
        for entry in fs::read_dir(&folder).expect("a folder") {
            let entry = entry.expect("an entry").path();
            let mode = fs::metadata(&entry).expect("it is there").mode();
            assert_eq!(mode & 0o6000, 0, "{}", entry.display());
        }
        // Control: among files that vanish with the sandbox all of it works.
        let allowed = run(&[], "/workspace");
        assert_eq!(allowed.out(), "done\ndone\ndone\ndone\nTrue\ndone\n");
    }
}

#[test]
fn programs_at_the_same_time_are_all_the_owner_and_the_sandboxes_are_pre_started() {
    let Some(hotcell) = root() else { return };
    let host = closed(&hotcell, "data", 4321);
    let mut command = hotcell.command();
    command.args(["serve", "--workspace", &format!("{host}:rw")]);
    let mut client = Client::of(command);
    client.begin();
    let code = "import time\nopen(f'/work/{time.time_ns()}', 'w').close()\n\
        print(open('/work/in.txt').read().strip(), hash('x'))\ntime.sleep(0.2)";
    let mut hashes = Vec::new();
    for _ in 0..4 {
        let call = json!({ "name": "run", "arguments": { "code": code, "language": "python" } });
        let posted: Vec<u64> = (0..6)
            .map(|_| client.post("tools/call", call.clone()))
            .collect();
        for id in posted {
            let result = client.answer(id)["result"].clone();
            let out = result["structuredContent"]["stdout"].as_str();
            let out = out.expect("text").trim();
            let hash = out.strip_prefix("private ");
            hashes.push(hash.unwrap_or_else(|| panic!("{result}")).to_owned());
        }
    }
    let written = fs::read_dir(&host).expect("a folder").flatten();
    let owners: Vec<u32> = written
        .map(|it| it.metadata().expect("it is there").uid())
        .collect();
    assert_eq!(owners, [4321; 25]);
    // Copies of one interpreter have one seed; those that were started for a program have their own.
    hashes.sort_unstable();
    hashes.dedup();
    assert!(hashes.len() < 12, "{hashes:?}");
}

#[test]
fn who_maps_the_owners_ends_with_the_server_however_that_ends() {
    let Some(hotcell) = root() else { return };
    let host = closed(&hotcell, "data", 4321);
    for is_killed in [false, true] {
        let before = Before::look(&hotcell);
        let mut command = hotcell.command();
        command.args(["serve", "--workspace", &host]);
        let mut client = Client::of(command);
        client.begin();
        let code = "print(open('/work/in.txt').read())";
        let result = client.run(json!({ "code": code, "language": "python" }));
        assert_eq!(result["structuredContent"]["stdout"], "private\n\n");
        let pid = client.child.id();
        match is_killed {
            true => client.child.kill().expect("it is there"),
            false => drop(client.close()),
        }
        drop(client);
        before.expect_nothing_left(pid);
    }
}
