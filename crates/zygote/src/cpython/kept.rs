//! What code of ours keeps for later code of ours: a dictionary that no program is given.
//!
//! It is the name `kept` in each piece of code that a definition has run before a program. What is found there as `program` when the
//! program is to be run is code made of its file, which is run instead: in the same module, with nothing of ours below it on the stack.

use std::ffi::c_int;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::{Gil, Object};
use crate::output;

static KEPT: AtomicPtr<std::ffi::c_void> = AtomicPtr::new(std::ptr::null_mut());

impl Gil {
    /// The dictionary, which is never given back.
    pub(super) fn kept(&self) -> io::Result<Object> {
        if let Some(kept) = NonNull::new(KEPT.load(Ordering::Relaxed)) {
            return Ok(Object(kept));
        }
        // SAFETY: it takes nothing. We hold the lock.
        let kept = self.owned(unsafe { (self.api.PyDict_New)() })?;
        KEPT.store(kept.as_ptr(), Ordering::Relaxed);
        Ok(kept)
    }

    /// Does what the program begins with and waits for it, if the prelude has asked for that.
    pub fn wait_ahead(&self) -> io::Result<()> {
        let Some(kept) = NonNull::new(KEPT.load(Ordering::Relaxed)).map(Object) else {
            return Ok(());
        };
        // SAFETY: a dictionary that we own, and a C string. We hold the lock.
        let ahead = unsafe { (self.api.PyDict_GetItemString)(kept.as_ptr(), c"ahead".as_ptr()) };
        if ahead.is_null() {
            return Ok(());
        }
        self.run("kept.pop('ahead')()")?;
        output::begin();
        Ok(())
    }

    /// Takes the code that was made of the program, if there is some.
    pub(super) fn take_program(&self) -> Option<Object> {
        let kept = NonNull::new(KEPT.load(Ordering::Relaxed)).map(Object)?;
        // SAFETY: a dictionary that we own, and a C string. We hold the lock.
        let code = unsafe { (self.api.PyDict_GetItemString)(kept.as_ptr(), c"program".as_ptr()) };
        let code = NonNull::new(code)?;
        // SAFETY: an object that the dictionary keeps alive; from here on we do too.
        unsafe { (self.api.Py_IncRef)(code.as_ptr()) };
        // SAFETY: the same dictionary, which has such an item.
        unsafe { (self.api.PyDict_DelItemString)(kept.as_ptr(), c"program".as_ptr()) };
        Some(Object(code))
    }

    /// Runs code as the file is run that it was made of; what that comes to.
    pub(super) fn run_code_as_program(&self, code: &Object) -> c_int {
        // SAFETY: a C string. It lends us a module that the interpreter keeps. We hold the lock.
        let main = unsafe { (self.api.PyImport_AddModule)(c"__main__".as_ptr()) };
        if main.is_null() {
            self.print_error();
            return 1;
        }
        // SAFETY: a module, whose dictionary it lends us.
        let names = unsafe { (self.api.PyModule_GetDict)(main) };
        // SAFETY: it lives as long as the module, and longer if the program drops that.
        unsafe { (self.api.Py_IncRef)(names) };
        // SAFETY: only the code of a definition can have put it there, before any program ran, and that puts a code object there;
        // and a dictionary for global and local names. We hold the lock.
        let result = unsafe { (self.api.PyEval_EvalCode)(code.as_ptr(), names, names) };
        match self.owned(result) {
            Ok(result) => {
                self.release(result);
                0
            }
            Err(_) => 1,
        }
    }
}
