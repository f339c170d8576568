//! System calls that have no safe wrapper: the only `unsafe` of the jail.
//!
//! Each function here is safe to call from the process its doc names. Whoever
//! forks or clones (the spawner and the init of a cell) has one thread, so
//! ordinary Rust is sound in the child.

use std::ffi::{CStr, CString};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::fs::{Mode, OFlags};
use rustix::path::Arg;
use rustix::process::Pid;
use rustix::thread::{sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Which side of a `fork` we came back on.
pub enum Forked {
    Child,
    Parent { pid: libc::pid_t },
}

/// Which side of a `clone` we came back on.
pub enum Cloned {
    Child,
    Parent { pid: libc::pid_t, pidfd: OwnedFd },
}

fn check(ret: libc::c_long) -> io::Result<libc::c_long> {
    if ret < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(ret)
    }
}

/// Forks a process that has one thread: the init of a cell.
pub fn fork() -> io::Result<Forked> {
    // SAFETY: the caller has one thread, so the child may use the heap and locks.
    let pid = unsafe { libc::fork() };
    Ok(match check(pid.into())? {
        0 => Forked::Child,
        pid => Forked::Parent {
            pid: pid as libc::pid_t,
        },
    })
}

/// Clones the calling, single-threaded process into new namespaces.
///
/// With `sibling` the child becomes a child of our parent and sends no signal
/// when it ends; the returned descriptor is its pidfd. With a `group`, the
/// directory of a version 2 control group, it starts in that.
pub fn clone_into(
    namespaces: libc::c_int,
    sibling: bool,
    group: Option<BorrowedFd<'_>>,
) -> io::Result<Cloned> {
    #[repr(C)]
    #[derive(Default)]
    struct CloneArgs {
        flags: u64,
        pidfd: u64,
        child_tid: u64,
        parent_tid: u64,
        exit_signal: u64,
        stack: u64,
        stack_size: u64,
        tls: u64,
        set_tid: u64,
        set_tid_size: u64,
        cgroup: u64,
    }
    const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
    let mut pidfd: RawFd = -1;
    let mut flags = namespaces as u64 | libc::CLONE_PIDFD as u64;
    if sibling {
        flags |= libc::CLONE_PARENT as u64;
    }
    if group.is_some() {
        flags |= CLONE_INTO_CGROUP;
    }
    let args = CloneArgs {
        flags,
        pidfd: (&raw mut pidfd) as u64,
        exit_signal: if sibling { 0 } else { libc::SIGCHLD as u64 },
        cgroup: group.map_or(0, |group| group.as_raw_fd() as u64),
        ..CloneArgs::default()
    };
    // SAFETY: no CLONE_VM and no new stack, so this is a fork: the child runs on a
    // copy of this stack. `args` and `pidfd` outlive the call.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of::<CloneArgs>()) };
    match check(pid)? {
        0 => Ok(Cloned::Child),
        pid => {
            // SAFETY: the kernel stored a new descriptor in `pidfd`; nothing else owns it.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            let pid = pid as libc::pid_t;
            Ok(Cloned::Parent { pid, pidfd })
        }
    }
}

/// A process, and what it needs until its exec if [`launch`] started it.
pub struct Process {
    pub pidfd: OwnedFd,
    lent: Option<Box<Launch>>,
}

impl From<OwnedFd> for Process {
    fn from(pidfd: OwnedFd) -> Self {
        Self { pidfd, lent: None }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may still be about to start.
        if let Some(lent) = self.lent.take()
            && !reap_cell(self.pidfd.as_fd()).unwrap_or(true)
        {
            std::mem::forget(lent);
        }
    }
}

/// What the first steps of a new process are made with. Not moved while it may run.
struct Launch {
    path: CString,
    name: &'static CStr,
    stdin: RawFd,
    null: RawFd,
    stack: Vec<u128>,
}

