//! The heap of a zygote, put in order for its clones.

/// Takes up the holes of the heap for good, so that what a clone asks for lies together: each
/// page of it that is touched there is copied.
pub fn fill_holes() {
    /// Less than what libc would map by itself.
    const ROOM: usize = 96 << 10;
    // SAFETY: malloc takes a size.
    let room = unsafe { libc::malloc(ROOM) };
    let large = [32 << 10, 16 << 10, 8 << 10, 4 << 10, 2 << 10];
    // More than there are; a libc that hands memory out in another order has an end too.
    let mut most = 1 << 20;
    for size in large.into_iter().chain((24..=1032).rev().step_by(16)) {
        while most > size {
            most -= size;
            // SAFETY: malloc takes a size. What it returns is never freed.
            let taken = unsafe { libc::malloc(size) };
            // What lies behind the room was no hole.
            if taken.is_null() || taken > room {
                break;
            }
        }
    }
    // SAFETY: malloc returned it, or null, and it is freed once. It is the first to be handed
    // out from now on.
    unsafe { libc::free(room) };
}
