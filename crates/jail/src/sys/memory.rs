//! What the allocator of this process does with memory that was freed.

/// Has it keep some, for a process that answers one request after the other: each would else grow the heap by a little and give that back,
/// with a few system calls and as many pages that the kernel clears again. For the first lines of it.
#[cfg(target_env = "gnu")]
pub fn keep_freed_memory() {
    /// What may lie free at the end of the heap, and by how much that grows at least.
    const KEPT: libc::c_int = 4 << 20;
    const STEP: libc::c_int = 512 << 10;
    for (what, bytes) in [
        (libc::M_TRIM_THRESHOLD, KEPT),
        (libc::M_TOP_PAD, STEP),
        // Both are a user's, so the third is too: from here on it grows with what is freed no more.
        (libc::M_MMAP_THRESHOLD, KEPT / 4),
    ] {
        // SAFETY: it takes two numbers.
        unsafe { libc::mallopt(what, bytes) };
    }
}

#[cfg(not(target_env = "gnu"))]
pub fn keep_freed_memory() {}

/// Has it give back what lies free between what is used: after a time in which there was much.
#[cfg(target_env = "gnu")]
pub fn give_freed_memory_back() {
    // SAFETY: it takes a number, and moves nothing that is used.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
pub fn give_freed_memory_back() {}
