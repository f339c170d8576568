//! Our command line and environment, in the memory where the kernel put them.

use std::ffi::CStr;

unsafe extern "C" {
    static mut environ: *mut *mut libc::c_char;
    static program_invocation_name: *mut libc::c_char;
}

/// The first two strings of our command line, where the kernel put them. Without a second
/// there is something else behind the first: variables, or the path of our binary.
pub fn command_line_start() -> [&'static CStr; 2] {
    // SAFETY: libc's own variable, set before `main`: our first argument, a C string.
    let first = unsafe { CStr::from_ptr(program_invocation_name) };
    let behind = first.as_ptr().wrapping_add(first.count_bytes() + 1);
    // SAFETY: the kernel puts another C string behind it in any case.
    [first, unsafe { CStr::from_ptr(behind) }]
}

/// Whether one of our arguments is this word. Copies none of them, so that a fork that wipes them has wiped all. Before anything sets a
/// variable.
pub fn has_argument(word: &CStr) -> bool {
    // SAFETY: libc's own variable, set before `main`.
    let first = unsafe { program_invocation_name };
    // SAFETY: libc's own variable; nobody changes it yet.
    let mut entry = unsafe { environ }.wrapping_sub(2);
    loop {
        // SAFETY: before the list of variables lies that of the arguments, which ends with null; this is an entry of it, down to the first.
        let argument = unsafe { *entry };
        if argument == first || argument.is_null() {
            return false;
        }
        // SAFETY: an argument, which is a C string.
        if unsafe { CStr::from_ptr(argument) } == word {
            return true;
        }
        entry = entry.wrapping_sub(1);
    }
}

/// Overwrites the command line and the environment of a process that has one thread, and
/// calls it `name`.
pub fn forget_command_line(name: &CStr) {
    // SAFETY: libc's own variable; nobody else has looked at it or will.
    let variables = unsafe { environ };
    let mut last = variables.wrapping_sub(2);
    let mut next = variables;
    // SAFETY: the list ends with null; before it lies that of the arguments, which does too.
    while !unsafe { *next }.is_null() {
        last = next;
        next = next.wrapping_add(1);
    }
    // SAFETY: an entry of one of the two lists.
    let last = unsafe { *last };
    // SAFETY: the last variable, or the last argument: a C string.
    let last = unsafe { CStr::from_ptr(last) };
    let end = last.as_ptr() as usize + last.count_bytes();
    // SAFETY: libc's own variable.
    let start = unsafe { program_invocation_name };
    let size = end.saturating_sub(start as usize);
    // SAFETY: one after the other, from the first argument to the end of the last variable,
    // all on the stack of our first thread, which nobody else reads any more.
    unsafe { std::ptr::write_bytes(start, 0, size) };
    let length = name.count_bytes().min(size);
    // SAFETY: there is room for so much of it.
    unsafe { std::ptr::copy_nonoverlapping(name.as_ptr(), start, length) };
    // SAFETY: its first entry, which ends it now.
    unsafe { *variables = std::ptr::null_mut() };
}
