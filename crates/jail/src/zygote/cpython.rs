//! What we need of CPython, found by name in the process itself.

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_void};
use std::io;
use std::sync::OnceLock;

use super::function;
use crate::init::Hooks;
use crate::sys;

static RUNTIME: OnceLock<Option<CPython>> = OnceLock::new();
/// What runs in each cell before its program.
static FORK: OnceLock<Code> = OnceLock::new();

/// Any object of CPython's.
type Object = *mut c_void;

pub struct CPython {
    ensure: extern "C" fn() -> c_int,
    release: extern "C" fn(c_int),
    before: extern "C" fn(),
    child: extern "C" fn(),
    compile: extern "C" fn(*const c_char, *const c_char, c_int) -> Object,
    evaluate: extern "C" fn(Object, Object, Object) -> Object,
    builtins: extern "C" fn() -> Object,
    dict: extern "C" fn() -> Object,
    set: extern "C" fn(Object, *const c_char, Object) -> c_int,
    get: extern "C" fn(Object, *const c_char) -> Object,
    number: extern "C" fn(c_long) -> Object,
    value: extern "C" fn(Object) -> c_long,
    print_error: extern "C" fn(),
    drop: extern "C" fn(Object),
    run_file: extern "C" fn(*mut c_void, *const c_char, c_int, *const c_void) -> c_int,
}

impl CPython {
    /// The one that we are in, if we are.
    pub fn find() -> Option<&'static Self> {
        let find = || {
            Some(Self {
                // The documented types of these functions, in every CPython since 3.7.
                ensure: function(c"PyGILState_Ensure")?,
                release: function(c"PyGILState_Release")?,
                before: function(c"PyOS_BeforeFork")?,
                child: function(c"PyOS_AfterFork_Child")?,
                compile: function(c"Py_CompileString")?,
                evaluate: function(c"PyEval_EvalCode")?,
                builtins: function(c"PyEval_GetBuiltins")?,
                dict: function(c"PyDict_New")?,
                set: function(c"PyDict_SetItemString")?,
                get: function(c"PyDict_GetItemString")?,
                number: function(c"PyLong_FromLong")?,
                value: function(c"PyLong_AsLong")?,
                print_error: function(c"PyErr_Print")?,
                drop: function(c"Py_DecRef")?,
                run_file: function(c"PyRun_AnyFileExFlags")?,
            })
        };
        RUNTIME.get_or_init(find).as_ref()
    }

    pub fn lock(&self) -> c_int {
        (self.ensure)()
    }

    pub fn unlock(&self, lock: c_int) {
        (self.release)(lock);
    }

    /// Runs the program as the runtime's own main does, and ends the process after it.
    ///
    /// To take the interpreter apart would copy its memory once more, page by page. What
    /// a program can see of that, `leave` does.
    pub fn finish(&self, path: &CStr, leave: &Leave) -> ! {
        let code = self.run_program(path);
        sys::exit_before_memory(self.leave(leave, code).unwrap_or(code))
    }

    /// Runs the file that is there, an empty one, in the program's stead: what that takes
    /// is there then. Of the program's own module it changes nothing.
    pub fn rehearse(&self, path: &CStr) -> io::Result<()> {
        let names = self.names()?;
        let run = |text| {
            let code = self.compile(text)?;
            let done = self.evaluate(code, names);
            (self.drop)(code);
            done
        };
        run("import sys; main = sys.modules['__main__']")?;
        run("sys.modules['__main__'] = type(sys)('__main__')")?;
        self.run_program(path);
        let done = run("sys.modules['__main__'] = main");
        (self.drop)(names);
        // And what a clone does first.
        (self.before)();
        (self.child)();
        done
    }

    /// What the program comes to; 2 if it is not there.
    fn run_program(&self, path: &CStr) -> c_int {
        // SAFETY: two C strings.
        let file = unsafe { super::fopen64(path.as_ptr(), c"rb".as_ptr()) };
        if file.is_null() {
            return 2;
        }
        i32::from((self.run_file)(file, path.as_ptr(), 1, std::ptr::null()) != 0)
    }

    /// Reads what defines `leave`, and compiles the call of it.
    pub fn prepare(&self, text: &str) -> io::Result<Leave> {
        let names = self.names()?;
        self.evaluate(self.compile(text)?, names)?;
        let call = self.compile("code = leave(code)")?;
        Ok(Leave { names, call })
    }

    fn leave(&self, leave: &Leave, code: c_int) -> io::Result<c_int> {
        (self.set)(leave.names, c"code".as_ptr(), (self.number)(code.into()));
        self.evaluate(leave.call, leave.names)?;
        let code = some((self.get)(leave.names, c"code".as_ptr()))?;
        Ok((self.value)(code) as c_int)
    }

    /// Runs code that leaves no name behind.
    pub fn run(&self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let code = self.compile(text)?;
        let done = self.run_code(code, true);
        (self.drop)(code);
        done
    }

    /// It finds in `waits` whether there is time to do more than it must.
    fn run_code(&self, code: Object, waits: bool) -> io::Result<()> {
        let names = self.names()?;
        (self.set)(names, c"waits".as_ptr(), (self.number)(waits.into()));
        let done = self.evaluate(code, names);
        (self.drop)(names);
        done
    }

    fn compile(&self, text: &str) -> io::Result<Object> {
        /// `Py_file_input`, in every version.
        const FILE: c_int = 257;
        let text = CString::new(text)?;
        some((self.compile)(text.as_ptr(), c"<string>".as_ptr(), FILE))
    }

    /// Names for code of its own: those of the language alone.
    fn names(&self) -> io::Result<Object> {
        let names = some((self.dict)())?;
        (self.set)(names, c"__builtins__".as_ptr(), (self.builtins)());
        Ok(names)
    }

    fn evaluate(&self, code: Object, names: Object) -> io::Result<()> {
        let result = some((self.evaluate)(code, names, names));
        match result {
            Ok(result) => (self.drop)(result),
            Err(_) => (self.print_error)(),
        }
        result.map(drop)
    }
}

/// What is called when a program has ended.
pub struct Leave {
    names: Object,
    call: Object,
}

/// Code that is compiled. Used where the interpreter is locked, which is all that an
/// object of its needs.
struct Code(Object);
// SAFETY: see above.
unsafe impl Send for Code {}
// SAFETY: see above.
unsafe impl Sync for Code {}

fn some(object: Object) -> io::Result<Object> {
    match object.is_null() {
        false => Ok(object),
        true => Err(io::ErrorKind::Other.into()),
    }
}

/// What it has to do in a clone; `fork` is run there.
pub fn hooks(runtime: &CPython, fork: &str) -> io::Result<Hooks> {
    let code = runtime.compile(fork)?;
    FORK.get_or_init(|| Code(code));
    fn known() -> Option<&'static CPython> {
        RUNTIME.get().and_then(Option::as_ref)
    }
    // Once for all clones: from here on the runtime itself does nothing more.
    (runtime.before)();
    Ok(Hooks {
        child: |waits| {
            let runtime = known().ok_or(io::ErrorKind::NotFound)?;
            (runtime.child)();
            FORK.get()
                .map_or(Ok(()), |fork| runtime.run_code(fork.0, waits))
        },
        go: |word| {
            let runtime = known().ok_or(io::ErrorKind::NotFound)?;
            runtime.run(std::str::from_utf8(word).map_err(io::Error::other)?)
        },
    })
}
