//! The probe: this binary again, as the program of a cell.
//!
//! It asks the kernel rather than /proc, which some hosts cannot give to a cell.
//! It judges nothing, and prints each fact at once: what it said stays said, even
//! if the next attempt is its end.

mod quotas;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use jail::sys;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType};
use rustix::process::{getegid, geteuid, getgid, getuid};
use rustix::thread::{
    CapabilitySet, capabilities, capability_is_in_ambient_set, capability_is_in_bounding_set,
    no_new_privs, secure_computing_mode,
};

use super::question::{Deed, FILE, Fact, Question};

pub use quotas::MOST;

/// The probe's path in a cell, which is also how it knows itself.
pub const PROGRAM: &str = "/workspace/hotcell-probe";

/// An argument that makes a probe one of the processes that stay.
const STAY: &str = "stay";
/// Reserved for documentation: nobody has it, so only a route could lead there.
const OUTSIDE: &str = "192.0.2.1:9";
const CLONE_NEWUSER: i32 = 0x1000_0000;

/// The probe's whole life.
pub fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(STAY) {
        // Until the other end of the pipe is gone with the one who started us.
        let _ = io::stdin().read(&mut [0]);
        return ExitCode::SUCCESS;
    }
    let question = fs::read(FILE).ok();
    match question.and_then(|text| serde_json::from_slice(&text).ok()) {
        None => ExitCode::FAILURE,
        Some(Question::Facts {
            canary,
            listener,
            locked,
        }) => {
            say(&Fact::Locked(
                locked.into_iter().filter(|path| is_locked(path)).collect(),
            ));
            facts(canary.as_deref(), listener);
            ExitCode::SUCCESS
        }
        Some(Question::Memory { bytes }) => take_memory(bytes),
        Some(Question::Processes { count }) => start_processes(count),
        Some(Question::Endless) => loop {
            std::hint::spin_loop();
        },
        Some(Question::Hoard { most }) => quotas::hoard(most),
        Some(Question::Fill) => quotas::fill(),
    }
}

fn facts(canary: Option<&str>, listener: Option<SocketAddr>) {
    say(&Fact::Ids([
        getuid().as_raw(),
        geteuid().as_raw(),
        getgid().as_raw(),
        getegid().as_raw(),
    ]));
    if let Ok(sets) = capability_sets() {
        say(&Fact::Capabilities(sets));
    }
    if let Ok(forbidden) = no_new_privs() {
        say(&Fact::NoNewPrivileges(forbidden));
    }
    if let Ok(mode) = secure_computing_mode() {
        say(&Fact::SeccompMode(mode as u32));
    }
    // A cell may not open as many as this.
    say(&Fact::Open(sys::open_descriptors(1 << 16)));
    let mut names: Vec<String> = std::env::vars_os()
        .map(|(name, _)| name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    say(&Fact::Environment(names));
    let init = fs::read("/proc/1/environ").unwrap_or_default();
    say(&Fact::InitEnvironment(init.len()));

    tried(Deed::Route, || {
        UdpSocket::bind("0.0.0.0:0")?.connect(OUTSIDE)
    });
    if let Some(address) = listener {
        let limit = Duration::from_millis(500);
        tried(Deed::Loopback, || {
            TcpStream::connect_timeout(&address, limit)
        });
    }
    tried(Deed::Vsock, || {
        Ok(rustix::net::socket(
            AddressFamily::VSOCK,
            SocketType::STREAM,
            None,
        )?)
    });
    if let Some(path) = canary {
        tried(Deed::ReadCanary, || fs::read(path));
    }
    tried(Deed::ReadShadow, || fs::read("/etc/shadow"));
    tried(Deed::WriteUsr, write_usr);
    quotas::take_one();
    // Last, since it changes who we are if it works.
    tried(Deed::Namespace, || sys::unshare(CLONE_NEWUSER));
}

/// Whether somebody else has a lock on what we see at `path`.
fn is_locked(path: &str) -> bool {
    let lock = |file| flock(&file, FlockOperation::NonBlockingLockExclusive);
    quotas::open(path).is_some_and(|file| lock(file) == Err(Errno::WOULDBLOCK))
}

fn capability_sets() -> io::Result<[u64; 5]> {
    let own = capabilities(None)?;
    let (mut bounding, mut ambient) = (0, 0);
    for number in 0..64 {
        let one = CapabilitySet::from_bits_retain(1 << number);
        match capability_is_in_bounding_set(one) {
            Ok(held) => bounding |= u64::from(held) << number,
            // The first number past the kernel's last capability.
            Err(Errno::INVAL) => break,
            Err(error) => return Err(error.into()),
        }
        ambient |= u64::from(capability_is_in_ambient_set(one)?) << number;
    }
    Ok([
        own.effective.bits(),
        own.permitted.bits(),
        own.inheritable.bits(),
        bounding,
        ambient,
    ])
}

fn write_usr() -> io::Result<()> {
    let path = "/usr/hotcell-probe";
    File::create_new(path)?;
    fs::remove_file(path)
}

fn take_memory(bytes: u64) -> ExitCode {
    const PIECE: usize = 1 << 20;
    let pieces = bytes.div_ceil(PIECE as u64);
    // Written to, since memory that nobody touched costs nothing.
    let taken: Vec<Vec<u8>> = (0..pieces).map(|_| vec![1; PIECE]).collect();
    // Where no control group counts, someone comes round now and then to look.
    loop {
        std::thread::sleep(Duration::from_secs(1));
        std::hint::black_box(&taken);
    }
}

fn start_processes(count: u32) -> ExitCode {
    let mut started = Vec::new();
    let mut errno = None;
    while started.len() < count as usize {
        let child = Command::new(PROGRAM)
            .arg(STAY)
            .stdin(Stdio::piped())
            .spawn();
        match child {
            Ok(child) => started.push(child),
            Err(error) => {
                errno = Some(number(&error));
                break;
            }
        }
    }
    say(&Fact::Started {
        count: started.len() as u32,
        errno,
    });
    ExitCode::SUCCESS
}

fn tried<T>(deed: Deed, work: impl FnOnce() -> io::Result<T>) {
    let errno = work().err().map(|error| number(&error));
    say(&Fact::Tried { deed, errno });
}

/// The kernel's number, or 0 for an error that is none of its own.
fn number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(0)
}

fn say(fact: &Fact) {
    // What cannot be said is missed outside.
    if let Ok(line) = serde_json::to_string(fact) {
        let _ = writeln!(io::stdout().lock(), "{line}");
    }
}
