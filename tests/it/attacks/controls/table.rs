//! Which control each driven program needs, as data.

/// How a case's detector is shown to work.
pub enum Control {
    /// It prints `BREACH` with no sandbox at all.
    Plain,
    /// The same, with this text on standard input.
    Fed(&'static str),
    /// The same, started by this shell line; `"$@"` is the program.
    Shell(&'static str),
    /// Its processes outlive it, and the witness finds them.
    Survives,
    /// Ordinary permissions refuse it. In namespaces of its own with all capabilities,
    /// no filter and no masks, after this preparation, it prints `BREACH`.
    Weak(&'static str),
    /// In a network of its own where every address answers, so that no packet of a
    /// control leaves the machine.
    World,
    /// With this one capability.
    Capability(&'static str),
    /// It has no `BREACH` to print: the driver judges, and this shows that it can.
    Driver(&'static str),
    /// It cannot fire, for this reason.
    Never(&'static str),
}

use Control::{Capability, Driver, Fed, Never, Plain, Shell, Survives, Weak, World};

const EXHAUSTION: Control = Driver("never run loose; verdict::tests refuse a wrong outcome");
const ANSWER: Control = Driver("verdict::tests refuse a spoofed, silent, late or leaking answer");

/// One row for each driven program.
pub const CONTROLS: &[(&str, Control)] = &[
    ("RES-01", EXHAUSTION),
    ("RES-02", EXHAUSTION),
    ("RES-03", EXHAUSTION),
    ("RES-04", EXHAUSTION),
    ("RES-05", EXHAUSTION),
    ("RES-06", EXHAUSTION),
    ("RES-07", EXHAUSTION),
    ("RES-08", EXHAUSTION),
    ("RES-09", EXHAUSTION),
    ("RES-10", EXHAUSTION),
    ("RES-11", EXHAUSTION),
    ("RES-14", EXHAUSTION),
    ("RES-15", EXHAUSTION),
    ("PRC-01", Survives),
    ("PRC-02", Survives),
    (
        "PRC-03",
        Driver("never run loose; a bystander and a neighbour must live"),
    ),
    ("PRC-04", Plain),
    ("PRC-05", Weak("")),
    ("PRC-06", Capability("sys_nice")),
    ("PRC-07", Plain),
    ("PRC-08", Survives),
    ("PRC-11", Plain),
    ("PRC-12", Plain),
    ("FSE-01", Plain),
    ("FSE-02", Weak("mount -t tmpfs t /opt")),
    ("FSE-03", Weak("")),
    ("FSE-04", Weak("")),
    ("FSE-05", Weak("mount --bind .netrc /etc/shadow")),
    ("FSE-06", Capability("dac_read_search")),
    ("FSE-07", Plain),
    (
        "FSE-08",
        Never(
            "the kernel answers ETXTBSY for any running program; the driver compares the binary's bytes",
        ),
    ),
    ("FSE-10", Plain),
    // A link needs one mount for both ends and an owner: a /usr/bin of its own.
    (
        "FSE-11",
        Weak(
            "mkdir b; mount -t tmpfs t b; cp /usr/bin/python3 /usr/bin/su b; mount --bind b /usr/bin; cd /usr/bin",
        ),
    ),
    ("FSE-13", Plain),
    ("INF-01", Plain),
    ("INF-02", Plain),
    ("INF-03", Plain),
    ("INF-04", Plain),
    ("INF-05", Capability("syslog")),
    ("INF-06", Weak("")),
    ("INF-08", Plain),
    ("NET-01", World),
    ("NET-02", World),
    ("NET-03", Plain),
    ("NET-04", World),
    ("NET-05", Plain),
    ("NET-06", Plain),
    ("NET-07", Plain),
    ("NET-08", Plain),
    ("NET-09", Plain),
    ("NET-10", Weak("")),
    ("NET-11", World),
    ("NET-14", World),
    ("NET-16", Plain),
    ("KRN-01", Plain),
    ("KRN-02", Weak("")),
    ("KRN-03", Plain),
    ("KRN-04", Weak("")),
    ("KRN-05", Plain),
    ("KRN-06", Plain),
    (
        "KRN-10",
        Driver("prose asks for the words of a program that ran to its end"),
    ),
    ("KRN-11", Plain),
    ("KRN-12", Plain),
    ("LEK-01", Plain),
    ("LEK-02", Shell("exec \"$@\" 7</etc/passwd")),
    ("LEK-03", Fed("{\"jsonrpc\":\"2.0\"}\n")),
    ("LEK-06", Plain),
    ("XRN-04", Weak("\"$@\"")),
    ("XRN-08", Plain),
    ("OUT-01", ANSWER),
    ("OUT-02", ANSWER),
    ("OUT-03", ANSWER),
    ("OUT-04", ANSWER),
    ("OUT-05", ANSWER),
    ("OUT-06", ANSWER),
    ("OUT-09", ANSWER),
    ("OUT-10", ANSWER),
    ("ART-02", ANSWER),
    ("ART-04", ANSWER),
    ("ART-05", ANSWER),
    ("ART-06", ANSWER),
    ("ART-07", ANSWER),
    ("ART-08", ANSWER),
    ("ART-12", ANSWER),
];

/// Controls that a host may be unable to give, and what it lacks.
pub const HOST_DEPENDENT: &[(&str, &str)] = &[
    ("FSE-06", "the root file system has no handle of that form"),
    ("INF-05", "the kernel log is not ours to read"),
    ("KRN-06", "the kernel has no x32 ABI"),
    ("NET-07", "the kernel has no AF_VSOCK"),
    (
        "NET-09",
        "the kernel has no io_uring, or a sysctl forbids it",
    ),
    (
        "NET-10",
        "no dummy interfaces in the kernel, and no nft or iptables",
    ),
];

/// Gives the loopback of a new network namespace the addresses the cases call, answers
/// on their ports, and starts the program. It stands between single quotes in a shell.
pub const WORLD: &str = r#"
import fcntl, os, socket, struct, sys, threading
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(s, 0x8914, struct.pack("16sh14x", b"lo", 1))
for i, a in enumerate(("1.1.1.1", "169.254.169.254", "8.8.8.8")):
    name = b"lo:%d" % i
    fcntl.ioctl(s, 0x8916, struct.pack("16sH2x4s8x", name, socket.AF_INET, socket.inet_aton(a)))
def tcp(port):
    l = socket.create_server(("0.0.0.0", port))
    def serve():
        while True:
            c, _ = l.accept()
            if port == 8080: c.recv(4096); c.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n")
            c.close()
    threading.Thread(target=serve, daemon=True).start()
for port in (53, 80, 443, 8080): tcp(port)
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.bind(("0.0.0.0", 53))
def echo():
    while True:
        d, a = u.recvfrom(512)
        u.sendto(d, a)
threading.Thread(target=echo, daemon=True).start()
import subprocess
os.environ["http_proxy"] = "http://127.0.0.1:8080"
sys.exit(subprocess.run(sys.argv[1:]).returncode)
"#;
