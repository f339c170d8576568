//! What each system call comes to: one row for one reason.
//!
//! The base is moby's default profile read as facts (an allowlist), less what a cell has no use
//! for. Every number of the architecture up to `listns` (Linux 6.19) is in a row, so that none is
//! decided by accident; a test counts. A new call goes into a row, or into a new row with a reason.

use libc::{EAFNOSUPPORT, ENOSYS, EOPNOTSUPP, EPERM};

use super::numbers;
use super::rule::Values::{Never, Only};
use super::rule::Verdict::{Allow, Errno, When};
use super::rule::{Call, Check, Rule, Verdict};

const ALL_BITS: u32 = u32::MAX;
const NEW_LISTENER: u32 = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER as u32;

/// Every flag that makes a namespace. 0x80 is CLONE_NEWTIME; in `clone` it lies among the bits of
/// the exit signal, none of which uses it.
pub const CLONE_NEW: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | 0x80) as u32;

/// No commas between the names: rustfmt would give each of four hundred its own line.
macro_rules! calls {
    ($($name:ident)*) => { &[$((stringify!($name), numbers::$name)),*] };
}

const fn rule(calls: &'static [Call], verdict: Verdict) -> Rule {
    Rule { calls, verdict }
}

/// The filter of programs in a cell, less the rows [`GROUPED`] or [`UNGROUPED`], and [`OWN_FILES`] or [`HOST_FILES`].
#[rustfmt::skip]
pub const CELL: &[Rule] = &[
    // --- Allowed: what ordinary programs need, and what the other walls confine ---

    // Files. Which ones is the business of mounts, modes and landlock.
    rule(calls![
        SYS_chdir SYS_close SYS_close_range SYS_copy_file_range SYS_dup SYS_dup3 SYS_faccessat
        SYS_faccessat2 SYS_fadvise64 SYS_fallocate SYS_fchdir SYS_fchown SYS_fchownat SYS_fcntl SYS_fdatasync SYS_fgetxattr SYS_flistxattr SYS_flock
        SYS_fremovexattr SYS_fsetxattr SYS_fstat SYS_fstatfs SYS_fsync SYS_ftruncate SYS_getcwd
        SYS_getdents64 SYS_getxattr SYS_getxattrat SYS_inotify_add_watch SYS_inotify_init1
        SYS_inotify_rm_watch SYS_lgetxattr SYS_linkat SYS_listxattr SYS_listxattrat SYS_llistxattr
        SYS_lremovexattr SYS_lseek SYS_lsetxattr SYS_mkdirat SYS_newfstatat SYS_pipe2 SYS_pread64 SYS_preadv SYS_preadv2 SYS_pwrite64 SYS_pwritev
        SYS_pwritev2 SYS_read SYS_readahead SYS_readlinkat SYS_readv SYS_removexattr
        SYS_removexattrat SYS_renameat SYS_renameat2 SYS_sendfile SYS_setxattr SYS_setxattrat
        SYS_splice SYS_statfs SYS_statx SYS_symlinkat SYS_sync_file_range SYS_tee SYS_truncate
        SYS_umask SYS_unlinkat SYS_utimensat SYS_vmsplice SYS_write SYS_writev
    ], Allow),
    // The older forms that only x86_64 has, of files and of everything else.
    #[cfg(target_arch = "x86_64")]
    rule(calls![
        SYS_access SYS_alarm SYS_arch_prctl SYS_chown SYS_dup2 SYS_epoll_create
        SYS_epoll_wait SYS_eventfd SYS_fork SYS_futimesat SYS_get_thread_area SYS_getdents
        SYS_getpgrp SYS_inotify_init SYS_lchown SYS_link SYS_lstat SYS_mkdir
        SYS_pause SYS_pipe SYS_poll SYS_readlink SYS_rename SYS_rmdir SYS_select
        SYS_set_thread_area SYS_signalfd SYS_stat SYS_symlink SYS_time SYS_unlink SYS_utime
        SYS_utimes SYS_vfork
    ], Allow),
    // The kernel plants this one itself in a process it traces from outside; refusing it there
    // kills the process for what an administrator does. Anyone else who calls it gets SIGILL.
    #[cfg(target_arch = "x86_64")]
    rule(calls![SYS_uretprobe], Allow),
    // Waiting for several things.
    rule(calls![
        SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait SYS_epoll_pwait2 SYS_eventfd2 SYS_ppoll
        SYS_pselect6 SYS_signalfd4 SYS_timerfd_create SYS_timerfd_gettime SYS_timerfd_settime
    ], Allow),
    // Memory of one's own.
    rule(calls![
        SYS_brk SYS_madvise SYS_map_shadow_stack SYS_mincore SYS_mlock SYS_mlock2 SYS_mlockall
        SYS_mmap SYS_mprotect SYS_mremap SYS_mseal SYS_msync SYS_munlock SYS_munlockall SYS_munmap
        SYS_pkey_alloc SYS_pkey_free SYS_pkey_mprotect SYS_remap_file_pages
    ], Allow),
    // Processes and threads. The pid namespace bounds which; no capability is left to use.
    rule(calls![
        SYS_capget SYS_capset SYS_execve SYS_execveat SYS_exit SYS_exit_group SYS_futex
        SYS_futex_requeue SYS_futex_wait SYS_futex_waitv SYS_futex_wake SYS_get_robust_list
        SYS_getcpu SYS_getegid SYS_geteuid SYS_getgid SYS_getgroups SYS_getpgid SYS_getpid
        SYS_getppid SYS_getpriority SYS_getresgid SYS_getresuid SYS_getrlimit SYS_getrusage
        SYS_getsid SYS_gettid SYS_getuid SYS_ioprio_get SYS_membarrier
        SYS_pidfd_open SYS_rseq SYS_sched_get_priority_max
        SYS_sched_get_priority_min SYS_sched_getaffinity SYS_sched_getattr SYS_sched_getparam
        SYS_sched_getscheduler SYS_sched_rr_get_interval SYS_sched_yield SYS_set_robust_list
        SYS_set_tid_address SYS_setfsgid SYS_setfsuid SYS_setgid SYS_setgroups SYS_setpgid
        SYS_setregid SYS_setresgid SYS_setresuid SYS_setreuid SYS_setrlimit
        SYS_setsid SYS_setuid SYS_wait4 SYS_waitid
    ], Allow),
    // Signals.
    rule(calls![
        SYS_kill SYS_pidfd_send_signal SYS_restart_syscall SYS_rt_sigaction SYS_rt_sigpending
        SYS_rt_sigprocmask SYS_rt_sigqueueinfo SYS_rt_sigreturn SYS_rt_sigsuspend
        SYS_rt_sigtimedwait SYS_rt_tgsigqueueinfo SYS_sigaltstack SYS_tgkill SYS_tkill
    ], Allow),
    // Reading clocks, sleeping, randomness, facts about the machine.
    rule(calls![
        SYS_clock_getres SYS_clock_gettime SYS_clock_nanosleep SYS_getitimer SYS_getrandom
        SYS_gettimeofday SYS_nanosleep SYS_setitimer SYS_sysinfo SYS_timer_create SYS_timer_delete
        SYS_timer_getoverrun SYS_timer_gettime SYS_timer_settime SYS_times SYS_uname
    ], Allow),
    // Sockets, once made (see `socket` below), and the IPC of the cell's own namespace.
    rule(calls![
        SYS_accept SYS_accept4 SYS_bind SYS_connect SYS_getpeername SYS_getsockname SYS_getsockopt
        SYS_listen SYS_recvfrom SYS_recvmmsg SYS_recvmsg
        SYS_setsockopt SYS_shutdown
        SYS_mq_getsetattr SYS_mq_notify SYS_mq_open SYS_mq_timedreceive SYS_mq_timedsend
        SYS_mq_unlink SYS_msgctl SYS_msgget SYS_msgrcv SYS_msgsnd SYS_semctl SYS_semget SYS_semop
        SYS_semtimedop SYS_shmat SYS_shmctl SYS_shmdt
    ], Allow),

    // --- Allowed with some arguments ---

    // A nested user namespace would open the mount and netfilter code to the program.
    rule(calls![SYS_clone SYS_unshare], When(&[
        Check { arg: 0, mask: CLONE_NEW, values: Only(&[0]), errno: EPERM },
    ])),
    // Not on pid 1, whose uid is the program's: a limit on its processor time would end the cell as if it had vanished.
    rule(calls![SYS_prlimit64 SYS_sched_setattr SYS_sched_setparam SYS_sched_setscheduler], When(&[NOT_INIT_0])),
    rule(calls![SYS_setpriority], When(&[NOT_INIT_1, no_user(&[2])])),
    rule(calls![SYS_ioprio_set], When(&[NOT_INIT_1, no_user(&[3])])),
    // An allowlist, for families appear: AF_VSOCK reaches the hypervisor from any network
    // namespace, AF_ALG, AF_PACKET, AF_XDP and netlink are a large surface. Without AF_NETLINK
    // `getifaddrs` fails; that is the price. Types leave out RAW and PACKET, protocols ICMP, MPTCP,
    // SCTP, DCCP.
    rule(calls![SYS_socket SYS_socketpair], When(&[
        Check { arg: 0, mask: ALL_BITS, errno: EAFNOSUPPORT, values: Only(&[
            libc::AF_UNIX as u32, libc::AF_INET as u32, libc::AF_INET6 as u32,
        ]) },
        // The kernel's SOCK_TYPE_MASK; above it are SOCK_CLOEXEC and SOCK_NONBLOCK.
        Check { arg: 1, mask: 0xf, errno: EPERM, values: Only(&[
            libc::SOCK_STREAM as u32, libc::SOCK_DGRAM as u32, libc::SOCK_SEQPACKET as u32,
        ]) },
        Check { arg: 2, mask: ALL_BITS, errno: EPERM, values: Only(&[
            0, libc::IPPROTO_TCP as u32, libc::IPPROTO_UDP as u32,
        ]) },
    ])),
    // Urgent bytes on unix sockets are code that nobody uses but exploits (CVE-2025-38236); without one that sends there is none to receive.
    // A kernel without them says the same.
    rule(calls![SYS_sendmsg], When(&[NO_URGENT_2])),
    rule(calls![SYS_sendmmsg SYS_sendto], When(&[NO_URGENT_3])),
    // Typing into a terminal in somebody's name (CVE-2017-5226), pasting on a console, loading line
    // disciplines, taking over console output.
    rule(calls![SYS_ioctl], When(&[
        Check { arg: 1, mask: ALL_BITS, errno: EPERM, values: Never(&[
            libc::TIOCSTI as u32, libc::TIOCLINUX as u32, libc::TIOCSETD as u32,
            libc::TIOCCONS as u32,
        ]) },
    ])),
    // Linux as it is, or asking; other values turn off ASLR or change what system calls mean.
    rule(calls![SYS_personality], When(&[
        Check { arg: 0, mask: ALL_BITS, values: Only(&[0, 0xffff_ffff]), errno: EPERM },
    ])),
    // PR_SET_MM rewrites the process's own layout, and /proc/self/exe with it. A core-scheduling
    // cookie keeps everybody else off the sibling of a core: a share that no limit takes back.
    rule(calls![SYS_prctl], When(&[
        Check { arg: 0, mask: ALL_BITS, errno: EPERM, values: Never(&[
            libc::PR_SET_MM as u32, libc::PR_SCHED_CORE as u32,
        ]) },
    ])),
    // A program may stack filters of its own: they only tighten. A listener would answer for calls.
    rule(calls![SYS_seccomp], When(&[
        Check { arg: 1, mask: NEW_LISTENER, values: Only(&[0]), errno: EPERM },
    ])),

    // --- Not there: callers know how to do without ---

    // Its flags are behind a pointer, where no filter sees them; glibc falls back to clone.
    rule(calls![SYS_clone3], Errno(ENOSYS)),
    // Opens sockets and files past the filter, and has a long record of holes.
    rule(calls![SYS_io_uring_setup SYS_io_uring_enter SYS_io_uring_register], Errno(ENOSYS)),
    // Counted against one number for the whole host (fs.aio-max-nr): one cell could take it all.
    rule(calls![
        SYS_io_cancel SYS_io_destroy SYS_io_getevents SYS_io_pgetevents SYS_io_setup SYS_io_submit
    ], Errno(ENOSYS)),
    // Tells which pages of a shared file others have read; its first kernels ask for no right.
    rule(calls![SYS_cachestat], Errno(ENOSYS)),
    // Newer than the base profile, and what they do an older call does too.
    rule(calls![SYS_file_getattr SYS_file_setattr], Errno(ENOSYS)),
    // Numbers that no kernel of today has code for.
    rule(calls![SYS_nfsservctl], Errno(ENOSYS)),
    #[cfg(target_arch = "x86_64")]
    rule(calls![
        SYS_afs_syscall SYS_create_module SYS_epoll_ctl_old SYS_epoll_wait_old SYS_get_kernel_syms
        SYS_getpmsg SYS_putpmsg SYS_query_module SYS_security SYS_tuxcall SYS_vserver
    ], Errno(ENOSYS)),

    // --- A success without effect ---

    // They flush the host's filesystems, and all wait for that. A cell's files die with it; for
    // those that do not there is fsync.
    rule(calls![SYS_sync SYS_syncfs], Errno(0)),

    // --- Refused ---

    // With type 0 it joins a namespace of any kind, so there is no argument to allow.
    rule(calls![SYS_setns], Errno(EPERM)),
    // Reading and writing other processes, and other helpers of exploits.
    rule(calls![
        SYS_get_mempolicy SYS_kcmp SYS_mbind SYS_memfd_secret SYS_migrate_pages SYS_move_pages
        SYS_pidfd_getfd SYS_process_madvise SYS_process_mrelease SYS_process_vm_readv
        SYS_process_vm_writev SYS_ptrace SYS_set_mempolicy SYS_set_mempolicy_home_node
        SYS_userfaultfd
    ], Errno(EPERM)),
    #[cfg(target_arch = "x86_64")]
    rule(calls![SYS_modify_ldt], Errno(EPERM)),
    // State that no namespace divides: keyrings belong to a host uid, the rest to the host.
    rule(calls![
        SYS_acct SYS_add_key SYS_bpf SYS_fanotify_init SYS_fanotify_mark SYS_keyctl
        SYS_lookup_dcookie SYS_perf_event_open SYS_quotactl SYS_quotactl_fd SYS_request_key
        SYS_syslog
    ], Errno(EPERM)),
    // Opening files by number instead of by path, past mounts and modes.
    rule(calls![SYS_name_to_handle_at SYS_open_by_handle_at], Errno(EPERM)),
    // The walls themselves. All mounts are made before the program exists.
    rule(calls![
        SYS_chroot SYS_fsconfig SYS_fsmount SYS_fsopen SYS_fspick SYS_landlock_add_rule
        SYS_landlock_create_ruleset SYS_landlock_restrict_self SYS_listmount SYS_listns
        SYS_lsm_get_self_attr SYS_lsm_list_modules SYS_lsm_set_self_attr SYS_mount
        SYS_mount_setattr SYS_move_mount SYS_open_tree SYS_open_tree_attr SYS_pivot_root
        SYS_statmount SYS_umount2
    ], Errno(EPERM)),
    // Administration of the host.
    rule(calls![
        SYS_adjtimex SYS_clock_adjtime SYS_clock_settime SYS_delete_module SYS_finit_module
        SYS_init_module SYS_kexec_file_load SYS_kexec_load SYS_reboot SYS_setdomainname
        SYS_sethostname SYS_settimeofday SYS_swapoff SYS_swapon SYS_vhangup
    ], Errno(EPERM)),
    #[cfg(target_arch = "x86_64")]
    rule(calls![SYS__sysctl SYS_ioperm SYS_iopl SYS_sysfs SYS_uselib SYS_ustat], Errno(EPERM)),
];

