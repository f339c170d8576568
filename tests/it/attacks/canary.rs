//! The things a program must not find, and the record of whether it did: a secret in
//! the environment, two files, two unix sockets, a TCP and a UDP port.
//!
//! Their places are fixed by the cases, so only one suite can have them at a time; a
//! file lock makes a second one wait.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// The name of the variable that holds the secret.
pub const VARIABLE: &str = "SBX_CANARY_SECRET";
/// A word on the command line of every server that is started here.
pub const ARGUMENT: &str = "sbx-canary-argv";

const FILES: [&str; 2] = ["/tmp/sbx-canary-file", "/var/tmp/sbx-canary-file"];
const SOCKET: &str = "/tmp/sbx-canary.sock";
const PORT: u16 = 47999;
/// Where a suite waits for another one to end; like the canaries at a fixed place.
const LOCK: &str = "/tmp/hotcell-attacks.lock";

/// The planted canaries. They are taken away again on drop.
pub struct Canaries {
    /// The random value of this suite.
    pub secret: String,
    contacts: Arc<Mutex<Vec<&'static str>>>,
    ended: Arc<AtomicBool>,
    listeners: Vec<JoinHandle<()>>,
    _lock: File,
}

impl Canaries {
    /// Plants all of them, readable and writable by everybody: what keeps a program
    /// away must be the cell and not the permissions of a file.
    pub fn plant() -> Canaries {
        let lock = lock().expect("the lock can be taken");

        let secret = format!("sbx-canary-{}", random());
        for path in FILES {
            fs::write(path, &secret).expect("a canary file can be written");
            fs::set_permissions(path, fs::Permissions::from_mode(0o666))
                .expect("its mode can be set");
        }
        let mut canaries = Canaries {
            secret,
            contacts: Arc::default(),
            ended: Arc::default(),
            listeners: Vec::new(),
            _lock: lock,
        };
        canaries
            .listen()
            .expect("the canary ports and sockets are free");
        canaries
    }

    /// What is no longer as it was planted, and who was contacted since the last call.
    pub fn disturbed(&self) -> Vec<String> {
        let mut found = Vec::new();
        for path in FILES {
            let same = fs::read_to_string(path).is_ok_and(|text| text == self.secret)
                && fs::symlink_metadata(path)
                    .is_ok_and(|meta| meta.is_file() && meta.mode() & 0o7777 == 0o666);
            if !same {
                found.push(format!("the canary file {path} was changed"));
            }
        }
        found.extend(
            self.contacts()
                .iter()
                .map(|who| format!("the canary listener was reached: {who}")),
        );
        found
    }

    /// The listeners reached since the last call.
    pub fn contacts(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.contacts.lock().expect("no listener panics"))
    }

    fn listen(&mut self) -> io::Result<()> {
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT))?;
        let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, PORT))?;
        if fs::symlink_metadata(SOCKET).is_ok() {
            fs::remove_file(SOCKET)?;
        }
        let path = UnixListener::bind(SOCKET)?;
        fs::set_permissions(SOCKET, fs::Permissions::from_mode(0o777))?;
        let hidden = UnixListener::bind_addr(&hidden_address()?)?;

        self.record("tcp", move || tcp.accept().map(drop));
        self.record("udp", move || udp.recv(&mut [0; 64]).map(drop));
        self.record("unix path", move || path.accept().map(drop));
        self.record("unix abstract", move || hidden.accept().map(drop));
        Ok(())
    }

    fn record(&mut self, name: &'static str, next: impl Fn() -> io::Result<()> + Send + 'static) {
        let contacts = Arc::clone(&self.contacts);
        let ended = Arc::clone(&self.ended);
        self.listeners.push(thread::spawn(move || {
            while next().is_ok() && !ended.load(Ordering::SeqCst) {
                contacts.lock().expect("no reader panics").push(name);
            }
        }));
    }
}

impl Drop for Canaries {
    fn drop(&mut self) {
        // One last contact wakes each listener, which then sees that it is over.
        self.ended.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, PORT));
        let _ = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
            .and_then(|udp| udp.send_to(b"end", (Ipv4Addr::LOCALHOST, PORT)));
        let _ = UnixStream::connect(SOCKET);
        let _ = hidden_address().and_then(|address| UnixStream::connect_addr(&address));
        for listener in self.listeners.drain(..) {
            let _ = listener.join();
        }
        for path in FILES.iter().chain([&SOCKET]) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Twelve random hexadecimal digits.
pub fn random() -> String {
    let uuid = fs::read_to_string("/proc/sys/kernel/random/uuid").expect("the kernel gives a uuid");
    uuid.trim()
        .chars()
        .filter(|char| *char != '-')
        .skip(20)
        .collect()
}

fn hidden_address() -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name("sbx-canary")
}

/// Waits for the right to plant canaries. The file stays: removing it would let two
/// waiters hold locks on two files of one name.
fn lock() -> io::Result<File> {
    if fs::symlink_metadata(LOCK).is_err() {
        fs::write(LOCK, "")?;
        fs::set_permissions(LOCK, fs::Permissions::from_mode(0o644))?;
    }
    let file = File::open(LOCK)?;
    file.lock()?;
    Ok(file)
}
