//! What a worker of sessions holds, in large pages: to copy itself it then copies one entry of a page table for each of them, and not 512.
//! Of 200 MB in small pages the copy of these alone takes 5 ms.
//!
//! The kernel is only asked for them, and gives them where its owner lets programs ask (`madvise`, the usual setting) or has it do so anyway.
//! Objects that are large are advised one by one; the arenas of small ones are made in steps of a large page once there are many of them, so
//! that a worker with little stays small.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::copy::Method;
use super::{CPython, Gil, Pointer};
use crate::symbols::symbols;

/// An object of less stays where it is.
const LARGE: usize = 4 << 20;
/// A large page, and a usual one.
const PAGE: usize = 2 << 20;
const SMALL: usize = 4 << 10;
/// Arenas that are made as ever.
const FEW: usize = 16;
/// `PYMEM_DOMAIN_RAW`, in every version: all large objects come from there, and arenas do not.
const RAW: c_int = 0;

/// A `PyMemAllocatorEx`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Allocator {
    context: Pointer,
    malloc: unsafe extern "C" fn(Pointer, usize) -> Pointer,
    calloc: unsafe extern "C" fn(Pointer, usize, usize) -> Pointer,
    realloc: unsafe extern "C" fn(Pointer, Pointer, usize) -> Pointer,
    free: unsafe extern "C" fn(Pointer, Pointer),
}

/// A `PyObjectArenaAllocator`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Arenas {
    context: Pointer,
    alloc: unsafe extern "C" fn(Pointer, usize) -> Pointer,
    free: unsafe extern "C" fn(Pointer, Pointer, usize),
}

symbols! {
    #[allow(non_snake_case)]
    struct Api {
        PyMem_GetAllocator: c"PyMem_GetAllocator" = fn(c_int, *mut Allocator),
        PyMem_SetAllocator: c"PyMem_SetAllocator" = fn(c_int, *mut Allocator),
        PyObject_GetArenaAllocator: c"PyObject_GetArenaAllocator" = fn(*mut Arenas),
        PyObject_SetArenaAllocator: c"PyObject_SetArenaAllocator" = fn(*mut Arenas),
    }
}

/// What CPython had before.
struct Before {
    objects: Allocator,
    arenas: Arenas,
}

/// SAFETY: functions, and contexts that belong to them, which any thread may call.
unsafe impl Send for Before {}
/// SAFETY: the same. It is never written to again.
unsafe impl Sync for Before {}

static BEFORE: OnceLock<Before> = OnceLock::new();

static METHOD: Method = Method::new(c"large_pages", large_pages, super::copy::NO_ARGUMENTS);

impl Gil {
    /// Keeps the function for later code of ours.
    pub fn offer_large_pages(&self) -> std::io::Result<()> {
        let (method, none) = ((&raw const METHOD).cast(), null_mut());
        // SAFETY: a method that lives as long as the process, without an object or a module. We hold the lock.
        let function = self.owned(unsafe { (self.api.PyCFunction_NewEx)(method, none, none) })?;
        let done = self.set(&self.kept()?, c"large_pages", function.as_ptr());
        self.release(function);
        done
    }
}

/// Has what is allocated from now on in large pages, and says whether it does. For a process with one thread, once.
extern "C" fn large_pages(_: Pointer, _: Pointer) -> Pointer {
    // Only an interpreter can have this function.
    let Some(CPython(own)) = CPython::find() else {
        return null_mut();
    };
    // SAFETY: names of CPython's documented C API, with its types.
    let api = unsafe { Api::resolve() };
    let done = api.is_some_and(|api| BEFORE.get().is_none() && install(&api));
    // SAFETY: it takes a number. Who calls a function of Python holds the lock.
    unsafe { (own.PyLong_FromLong)(done.into()) }
}

fn install(api: &Api) -> bool {
    let mut objects = std::mem::MaybeUninit::uninit();
    // SAFETY: it fills in what it is given room for.
    unsafe { (api.PyMem_GetAllocator)(RAW, objects.as_mut_ptr()) };
    let mut arenas = std::mem::MaybeUninit::uninit();
    // SAFETY: the same.
    unsafe { (api.PyObject_GetArenaAllocator)(arenas.as_mut_ptr()) };
    let before = Before {
        // SAFETY: it was filled in.
        objects: unsafe { objects.assume_init() },
        // SAFETY: it was filled in.
        arenas: unsafe { arenas.assume_init() },
    };
    let mut objects = Allocator {
        malloc,
        calloc,
        realloc,
        ..before.objects
    };
    let mut arenas = Arenas {
        alloc: arena,
        ..before.arenas
    };
    if BEFORE.set(before).is_err() {
        return false;
    }
    // SAFETY: it copies what it is given. What ours return, CPython's own `free` takes: it is what CPython's own returned.
    unsafe { (api.PyMem_SetAllocator)(RAW, &raw mut objects) };
    // SAFETY: the same; an arena that is ours is part of a mapping, which CPython's own `free` unmaps by address and size.
    unsafe { (api.PyObject_SetArenaAllocator)(&raw mut arenas) };
    true
}

