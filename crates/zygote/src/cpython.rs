//! What we need of CPython, found by name in the process itself.
//!
//! Every function of it that we call needs the global interpreter lock, so all of them are
//! behind [`Gil`]. The types are those of its documented C API, the same since version 3.7.

mod copy;
mod kept;
mod large;
mod streams;

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_void};
use std::io;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use jail::prestart::Hooks;

use crate::exit::exit_before_memory;
use crate::interpose::fopen64;
use crate::symbols::symbols;

/// A `PyObject`.
type Pointer = *mut c_void;

symbols! {
    /// The functions of CPython that we call.
    #[allow(non_snake_case)]
    struct Api {
        PyGILState_Ensure: c"PyGILState_Ensure" = fn() -> c_int,
        PyGILState_Release: c"PyGILState_Release" = fn(c_int),
        PyOS_BeforeFork: c"PyOS_BeforeFork" = fn(),
        PyOS_AfterFork_Parent: c"PyOS_AfterFork_Parent" = fn(),
        PyOS_AfterFork_Child: c"PyOS_AfterFork_Child" = fn(),
        Py_CompileString: c"Py_CompileString" = fn(*const c_char, *const c_char, c_int) -> Pointer,
        PyEval_EvalCode: c"PyEval_EvalCode" = fn(Pointer, Pointer, Pointer) -> Pointer,
        PyEval_GetBuiltins: c"PyEval_GetBuiltins" = fn() -> Pointer,
        PyDict_New: c"PyDict_New" = fn() -> Pointer,
        PyDict_SetItemString: c"PyDict_SetItemString" = fn(Pointer, *const c_char, Pointer) -> c_int,
        PyDict_GetItemString: c"PyDict_GetItemString" = fn(Pointer, *const c_char) -> Pointer,
        PyDict_DelItemString: c"PyDict_DelItemString" = fn(Pointer, *const c_char) -> c_int,
        PyLong_FromLong: c"PyLong_FromLong" = fn(c_long) -> Pointer,
        PyLong_AsLong: c"PyLong_AsLong" = fn(Pointer) -> c_long,
        PyCFunction_NewEx: c"PyCFunction_NewEx" = fn(*const c_void, Pointer, Pointer) -> Pointer,
        PyErr_Print: c"PyErr_Print" = fn(),
        PyImport_AddModule: c"PyImport_AddModule" = fn(*const c_char) -> Pointer,
        PyModule_GetDict: c"PyModule_GetDict" = fn(Pointer) -> Pointer,
        Py_IncRef: c"Py_IncRef" = fn(Pointer),
        Py_DecRef: c"Py_DecRef" = fn(Pointer),
        PyRun_AnyFileExFlags: c"PyRun_AnyFileExFlags"
            = fn(*mut c_void, *const c_char, c_int, *const c_void) -> c_int,
    }
}

/// The interpreter that this process is.
pub struct CPython(Api);

impl CPython {
    /// The one that we are in, if we are.
    pub fn find() -> Option<&'static Self> {
        static FOUND: OnceLock<Option<CPython>> = OnceLock::new();
        // SAFETY: these are names of CPython's C API, which nobody else defines, and the types
        // of the table are the documented ones.
        let find = || unsafe { Api::resolve() }.map(Self);
        FOUND.get_or_init(find).as_ref()
    }

    /// Takes the global interpreter lock for this thread.
    pub fn lock(&'static self) -> Gil {
        // SAFETY: the runtime has come to its program, so the interpreter is initialised; any
        // thread may call it.
        let state = unsafe { (self.0.PyGILState_Ensure)() };
        Gil {
            api: &self.0,
            state,
            thread: PhantomData,
        }
    }
}

/// The global interpreter lock, held by this thread as long as this is there.
pub struct Gil {
    api: &'static Api,
    state: c_int,
    /// The lock is a thread's, and so is this.
    thread: PhantomData<*const ()>,
}

/// A reference to an object, which we own. Without [`Gil::release`] it is never given back.
struct Object(NonNull<c_void>);

impl Object {
    fn as_ptr(&self) -> Pointer {
        self.0.as_ptr()
    }
}

/// What is called when a program has ended.
pub struct Exit {
    names: Object,
    call: Object,
}

impl Gil {
    pub fn unlock(self) {
        // SAFETY: what PyGILState_Ensure returned to this thread, once.
        unsafe { (self.api.PyGILState_Release)(self.state) };
    }