/// Memory that stays when no process maps it: fine where a cgroup charges it to the cell, without
/// bound where only the memory of processes is added up. ENOSYS makes callers use files instead.
/// Likewise processors: a cell that no cgroup slows down is pinned, and stays so.
pub const GROUPED: &[Rule] = &[
    rule(calls![SYS_memfd_create SYS_shmget], Allow),
    rule(calls![SYS_sched_setaffinity], When(&[NOT_INIT_0])),
];
pub const UNGROUPED: &[Rule] = &[
    rule(calls![SYS_memfd_create SYS_shmget], Errno(ENOSYS)),
    rule(calls![SYS_sched_setaffinity], Errno(EPERM)),
];

/// Files of the cell's own may have any mode: they vanish with it.
#[rustfmt::skip]
pub const OWN_FILES: &[Rule] = &[
    rule(calls![
        SYS_fchmod SYS_fchmodat SYS_fchmodat2 SYS_mknodat SYS_openat SYS_openat2
    ], Allow),
    #[cfg(target_arch = "x86_64")]
    rule(calls![SYS_chmod SYS_creat SYS_mknod SYS_open], Allow),
];
/// Where a cell may write to a folder of the host, files stay there, and belong to the folder's owner or the server's user:
/// with the set-user-id bit, anybody on the host would run the program's code as them. A mode is looked at even
/// where the flags ask for no new file, since libc then passes 0.
#[rustfmt::skip]
pub const HOST_FILES: &[Rule] = &[
    rule(calls![SYS_fchmod], When(&[NO_SET_ID_1])),
    rule(calls![SYS_fchmodat SYS_fchmodat2 SYS_mknodat], When(&[NO_SET_ID_2])),
    rule(calls![SYS_openat], When(&[NO_SET_ID_3])),
    // Its mode is behind a pointer, where no filter sees it; callers fall back to openat.
    rule(calls![SYS_openat2], Errno(ENOSYS)),
    #[cfg(target_arch = "x86_64")]
    rule(calls![SYS_chmod SYS_creat SYS_mknod], When(&[NO_SET_ID_1])),
    #[cfg(target_arch = "x86_64")]
    rule(calls![SYS_open], When(&[NO_SET_ID_2])),
];