/// Starts `path`, called `name`, in a process group of its own, without an environment,
/// with `stdin` as its only other descriptor than null devices, and all signals blocked.
///
/// Until it calls [`run_anywhere`] it stays off our processor: the kernel tends to put
/// both on one, and both have work to do. For the same reason we do not wait for its exec,
/// as `posix_spawn` does: the wake-up would bring us after it.
pub fn launch(path: &CStr, name: &'static CStr, stdin: BorrowedFd<'_>) -> io::Result<Process> {
    /// Only system calls that leave `errno` alone: we share all memory with the parent.
    extern "C" fn begin(launch: *mut libc::c_void) -> libc::c_int {
        // SAFETY: a `Launch` that lives until this process is gone, and that nobody changes.
        let launch = unsafe { &*launch.cast::<Launch>() };
        // A Ctrl-C at the terminal is for the server to handle.
        let _ = rustix::process::setpgid(None, None);
        for (fd, number) in [(launch.stdin, 0), (launch.null, 1), (launch.null, 2)] {
            // SAFETY: both are open in this process, which has a table of its own.
            let fd = unsafe { BorrowedFd::borrow_raw(fd) };
            // SAFETY: the number of a standard stream; nothing else here owns it.
            let mut stream = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(number) });
            if rustix::io::dup2(fd, &mut stream).is_err() {
                return 1;
            }
        }
        let argv = [launch.name.as_ptr(), std::ptr::null()];
        // SAFETY: a C string, and arrays of such that end with a null pointer: the
        // environment is the end of `argv`.
        unsafe { libc::execve(launch.path.as_ptr(), argv.as_ptr(), &raw const argv[1]) };
        1
    }
    let null = rustix::fs::open(c"/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let mut launch = Box::new(Launch {
        path: path.to_owned(),
        name,
        stdin: stdin.as_raw_fd(),
        null: null.as_raw_fd(),
        stack: vec![0; 2048],
    });
    let mut pidfd: RawFd = -1;
    let flags = libc::CLONE_VM | libc::CLONE_PIDFD | libc::SIGCHLD;
    let masked = mask_all_signals()?;
    let stack = launch.stack.as_mut_ptr_range().end;
    let lent: *mut Launch = &raw mut *launch;
    // SAFETY: the child runs on a stack of its own, with no handler of ours, and uses
    // nothing but `launch`, which is kept until the child is gone.
    let pid = unsafe { libc::clone(begin, stack.cast(), flags, lent.cast(), &raw mut pidfd) };
    let started = check(pid.into());
    restore_signals(&masked)?;
    started?;
    send_elsewhere(pid);
    // SAFETY: the kernel stored a new descriptor in `pidfd`; nothing else owns it.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(Process {
        pidfd,
        lent: Some(launch),
    })
}

/// Sends a child to another processor than ours, until it calls [`run_anywhere`].
pub fn send_elsewhere(pid: libc::pid_t) {
    if let (Some(pid), Ok(mut others)) = (Pid::from_raw(pid), sched_getaffinity(None)) {
        others.unset(sched_getcpu());
        // Refused if there are no others. It has not run yet, most likely.
        let _ = sched_setaffinity(Some(pid), &others);
    }
}

unsafe extern "C" {
    static mut environ: *mut *mut libc::c_char;
    static program_invocation_name: *mut libc::c_char;
}

/// The first two words of our command line, where the kernel laid them. Without a second
/// there is something else behind the first: variables, or the path of our binary.
pub fn first_words() -> [&'static CStr; 2] {
    // SAFETY: libc's own variable, set before `main`: our first word, which ends with NUL.
    let first = unsafe { CStr::from_ptr(program_invocation_name) };
    let behind = first.as_ptr().wrapping_add(first.count_bytes() + 1);
    // SAFETY: the kernel lays another C string behind it in any case.
    [first, unsafe { CStr::from_ptr(behind) }]
}

