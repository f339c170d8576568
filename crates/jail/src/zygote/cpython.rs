//! What we need of CPython, found by name in the process itself.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::sync::OnceLock;

use super::function;
use crate::init::Hooks;
use crate::sys;

static RUNTIME: OnceLock<Option<CPython>> = OnceLock::new();
/// What runs in each cell before its program.
static FORK: OnceLock<String> = OnceLock::new();

pub struct CPython {
    ensure: extern "C" fn() -> c_int,
    release: extern "C" fn(c_int),
    before: extern "C" fn(),
    parent: extern "C" fn(),
    child: extern "C" fn(),
    run: extern "C" fn(*const c_char) -> c_int,
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
                parent: function(c"PyOS_AfterFork_Parent")?,
                child: function(c"PyOS_AfterFork_Child")?,
                run: function(c"PyRun_SimpleString")?,
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
    pub fn finish(&self, path: &CStr, leave: &str) -> ! {
        // SAFETY: two C strings.
        let file = unsafe { super::fopen64(path.as_ptr(), c"rb".as_ptr()) };
        let code = if file.is_null() {
            2
        } else {
            i32::from((self.run_file)(file, path.as_ptr(), 1, std::ptr::null()) != 0)
        };
        let _ = self.run(&leave.replace("{code}", &code.to_string()));
        sys::exit_now(code);
    }

    /// Runs code that leaves no name behind.
    pub fn run(&self, code: &str) -> io::Result<()> {
        if code.is_empty() {
            return Ok(());
        }
        let hex: String = code.bytes().map(|byte| format!("{byte:02x}")).collect();
        let code = CString::new(format!("exec(bytes.fromhex('{hex}').decode(), {{}})"))?;
        match (self.run)(code.as_ptr()) {
            0 => Ok(()),
            _ => Err(io::ErrorKind::Other.into()),
        }
    }
}

/// What it has to do around a clone; `fork` is run in the clone.
pub fn hooks(fork: String) -> Hooks {
    FORK.get_or_init(|| fork);
    fn known() -> Option<&'static CPython> {
        RUNTIME.get().and_then(Option::as_ref)
    }
    Hooks {
        before: || known().into_iter().for_each(|runtime| (runtime.before)()),
        parent: || known().into_iter().for_each(|runtime| (runtime.parent)()),
        child: || {
            let runtime = known().ok_or(io::ErrorKind::NotFound)?;
            (runtime.child)();
            runtime.run(FORK.get().map_or("", String::as_str))
        },
        go: |word| {
            let runtime = known().ok_or(io::ErrorKind::NotFound)?;
            runtime.run(std::str::from_utf8(word).map_err(io::Error::other)?)
        },
    }
}
