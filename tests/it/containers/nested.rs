//! hotcell itself inside a real gVisor, where its own walls cannot be built: that kernel's are a reduced level, for those who ask for it.

use std::process::Command;

use serde_json::json;

use super::gvisor::gvisor;
use crate::support::{Answer, Hotcell, Running, isolation};

/// Runs a command in a sandbox of gVisor that shows this system, as root or as another user there.
fn inside(hotcell: &Hotcell, uid: u32, words: &[&str]) -> Answer {
    let runsc = isolation::runsc().expect("gvisor() has found it");
    let state = hotcell.make_folder("state");
    // What it leaves mounted there is gone with the namespace.
    let mut command = Command::new("unshare");
    hotcell.dress(&mut command);
    command.args(["--mount", "--"]).arg(runsc);
    command.arg(format!("--root={}", state.display()));
    command.args(["--ignore-cgroups", "--network=none", "do", "--"]);
    if uid != 0 {
        let user = [format!("--reuid={uid}"), format!("--regid={uid}")];
        command.arg("setpriv").args(user).arg("--clear-groups");
    }
    command.arg(hotcell.binary()).args(words);
    Running::start(&mut command).finish()
}

const PROGRAM: &str = "import os, socket\n\
    def tried(work):\n    try: work(); print('done')\n    except OSError: print('refused')\n\
    tried(lambda: open(SECRET).read())\ntried(lambda: open('/usr/bin/new', 'w'))\ntried(lambda: open('/etc/new', 'w'))\n\
    tried(lambda: socket.create_connection(('192.0.2.1', 80), 2))\n\
    tried(lambda: open('/proc/1/environ').read())\ntried(lambda: open('new', 'w'))\n\
    print(os.uname().release.endswith('gvisor'), os.getuid() != 0, len([it for it in os.listdir('/proc') if it.isdigit()]) <= 2)\n\
    print([line.split()[1] for line in open('/proc/self/status') if line.startswith(('CapEff', 'CapBnd', 'Seccomp:'))])";
const FOUND: &str = "refused\nrefused\nrefused\nrefused\nrefused\ndone\nTrue True True\n['0000000000000000', '0000000000000000', '2']\n";

#[test]
fn inside_gvisor_programs_run_behind_its_own_wall_for_those_who_ask_for_it() {
    let Some((hotcell, _)) = gvisor() else { return };
    let secret = hotcell.write("home/secret.txt", "of the host");
    crate::support::open_to_all(&hotcell.home());
    let program = PROGRAM.replace("SECRET", &format!("{secret:?}"));
    let python = ["-l", "python", "-c", &program];
    for uid in [0, 1000] {
        let refused = inside(&hotcell, uid, &[&["run"], &python[..]].concat());
        assert_eq!((refused.out(), refused.code), (String::new(), Some(125)));
        for says in ["inside gVisor", "--allow-reduced"] {
            assert!(refused.err().contains(says), "{}", refused.err());
        }
        let words = [&["run", "--json", "--allow-reduced"], &python[..]].concat();
        let ran = inside(&hotcell, uid, &words).json();
        assert_eq!(ran["stdout"], FOUND, "{ran}");
        assert_eq!(ran["isolation"]["provider"], "inside gvisor");
        assert_eq!(ran["isolation"]["level"], "reduced");
        // A program that takes too long, and one of another kind.
        let words = ["run", "--json", "--allow-reduced", "--timeout", "2s"];
        let endless = ["-l", "sh", "-c", "echo 1; exec sleep 600"];
        let ended = inside(&hotcell, uid, &[&words[..], &endless].concat()).json();
        assert_eq!(
            (&ended["status"], &ended["stdout"]),
            (&json!("timeout"), &json!("1\n"))
        );
        let lua = ["-l", "lua", "-c", "print(6 * 7)"];
        let ran = inside(&hotcell, uid, &[&words[..], &lua].concat()).json();
        assert_eq!(ran["stdout"], "42\n", "{ran}");
    }
    // The control: in the same gVisor, without hotcell's part, the file is there for who asks.
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--"])
        .arg(isolation::runsc().unwrap());
    let state = format!("--root={}", hotcell.place("state").display());
    command.args([
        &state,
        "--ignore-cgroups",
        "--network=none",
        "do",
        "--",
        "cat",
    ]);
    let seen = Running::start(command.arg(&secret)).finish();
    assert_eq!(seen.out(), "of the host", "{}", seen.err());
}