/// Overwrites the command line and the environment of a process that has one thread, and
/// calls it `name`.
pub fn forget_words(name: &CStr) {
    // SAFETY: libc's own variable; nobody else has looked at it or will.
    let variables = unsafe { environ };
    let mut last = variables.wrapping_sub(2);
    let mut next = variables;
    // SAFETY: the list ends with null; before it lies that of the words, which does too.
    while !unsafe { *next }.is_null() {
        last = next;
        next = next.wrapping_add(1);
    }
    // SAFETY: a place of one of the two lists.
    let last = unsafe { *last };
    // SAFETY: the last variable, or the last word.
    let last = unsafe { CStr::from_ptr(last) };
    let end = last.as_ptr() as usize + last.count_bytes();
    // SAFETY: libc's own variable.
    let start = unsafe { program_invocation_name };
    let room = end.saturating_sub(start as usize);
    // SAFETY: one after the other, from the first word to the end of the last variable,
    // all on the stack of our first thread.
    unsafe { std::ptr::write_bytes(start, 0, room) };
    let length = name.count_bytes().min(room);
    // SAFETY: there is room for so much of it.
    unsafe { std::ptr::copy_nonoverlapping(name.as_ptr(), start, length) };
    // SAFETY: its first place, which ends it now.
    unsafe { *variables = std::ptr::null_mut() };
}

/// Lets this process use the processors that its parent may use, again.
pub fn run_anywhere() {
    if let Ok(processors) = sched_getaffinity(rustix::process::getppid()) {
        let _ = sched_setaffinity(None, &processors);
    }
}

/// Ends this process without running anything of Rust's or libc's.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` takes an integer and does not return.
    unsafe { libc::_exit(code) }
}

/// Ends this process before its memory is taken apart, which whoever waits for its end
/// would wait for: another shares that memory until the cell ends.
#[cfg(feature = "zygote")]
pub fn exit_before_memory(code: i32) -> ! {
    extern "C" fn hold(_: *mut libc::c_void) -> libc::c_int {
        // Its own copies. Those of the process close with it: a thread of its might still
        // need them, and abort.
        let _ = close_range(0, RawFd::MAX, false);
        loop {
            // SAFETY: it takes nothing. No signal comes: all are blocked.
            unsafe { libc::pause() };
        }
    }
    let mut stack = [0_u128; 256];
    if mask_all_signals().is_ok() {
        let end = stack.as_mut_ptr_range().end.cast();
        // SAFETY: it lives on a part of our stack, to which we never return. Without it
        // all is the same, and takes longer.
        unsafe { libc::clone(hold, end, libc::CLONE_VM, std::ptr::null_mut()) };
    }
    exit_now(code)
}

/// Leaves the namespaces named in `flags` for new ones.
pub fn unshare(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: without CLONE_FILES or CLONE_FS nothing that Rust relies on changes.
    let ret = unsafe { libc::unshare(flags) };
    check(ret.into()).map(drop)
}

/// Moves this process into the namespace behind `fd`, of the kind `flag`.
pub fn enter(fd: BorrowedFd<'_>, flag: libc::c_int) -> io::Result<()> {
    // SAFETY: setns takes two integers and touches no memory of ours.
    let ret = unsafe { libc::setns(fd.as_raw_fd(), flag) };
    check(ret.into()).map(drop)
}

/// Brings the loopback interface up in our network namespace and returns a
/// descriptor of that namespace.
pub fn loopback_up(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    const SIOCGSKNS: libc::Ioctl = 0x894C;
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru {
            ifru_flags: (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short,
        },
    };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    // SAFETY: SIOCSIFFLAGS reads one `ifreq`, which `request` is.
    let ret = unsafe {
        libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCSIFFLAGS as _,
            &raw mut request,
        )
    };
    check(ret.into())?;
    // SAFETY: SIOCGSKNS takes no argument and returns a new descriptor.
    let fd = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGSKNS) };
    let fd = check(fd.into())?;
    // SAFETY: the kernel just returned `fd` to us; nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Marks every descriptor from `first` on close-on-exec, or closes it.
