//! A network of the test's own: one namespace that hotcell runs in, joined to another
//! that is the world, where every address answers and a log says who was asked.
//!
//! Nothing of this host's network is in either.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::support::{Hotcell, PATH, PATIENCE, Running, eventually, has, open_to_all, skip};

pub struct Stage {
    /// Whether it has that too.
    pub ipv6: bool,
    folder: TempDir,
    inner: Holder,
    _world: Running,
}

/// A process that holds namespaces open.
struct Holder(Child);

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const RESOLVER: &str = "nameserver 203.0.113.53\noptions timeout:2 attempts:2\n";

/// An authority, and a certificate of the names that the world answers to.
const CERTIFICATES: &str = "set -e
    new='openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30'
    $new -x509 -subj /CN=stage -keyout authority.key -out authority
    echo 'subjectAltName=DNS:allowed.test,DNS:*.wild.test,DNS:port.test,DNS:secret.test,DNS:evil.test' > names
    $new -subj /CN=server -keyout key -out request
    openssl x509 -req -in request -CA authority -CAkey authority.key -CAcreateserial -days 30 -extfile names -out certificate";

impl Stage {
    /// Sets the stage, where root does it and the tools are there; else says why not.
    pub fn set() -> Option<Self> {
        if !rustix::process::getuid().is_root() {
            skip("only root can make a network of its own");
            return None;
        }
        if !["nsenter", "unshare", "openssl", "python3"]
            .into_iter()
            .all(has)
        {
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        open_to_all(folder.path());
        let place = |name: &str| folder.path().join(name).display().to_string();
        fs::write(place("resolv.conf"), RESOLVER).expect("a file");
        fs::write(place("log"), "").expect("a file");
        let made = Command::new("sh")
            .args(["-c", CERTIFICATES])
            .current_dir(folder.path())
            .stderr(Stdio::null())
            .status();
        assert!(made.is_ok_and(|status| status.success()), "a certificate");
        open_to_all(&folder.path().join("authority"));

        let hold = format!(
            "mount --bind {} /etc/resolv.conf && ip link set lo up && exec sleep 3600",
            place("resolv.conf")
        );
        let inner = Command::new("unshare")
            .args([
                "--net",
                "--mount",
                "--propagation",
                "private",
                "sh",
                "-c",
                &hold,
            ])
            .spawn();
        let inner = Holder(inner.expect("unshare starts"));
        let mut world = Command::new("unshare");
        world
            .args(["--net", "sh", "-c", "echo held; read go; exec \"$@\"", "sh"])
            .args([
                "python3",
                concat!(env!("CARGO_MANIFEST_DIR"), "/tests/egress/world.py"),
            ])
            .args([place("log"), place("certificate"), place("key")])
            .stdin(Stdio::piped());
        let mut world = Running::start(&mut world);
        world.stdout.until("held");
        let (inside, outside) = (inner.0.id(), world.pid());
        let resolver = || {
            let file = format!("/proc/{inside}/root/etc/resolv.conf");
            let read = fs::read_to_string(file).unwrap_or_default();
            // The mount is there before the name is: the last step of the shell counts.
            read == RESOLVER
                && fs::read_to_string(format!("/proc/{inside}/comm"))
                    .is_ok_and(|name| name == "sleep\n")
        };
        assert!(eventually(PATIENCE, resolver), "a namespace");
        let script = format!(
            "set -e
            nsenter --net=/proc/{inside}/ns/net ip link add in0 type veth peer name out0 netns {outside}
            i() {{ nsenter --net=/proc/{inside}/ns/net ip \"$@\"; }}
            o() {{ nsenter --net=/proc/{outside}/ns/net ip \"$@\"; }}
            i addr add 203.0.113.2/24 dev in0; i link set in0 up; i route add default via 203.0.113.1
            o link set lo up; o addr add 203.0.113.53/32 dev lo; o addr add 203.0.113.1/24 dev out0; o link set out0 up
            o route add local default dev lo table 100; o rule add iif out0 lookup 100
            i route add 203.0.113.0/25 via 203.0.113.1
            i -6 addr add 2001:db8:1::2/64 dev in0 nodad && i -6 route add default via 2001:db8:1::1 &&
            o -6 addr add 2001:db8:1::1/64 dev out0 nodad && o -6 route add local default dev lo table 100 &&
            o -6 rule add iif out0 lookup 100 || echo no IPv6"
        );
        let joined = Command::new("sh")
            .args(["-c", &script])
            .output()
            .expect("a shell");
        assert!(
            joined.status.success(),
            "{}",
            String::from_utf8_lossy(&joined.stderr)
        );
        use std::io::Write;
        let mut go = world.stdin.take().expect("its input");
        go.write_all(b"go\n").expect("it reads");
        world.stdout.until("ready");
        Some(Self {
            ipv6: !String::from_utf8_lossy(&joined.stdout).contains("no IPv6"),
            folder,
            inner,
            _world: world,
        })
    }

    /// `hotcell`, in this network.
    pub fn command(&self, hotcell: &Hotcell) -> Command {
        let mut command = self.dressed(hotcell);
        command.arg(hotcell.binary());
        command
    }

    /// What is started next has hotcell's user and surroundings, in this network.
    pub fn dressed(&self, hotcell: &Hotcell) -> Command {
        let mut command = self.enter(hotcell.uid);
        command
            .args(["env", "-i"])
            .arg(format!("PATH={PATH}"))
            .arg(format!("HOME={}", hotcell.home().display()))
            .arg(format!("TMPDIR={}", hotcell.temporary().display()));
        command
    }

    /// Anything else in this network, as `uid` and with nothing to hold it.
    pub fn enter(&self, uid: u32) -> Command {
        let pid = self.inner.0.id();
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/proc/{pid}/ns/net"))
            .arg(format!("--mount=/proc/{pid}/ns/mnt"))
            .arg("--")
            .env("PATH", PATH)
            .stdin(Stdio::null());
        if uid != 0 {
            let id = [format!("--reuid={uid}"), format!("--regid={uid}")];
            command.arg("setpriv").args(id).arg("--clear-groups");
        }
        command
    }

    /// `hotcell run` with these arguments, to its end.
    pub fn run(&self, hotcell: &Hotcell, arguments: &[&str]) -> crate::support::Answer {
        Running::start(self.command(hotcell).arg("run").args(arguments)).finish()
    }

    pub fn json(&self, hotcell: &Hotcell, arguments: &[&str]) -> serde_json::Value {
        self.run(hotcell, &[&["--json"], arguments].concat()).json()
    }

    /// The authority that has signed what the world's servers show.
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("authority")
    }

    /// What the world has seen since it was last asked.
    pub fn log(&self) -> Vec<String> {
        // A connection that was just closed may still be on its way into the log.
        thread::sleep(Duration::from_millis(50));
        let path = self.folder.path().join("log");
        let text = fs::read_to_string(&path).expect("the log");
        fs::OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(&path)
            .expect("it can be emptied");
        text.lines().map(str::to_owned).collect()
    }

    /// The places that were connected to, each once.
    pub fn dialled(&self) -> Vec<String> {
        let log = self.log();
        let mut places: Vec<String> = log
            .iter()
            .filter_map(|line| line.strip_prefix("tcp "))
            .map(str::to_owned)
            .collect();
        places.sort();
        places.dedup();
        places
    }
}