    /// Runs the program as the runtime's own main does, and ends the process after it.
    ///
    /// To finalize the interpreter would copy its memory once more, page by page. What a
    /// program can see of that, `exit` does.
    pub fn finish(&self, path: &CStr, exit: &Exit) -> ! {
        let code = self.run_program(path);
        exit_before_memory(self.call_exit(exit, code).unwrap_or(code))
    }

    /// Runs the file that is there, an empty one, as if it were the program, so that all which
    /// that takes is loaded. Of the program's own module it changes nothing.
    pub fn run_empty_program(&self, path: &CStr) -> io::Result<()> {
        let names = self.new_names()?;
        let run = |text| {
            let code = self.compile(text)?;
            let done = self.evaluate(&code, &names);
            self.release(code);
            done
        };
        run("import sys; main = sys.modules['__main__']")?;
        run("sys.modules['__main__'] = type(sys)('__main__')")?;
        self.run_program(path);
        let done = run("sys.modules['__main__'] = main");
        self.release(names);
        done
    }

    /// Does what a clone does first.
    pub fn rehearse_fork(&self) {
        self.before_fork();
        self.after_fork();
    }

    /// Reads the definition of `leave`, and compiles the call of it.
    pub fn prepare_exit(&self, text: &str) -> io::Result<Exit> {
        let names = self.new_names()?;
        self.evaluate(&self.compile(text)?, &names)?;
        let call = self.compile("code = leave(code)")?;
        Ok(Exit { names, call })
    }

    /// Runs code that leaves no name behind.
    pub fn run(&self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let code = self.compile(text)?;
        let done = self.run_code(&code, true);
        self.release(code);
        done
    }

    /// The code finds in `waits` whether there is time to do more than it must.
    fn run_code(&self, code: &Object, waits: bool) -> io::Result<()> {
        let names = self.new_names()?;
        self.set_number(&names, c"waits", waits.into())?;
        let done = self.evaluate(code, &names);
        self.release(names);
        done
    }

    fn call_exit(&self, exit: &Exit, code: c_int) -> io::Result<c_int> {
        self.set_number(&exit.names, c"code", code.into())?;
        self.evaluate(&exit.call, &exit.names)?;
        self.get_number(&exit.names, c"code")
            .map(|code| code as c_int)
    }

    /// What the program comes to; 2 if it is not there.
    fn run_program(&self, path: &CStr) -> c_int {
        if let Some(code) = self.take_program() {
            return self.run_code_as_program(&code);
        }
        // SAFETY: two C strings.
        let file = unsafe { fopen64(path.as_ptr(), c"rb".as_ptr()) };
        if file.is_null() {
            return 2;
        }
        // SAFETY: an open stream, which it closes (1), a C string, and no flags. We hold the lock.
        let failed =
            unsafe { (self.api.PyRun_AnyFileExFlags)(file, path.as_ptr(), 1, std::ptr::null()) };
        i32::from(failed != 0)
    }

    fn compile(&self, text: &str) -> io::Result<Object> {
        /// `Py_file_input`, in every version.
        const FILE: c_int = 257;
        let text = CString::new(text)?;
        // SAFETY: two C strings and a kind of input that it knows. We hold the lock.
        let code =
            unsafe { (self.api.Py_CompileString)(text.as_ptr(), c"<string>".as_ptr(), FILE) };
        self.owned(code)
    }

    /// Names for code of its own: those of the language alone.
    fn new_names(&self) -> io::Result<Object> {
        // SAFETY: it takes nothing. We hold the lock.
        let names = self.owned(unsafe { (self.api.PyDict_New)() })?;
        // SAFETY: it takes nothing, and lends us what lives as long as the interpreter.
        let builtins = unsafe { (self.api.PyEval_GetBuiltins)() };
        self.set(&names, c"__builtins__", builtins)?;
        self.set(&names, c"kept", self.kept()?.as_ptr())?;
        Ok(names)
    }

    fn evaluate(&self, code: &Object, names: &Object) -> io::Result<()> {
        let (code, names) = (code.as_ptr(), names.as_ptr());
        // SAFETY: a code object, as only `compile` makes them that come here, and a
        // dictionary for global and local names. We own a reference to each, and hold the lock.
        let result = unsafe { (self.api.PyEval_EvalCode)(code, names, names) };
        self.owned(result).map(|result| self.release(result))
    }

