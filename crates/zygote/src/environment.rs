//! The environment of this process, in the memory where the kernel put it.

use std::ffi::{CStr, CString, c_char};
use std::io;

unsafe extern "C" {
    static environ: *mut *mut c_char;
}

/// The value of a variable.
///
/// # Safety
/// This process has one thread.
pub unsafe fn variable(name: &str) -> Option<String> {
    let name = CString::new(name).ok()?;
    // SAFETY: a C string; nobody changes the environment meanwhile, our caller says.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: getenv returned a C string of the environment.
    let value = unsafe { CStr::from_ptr(value) };
    value.to_str().ok().map(str::to_owned)
}

/// Writes another environment over that of this process, which must have as many variables and
/// take up as many bytes.
///
/// # Safety
/// This process has one thread, and nobody has kept a pointer into its environment.
pub unsafe fn replace(real: &[CString]) -> io::Result<()> {
    // SAFETY: libc's own variable; nobody changes it meanwhile, our caller says.
    let list = unsafe { environ };
    // SAFETY: libc's own list, which ends with null.
    let entries = unsafe { entries(list) };
    // SAFETY: each is a C string of the environment.
    let size = |&entry: &*mut c_char| unsafe { CStr::from_ptr(entry) }.count_bytes() + 1;
    let theirs: usize = entries.iter().map(size).sum();
    let ours: usize = real.iter().map(|text| text.count_bytes() + 1).sum();
    // One after the other, as the kernel puts them.
    let is_whole = entries
        .windows(2)
        .all(|pair| pair[0] as usize + size(&pair[0]) == pair[1] as usize);
    let first = entries
        .first()
        .filter(|_| is_whole && theirs == ours && entries.len() == real.len());
    let mut next = *first.ok_or(io::ErrorKind::InvalidInput)?;
    for (at, text) in real.iter().enumerate() {
        let bytes = text.as_bytes_with_nul();
        // SAFETY: all of `real` together is as long as the entries, which lie one after the
        // other from the first on, and `next` goes through them from there.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), next, bytes.len()) };
        // SAFETY: the list has as many entries as `real`.
        unsafe { *list.wrapping_add(at) = next };
        next = next.wrapping_add(bytes.len());
    }
    Ok(())
}

/// # Safety
/// `list` ends with null.
unsafe fn entries(list: *mut *mut c_char) -> Vec<*mut c_char> {
    let mut entries = Vec::new();
    loop {
        // SAFETY: no further than the null at its end, for which our caller vouches.
        match unsafe { *list.wrapping_add(entries.len()) } {
            end if end.is_null() => return entries,
            entry => entries.push(entry),
        }
    }
}