const NO_URGENT_2: Check = no_urgent(2);
const NO_URGENT_3: Check = no_urgent(3);

/// The flags of a message in the argument `arg`, without MSG_OOB.
const fn no_urgent(arg: u32) -> Check {
    Check {
        arg,
        mask: libc::MSG_OOB as u32,
        values: Only(&[0]),
        errno: EOPNOTSUPP,
    }
}

const NOT_INIT_0: Check = not_init(0);
const NOT_INIT_1: Check = not_init(1);

/// The pid in this argument is not init's. Pids of another namespace are not to be had: a program cannot make one.
const fn not_init(arg: u32) -> Check {
    Check {
        arg,
        mask: ALL_BITS,
        values: Never(&[1]),
        errno: EPERM,
    }
}

/// The first argument does not say that the second is a uid: pid 1 has the program's.
const fn no_user(values: &'static [u32]) -> Check {
    Check {
        arg: 0,
        mask: ALL_BITS,
        values: Never(values),
        errno: EPERM,
    }
}

const NO_SET_ID_1: Check = no_set_id(1);
const NO_SET_ID_2: Check = no_set_id(2);
const NO_SET_ID_3: Check = no_set_id(3);

/// A mode in the argument `arg`, without set-user-id and set-group-id.
const fn no_set_id(arg: u32) -> Check {
    Check {
        arg,
        mask: libc::S_ISUID | libc::S_ISGID,
        values: Only(&[0]),
        errno: EPERM,
    }
}