pub fn close_range(first: RawFd, last: RawFd, on_exec: bool) -> io::Result<()> {
    let flags = if on_exec {
        libc::CLOSE_RANGE_CLOEXEC
    } else {
        0
    };
    // SAFETY: three integers. Closing is for processes whose owners of those
    // descriptors are never dropped: they end by exec or `exit_now`.
    let ret = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    check(ret).map(drop)
}

/// Closes every descriptor but those in `keep`. For a process that a clone gave
/// copies of descriptors that are not its own.
pub fn close_all_but(keep: &[RawFd]) -> io::Result<()> {
    let mut keep = keep.to_vec();
    keep.sort_unstable();
    let mut next = 0;
    for fd in keep {
        if fd > next {
            close_range(next, fd - 1, false)?;
        }
        next = fd + 1;
    }
    close_range(next, RawFd::MAX, false)
}

/// Makes `fd` appear as `number`, open across exec.
pub fn dup_as(fd: BorrowedFd<'_>, number: RawFd) -> io::Result<()> {
    // SAFETY: dup2 takes two integers; `number` is one of 0, 1, 2, which Rust's
    // std treats as always open.
    let ret = unsafe { libc::dup2(fd.as_raw_fd(), number) };
    check(ret.into()).map(drop)
}

/// Takes over descriptor 0, the control socket that the spawner was started with.
pub fn take_stdin() -> OwnedFd {
    // SAFETY: called once, first thing in a process started with that descriptor.
    unsafe { OwnedFd::from_raw_fd(0) }
}

/// Puts the mount behind `tree` under `attributes` (`MOUNT_ATTR_*`), alone or with
/// all below it.
pub fn restrict_mount(tree: BorrowedFd<'_>, attributes: u64, all: bool) -> io::Result<()> {
    #[repr(C)]
    #[derive(Default)]
    struct MountAttr {
        attr_set: u64,
        attr_clr: u64,
        propagation: u64,
        userns_fd: u64,
    }
    let attr = MountAttr {
        attr_set: attributes,
        propagation: libc::MS_PRIVATE,
        ..MountAttr::default()
    };
    let flags = libc::AT_EMPTY_PATH | if all { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is an empty C string, `attr` outlives the call, its size is given.
    let ret = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    };
    check(ret).map(drop)
}

/// Lays `program` over every later system call of this thread and its children.
pub fn seccomp_set_filter(program: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel copies `len` instructions from `filter`, which the slice holds.
    let ret = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            0,
            &raw const program,
        )
    };
    check(ret).map(drop)
}

/// Gives every signal its default action and unblocks all of them.
pub fn reset_signals() -> io::Result<()> {
    for signal in 1..=64 {
        // SAFETY: SIG_DFL installs no code of ours; numbers that cannot be set fail alone.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    unblock_signals()
}

pub fn unblock_signals() -> io::Result<()> {
    mask_signals(libc::SIG_UNBLOCK, &(1..=64).collect::<Vec<_>>())
}

/// A descriptor that becomes readable when a child of ours ends.
pub fn child_signals() -> io::Result<OwnedFd> {
    mask_signals(libc::SIG_BLOCK, &[libc::SIGCHLD])?;
    let set = signal_set(&[libc::SIGCHLD]);
    // SAFETY: `set` is an initialised signal set and outlives the call.
    let fd = unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    let fd = check(fd.into())?;
    // SAFETY: the kernel just returned `fd` to us; nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Blocks every signal of this thread; with the mask as it was.
fn mask_all_signals() -> io::Result<libc::sigset_t> {
    let all = signal_set(&(1..=64).collect::<Vec<_>>());
    let mut before = signal_set(&[]);
    // SAFETY: both sets are initialised and outlive the call.
    let ret = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before) };
    if ret == 0 {
        Ok(before)
    } else {
        Err(io::Error::from_raw_os_error(ret))
    }
}

fn restore_signals(mask: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: an initialised set; the old one is not asked for.
    let ret = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
    if ret == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(ret))
    }
}

