//! The numbers of system calls by name: libc's, and those it does not have yet.

#![allow(
    non_upper_case_globals,
    reason = "the names are the kernel's, spelt as in libc"
)]

// A constant here hides libc's of the same name, so nothing breaks when libc catches up.
pub use libc::*;

// From 424 on the architectures share one list (include/uapi/asm-generic/unistd.h).
pub const SYS_cachestat: c_long = 451;
pub const SYS_fchmodat2: c_long = 452;
pub const SYS_map_shadow_stack: c_long = 453;
pub const SYS_futex_wake: c_long = 454;
pub const SYS_futex_wait: c_long = 455;
pub const SYS_futex_requeue: c_long = 456;
pub const SYS_statmount: c_long = 457;
pub const SYS_listmount: c_long = 458;
pub const SYS_lsm_get_self_attr: c_long = 459;
pub const SYS_lsm_set_self_attr: c_long = 460;
pub const SYS_lsm_list_modules: c_long = 461;
pub const SYS_setxattrat: c_long = 463;
pub const SYS_getxattrat: c_long = 464;
pub const SYS_listxattrat: c_long = 465;
pub const SYS_removexattrat: c_long = 466;
pub const SYS_open_tree_attr: c_long = 467;
pub const SYS_file_getattr: c_long = 468;
pub const SYS_file_setattr: c_long = 469;
pub const SYS_listns: c_long = 470;

#[cfg(target_arch = "x86_64")]
pub const SYS_create_module: c_long = 174;
#[cfg(target_arch = "x86_64")]
pub const SYS_get_kernel_syms: c_long = 177;
#[cfg(target_arch = "x86_64")]
pub const SYS_query_module: c_long = 178;
#[cfg(target_arch = "x86_64")]
pub const SYS_io_pgetevents: c_long = 333;
#[cfg(target_arch = "x86_64")]
pub const SYS_uretprobe: c_long = 335;

#[cfg(target_arch = "aarch64")]
pub const SYS_io_pgetevents: c_long = 292;
#[cfg(target_arch = "aarch64")]
pub const SYS_kexec_file_load: c_long = 294;