/// The filter of our pid 1: wait, count `/proc`, report, exit. Anything else is [`Verdict::Kill`].
#[rustfmt::skip]
pub const INIT: &[Rule] = &[
    rule(calls![
        SYS_brk SYS_clock_gettime SYS_close SYS_exit SYS_exit_group SYS_fstat SYS_futex
        SYS_getdents64 SYS_getpid SYS_kill SYS_lseek SYS_madvise SYS_munmap SYS_newfstatat SYS_ppoll
        SYS_read SYS_recvmsg SYS_restart_syscall SYS_rt_sigprocmask SYS_rt_sigreturn
        SYS_rt_sigtimedwait SYS_sendmsg SYS_sendto SYS_wait4 SYS_waitid SYS_write
    ], Allow),
    #[cfg(target_arch = "x86_64")]
    rule(calls![SYS_poll], Allow),
    // A debug build of std looks at a file descriptor before it closes it.
    rule(calls![SYS_fcntl], When(&[
        Check { arg: 1, mask: ALL_BITS, values: Only(&[libc::F_GETFD as u32]), errno: EPERM },
    ])),
    // It reads files and writes none.
    rule(calls![SYS_openat], When(&[
        Check {
            arg: 2,
            mask: (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC) as u32,
            values: Only(&[libc::O_RDONLY as u32]),
            errno: EPERM,
        },
    ])),
    rule(calls![SYS_mmap], When(&[
        Check { arg: 2, mask: libc::PROT_EXEC as u32, values: Only(&[0]), errno: EPERM },
    ])),
];