fn mask_signals(how: libc::c_int, signals: &[libc::c_int]) -> io::Result<()> {
    let set = signal_set(signals);
    // SAFETY: `set` is initialised; the old mask is not asked for.
    let ret = unsafe { libc::sigprocmask(how, &set, std::ptr::null_mut()) };
    check(ret.into()).map(drop)
}

fn signal_set(signals: &[libc::c_int]) -> libc::sigset_t {
    // SAFETY: a signal set is plain integers, for which zero is a value.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    for &signal in signals {
        // SAFETY: `set` is a valid set; a number out of range is refused.
        unsafe { libc::sigaddset(&mut set, signal) };
    }
    set
}

/// One child of ours that ended, with its wait status and what it used.
pub struct Ended {
    pub pid: libc::pid_t,
    pub status: i32,
    pub cpu_micros: u64,
    pub max_rss: u64,
}

/// Reaps one child that has ended, if there is one.
pub fn reap() -> io::Result<Option<Ended>> {
    let mut status = 0;
    // SAFETY: `rusage` is plain integers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both out-pointers are to locals that outlive the call.
    let pid = unsafe { libc::wait4(-1, &mut status, libc::WNOHANG | libc::__WALL, &mut usage) };
    if pid == 0 {
        return Ok(None);
    }
    check(pid.into())?;
    let micros = |t: libc::timeval| t.tv_sec as u64 * 1_000_000 + t.tv_usec as u64;
    Ok(Some(Ended {
        pid,
        status,
        cpu_micros: micros(usage.ru_utime) + micros(usage.ru_stime),
        max_rss: usage.ru_maxrss as u64 * 1024,
    }))
}

/// Reaps the cell behind `pidfd` if it has ended. Cells send no signal when
/// they end, hence `__WALL`.
pub fn reap_cell(pidfd: BorrowedFd<'_>) -> io::Result<bool> {
    // SAFETY: `siginfo_t` is plain integers, for which zero is a value.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let options = libc::WEXITED | libc::WNOHANG | libc::__WALL;
    let id = pidfd.as_raw_fd() as libc::id_t;
    // SAFETY: `info` is a local that outlives the call.
    let ret = unsafe { libc::waitid(libc::P_PIDFD, id, &mut info, options) };
    check(ret.into())?;
    // SAFETY: waitid filled `info` for an ended child, or left it zero.
    Ok(unsafe { info.si_pid() } != 0)
}

/// Pointers to the strings of `list`, and a null pointer.
fn pointers(list: &[CString]) -> Vec<*const libc::c_char> {
    let end = std::iter::once(std::ptr::null());
    list.iter().map(|text| text.as_ptr()).chain(end).collect()
}

/// Replaces this process by the program in `file`. Returns only if that failed.
pub fn exec_file(file: BorrowedFd<'_>, argv: &[CString], env: &[CString]) -> io::Error {
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: the path is an empty C string; both arrays end with a null pointer and
    // their strings outlive the call.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            file.as_raw_fd(),
            c"".as_ptr(),
            argv.as_ptr(),
            env.as_ptr(),
            libc::AT_EMPTY_PATH,
        )
    };
    io::Error::last_os_error()
}