    fn set_number(&self, names: &Object, name: &CStr, value: c_long) -> io::Result<()> {
        // SAFETY: it takes a number. We hold the lock.
        let value = self.owned(unsafe { (self.api.PyLong_FromLong)(value) })?;
        let done = self.set(names, name, value.as_ptr());
        self.release(value);
        done
    }

    fn set(&self, names: &Object, name: &CStr, value: Pointer) -> io::Result<()> {
        if value.is_null() {
            return Err(io::ErrorKind::Other.into());
        }
        // SAFETY: a dictionary that we own, a C string, and an object that lives, of which
        // the dictionary takes a reference of its own. We hold the lock.
        let failed =
            unsafe { (self.api.PyDict_SetItemString)(names.as_ptr(), name.as_ptr(), value) };
        match failed {
            0 => Ok(()),
            _ => Err(self.print_error()),
        }
    }

    fn get_number(&self, names: &Object, name: &CStr) -> io::Result<c_long> {
        // SAFETY: a dictionary that we own, and a C string. We hold the lock.
        let found = unsafe { (self.api.PyDict_GetItemString)(names.as_ptr(), name.as_ptr()) };
        if found.is_null() {
            return Err(io::ErrorKind::NotFound.into());
        }
        // SAFETY: an object that the dictionary keeps alive. It may be of any type: another
        // than a number gives -1 and an error that nobody looks at, for the process ends.
        Ok(unsafe { (self.api.PyLong_AsLong)(found) })
    }

    /// Takes what a function returned as a new reference; null is an error, which is printed.
    fn owned(&self, object: Pointer) -> io::Result<Object> {
        NonNull::new(object)
            .map(Object)
            .ok_or_else(|| self.print_error())
    }

    fn print_error(&self) -> io::Error {
        // SAFETY: it takes nothing, and we hold the lock. A function just failed, so an error is
        // set, as it demands.
        unsafe { (self.api.PyErr_Print)() };
        io::ErrorKind::Other.into()
    }

    fn release(&self, object: Object) {
        // SAFETY: we own this reference and give it up. We hold the lock.
        unsafe { (self.api.Py_DecRef)(object.as_ptr()) };
    }

    fn before_fork(&self) {
        // SAFETY: it takes nothing. We hold the lock, and fork or call `after_fork` next.
        unsafe { (self.api.PyOS_BeforeFork)() };
    }

    fn after_fork(&self) {
        // SAFETY: it takes nothing. `before_fork` was called in this process or, if it is a
        // clone, in the one that it is a copy of; the calling thread is its only one and holds
        // the lock as that one did.
        unsafe { (self.api.PyOS_AfterFork_Child)() };
    }
}

/// What each clone runs before its program: a code object that is never given back.
static FORK_CODE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Whether what a clone prints is gathered.
static GATHERS: AtomicBool = AtomicBool::new(false);

/// What the runtime does in a clone, where `fork` is run. From here on the runtime itself may
/// do nothing more but be cloned.
pub fn hooks(gil: &Gil, fork: &str, gathers: bool) -> io::Result<Hooks> {
    GATHERS.store(gathers, Ordering::Relaxed);
    FORK_CODE.store(gil.compile(fork)?.as_ptr(), Ordering::Relaxed);
    // Once for all clones.
    gil.before_fork();
    Ok(Hooks {
        after_clone: |prestarted| {
            // SAFETY: the jail calls it in a clone of this thread, which holds the lock.
            let gil = unsafe { held() }?;
            gil.after_fork();
            if GATHERS.load(Ordering::Relaxed) {
                crate::output::gather()?;
            }
            match NonNull::new(FORK_CODE.load(Ordering::Relaxed)) {
                Some(code) => gil.run_code(&Object(code), prestarted),
                None => Ok(()),
            }
        },
        // SAFETY: the same clone, which has not given the lock back.
        prelude: |text| unsafe { held() }?.run(text),
    })
}

/// The lock that this thread holds already.
///
/// # Safety
/// It does. A clone of a thread that holds the lock does too.
unsafe fn held() -> io::Result<Gil> {
    let found = CPython::find().ok_or(io::ErrorKind::NotFound)?;
    Ok(Gil {
        api: &found.0,
        // Not ours to give back: whoever took the lock does.
        state: 0,
        thread: PhantomData,
    })
}