extern "C" fn malloc(context: Pointer, size: usize) -> Pointer {
    let Some(before) = BEFORE.get() else {
        return null_mut();
    };
    // SAFETY: CPython's own arguments, passed on.
    advised(unsafe { (before.objects.malloc)(context, size) }, size)
}

extern "C" fn calloc(context: Pointer, count: usize, size: usize) -> Pointer {
    let Some(before) = BEFORE.get() else {
        return null_mut();
    };
    // SAFETY: CPython's own arguments, passed on.
    let made = unsafe { (before.objects.calloc)(context, count, size) };
    advised(made, count.saturating_mul(size))
}

extern "C" fn realloc(context: Pointer, old: Pointer, size: usize) -> Pointer {
    let Some(before) = BEFORE.get() else {
        return null_mut();
    };
    // SAFETY: CPython's own arguments, passed on.
    advised(
        unsafe { (before.objects.realloc)(context, old, size) },
        size,
    )
}

/// Memory of libc's, with the kernel asked for large pages if it is much.
fn advised(made: Pointer, size: usize) -> Pointer {
    if size >= LARGE && !made.is_null() {
        // Whole pages, and so all that libc has mapped for it: a mapping in two parts could not be made larger where it is.
        let start = made as usize & !(SMALL - 1);
        let end = (made as usize + size).next_multiple_of(SMALL);
        advise(start as Pointer, end - start);
    }
    made
}

fn advise(start: Pointer, length: usize) {
    // SAFETY: pages that are mapped; what is in them stays the same. Without large pages it fails, and they stay small.
    unsafe { libc::madvise(start, length, libc::MADV_HUGEPAGE) };
}

/// How many arenas were made.
static MADE: AtomicUsize = AtomicUsize::new(0);
/// What is left of the newest large page that arenas are made of: where it begins and how much it is.
static REST: Mutex<(usize, usize)> = Mutex::new((0, 0));

extern "C" fn arena(context: Pointer, size: usize) -> Pointer {
    let Some(before) = BEFORE.get() else {
        return null_mut();
    };
    if MADE.fetch_add(1, Ordering::Relaxed) >= FEW
        && let Some(made) = part(size)
    {
        return made;
    }
    // SAFETY: CPython's own arguments, passed on.
    unsafe { (before.arenas.alloc)(context, size) }
}

/// The next part of a large page, if they come out even.
fn part(size: usize) -> Option<Pointer> {
    if size == 0 || !PAGE.is_multiple_of(size) {
        return None;
    }
    let mut rest = REST.lock().unwrap_or_else(PoisonError::into_inner);
    if rest.1 < size {
        *rest = (large_page()?, PAGE);
    }
    let made = rest.0;
    *rest = (made + size, rest.1 - size);
    Some(made as Pointer)
}

/// Where a new large page begins.
fn large_page() -> Option<usize> {
    let map = |length| {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, where there is room.
        let made = unsafe { libc::mmap(null_mut(), length, protection, flags, -1, 0) };
        (made != libc::MAP_FAILED).then_some(made as usize)
    };
    let unmap = |start: usize, length: usize| {
        if length > 0 {
            // SAFETY: a part of the mapping that we have just made, which nobody knows of.
            unsafe { libc::munmap(start as *mut c_void, length) };
        }
    };
    let made = map(2 * PAGE)?;
    let start = made.next_multiple_of(PAGE);
    unmap(made, start - made);
    unmap(start + PAGE, made + PAGE - start);
    advise(start as Pointer, PAGE);
    Some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_large_pages_are_apart_and_can_be_given_back_one_by_one() {
        let arena = 1 << 20;
        let parts: Vec<usize> = (0..5).map(|_| part(arena).unwrap() as usize).collect();
        for (at, one) in parts.iter().enumerate() {
            assert!(
                parts[..at]
                    .iter()
                    .all(|other| one.abs_diff(*other) >= arena)
            );
            // SAFETY: mapped by us, and nobody else's.
            unsafe { std::ptr::write_bytes(*one as *mut u8, 1, arena) };
        }
        for one in parts {
            // SAFETY: the same, and it is not used again.
            assert_eq!(unsafe { libc::munmap(one as *mut c_void, arena) }, 0);
        }
        assert!(part(0).is_none() && part(3 << 20).is_none());
    }
}