/// Replaces this process. Returns only if that failed.
pub fn exec(path: &CString, argv: &[CString], env: &[CString]) -> io::Error {
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: both arrays end with a null pointer and their strings outlive the call.
    unsafe { libc::execve(path.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}

/// Has this process's access to files checked with the group `gid`, one of its
/// real, effective or saved ones.
pub fn set_file_group(gid: u32) -> io::Result<()> {
    // SAFETY: setfsgid takes an integer and never fails visibly.
    unsafe { libc::setfsgid(gid) };
    // SAFETY: the same; an impossible argument reads the id back.
    let now = unsafe { libc::setfsgid(u32::MAX) };
    if now as u32 == gid {
        Ok(())
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// Lets files that this *thread* makes belong to `uid` and `gid`, and checks
/// its access as theirs.
///
/// Used by the server as root to reach into a cell's workspace as the cell.
pub fn set_thread_file_ids(uid: u32, gid: u32) -> io::Result<()> {
    // SAFETY: setfsgid takes an integer; it is per thread and never fails visibly.
    unsafe { libc::setfsgid(gid) };
    // SAFETY: the same; an impossible argument reads the id back.
    let now = unsafe { libc::setfsgid(u32::MAX) };
    // SAFETY: setfsuid takes an integer and is per thread.
    unsafe { libc::setfsuid(uid) };
    // SAFETY: an impossible argument reads the id back.
    let uid_now = unsafe { libc::setfsuid(u32::MAX) };
    if now as u32 == gid && uid_now as u32 == uid {
        Ok(())
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// A variable of the environment, in a process that has one thread.
#[cfg(feature = "zygote")]
pub fn variable(name: &str) -> Option<String> {
    let name = CString::new(name).ok()?;
    // SAFETY: a C string; nobody else touches the environment now.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: getenv returned a C string of the environment.
    let value = unsafe { CStr::from_ptr(value) };
    value.to_str().ok().map(str::to_owned)
}

/// Writes another environment over that of a process which has one thread and has not
/// looked at it yet. It must have as many variables and take up as much room.
#[cfg(feature = "zygote")]
pub fn replace_environment(real: &[CString]) -> io::Result<()> {
    unsafe extern "C" {
        static environ: *mut *mut libc::c_char;
    }
    // SAFETY: libc's own variable; this process has one thread.
    let list = unsafe { environ };
    let mut places = Vec::new();
    loop {
        // SAFETY: the list ends with null, and we stop there.
        match unsafe { *list.wrapping_add(places.len()) } {
            end if end.is_null() => break,
            place => places.push(place),
        }
    }
    // SAFETY: each is a C string of the environment.
    let room = |&place: &*mut libc::c_char| unsafe { CStr::from_ptr(place) }.count_bytes() + 1;
    let (theirs, ours) = (
        places.iter().map(room).sum::<usize>(),
        real.iter()
            .map(|text| text.count_bytes() + 1)
            .sum::<usize>(),
    );
    // One after the other, as the kernel lays them.
    let is_whole = places
        .windows(2)
        .all(|pair| pair[0] as usize + room(&pair[0]) == pair[1] as usize);
    let first = places
        .first()
        .filter(|_| is_whole && theirs == ours && places.len() == real.len());
    let mut place = *first.ok_or(io::ErrorKind::InvalidInput)?;
    for (at, text) in real.iter().enumerate() {
        let bytes = text.as_bytes_with_nul();
        // SAFETY: all of them together take up the room that begins at the first place.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), place, bytes.len()) };
        // SAFETY: the list has as many entries.
        unsafe { *list.wrapping_add(at) = place };
        place = place.wrapping_add(bytes.len());
    }
    Ok(())
}

/// Lets `fd` live across an exec.
pub fn keep_on_exec(fd: BorrowedFd<'_>) -> io::Result<()> {
    Ok(rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::empty())?)
}

/// Takes over a descriptor that whoever started this process left open for us.
pub fn take_descriptor(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_GETFD takes two integers and changes nothing, whoever owns the number.
    check(unsafe { libc::fcntl(number, libc::F_GETFD) }.into())?;
    // SAFETY: it is open, and named to this process alone, once.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// A C string, or the error for text with a NUL byte in it.
pub fn c_string(text: impl Arg) -> io::Result<CString> {
    Ok(text.into_c_str()?.into_owned())
}

/// Which descriptors below `end` are open in this process. Needs no /proc.
pub fn open_descriptors(end: RawFd) -> Vec<RawFd> {
    // SAFETY: F_GETFD takes two integers and changes nothing, whoever owns `fd`.
    let is_open = |&fd: &RawFd| unsafe { libc::fcntl(fd, libc::F_GETFD) } >= 0;
    (0..end).filter(is_open).collect()
}
