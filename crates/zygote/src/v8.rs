//! What we need of V8 and node, found by name in the process itself.
//!
//! These are functions of C++ that node exports for its add-ons. Each takes and returns
//! pointers and numbers: a `Local` or `MaybeLocal` is one pointer, passed as such, and `this` is
//! the first argument. A name of C++ has the types of the arguments in it, so a function of
//! that name takes these; only what it returns is not told, and has not changed since node 12.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

use crate::exit::exit_before_memory;
use crate::symbols::symbols;

type Pointer = *mut c_void;
/// More memory than a scope of V8's takes up.
type Scope = [usize; 8];

symbols! {
    /// The functions of V8 and node that we call.
    struct Api {
        current_isolate: c"_ZN2v87Isolate10GetCurrentEv" = fn() -> Pointer,
        current_context: c"_ZN2v87Isolate17GetCurrentContextEv" = fn(Pointer) -> Pointer,
        new_string: c"_ZN2v86String11NewFromUtf8EPNS_7IsolateEPKcNS_13NewStringTypeEi"
            = fn(Pointer, *const c_char, c_int, c_int) -> Pointer,
        compile: c"_ZN2v86Script7CompileENS_5LocalINS_7ContextEEENS1_INS_6StringEEEPNS_12ScriptOriginE"
            = fn(Pointer, Pointer, Pointer) -> Pointer,
        run: c"_ZN2v86Script3RunENS_5LocalINS_7ContextEEE" = fn(Pointer, Pointer) -> Pointer,
        int32_value: c"_ZNK2v85Int325ValueEv" = fn(Pointer) -> c_int,
        open_scope: c"_ZN2v811HandleScopeC1EPNS_7IsolateE" = fn(*mut Scope, Pointer),
        close_scope: c"_ZN2v811HandleScopeD1Ev" = fn(*mut Scope),
        allow_execution: c"_ZN2v87Isolate29AllowJavascriptExecutionScopeC1EPS0_" = fn(*mut Scope, Pointer),
        add_cleanup_hook: c"_ZN4node25AddEnvironmentCleanupHookEPN2v87IsolateEPFvPvES3_"
            = fn(Pointer, extern "C" fn(Pointer), Pointer),
    }
}

static FOUND: OnceLock<Option<Api>> = OnceLock::new();
/// The script that gives the exit code when a program has ended.
static EXIT_SCRIPT: OnceLock<CString> = OnceLock::new();

/// The isolate that this thread is in.
pub struct V8 {
    api: &'static Api,
    isolate: Pointer,
}

impl V8 {
    /// The one that we are in, if we are.
    pub fn find() -> Option<Self> {
        // SAFETY: names of V8 and node, which nobody else defines; the head of this file says
        // why the types are theirs.
        let api = FOUND.get_or_init(|| unsafe { Api::resolve() }).as_ref()?;
        // SAFETY: it takes nothing, and reads a variable of this thread.
        let isolate = unsafe { (api.current_isolate)() };
        (!isolate.is_null()).then_some(Self { api, isolate })
    }

    /// Runs what a program will need to have run, and says whether it did. It must not throw.
    pub fn run(&self, code: &str) -> bool {
        match CString::new(code) {
            Ok(code) if !code.is_empty() => self.evaluate(&code, drop).is_some(),
            Ok(_) => true,
            Err(_) => false,
        }
    }

    /// Has the process end with the number that `script` gives when the program and all that
    /// it waits for have ended. To take itself apart takes node longer than a small program,
    /// and nobody can see that.
    pub fn exit_with(&self, script: &str) {
        if let Ok(script) = CString::new(script)
            && !script.is_empty()
        {
            EXIT_SCRIPT.get_or_init(|| script);
            // SAFETY: the isolate of this thread, which node has an environment for, and a
            // function that needs no argument and lives as long as the process.
            unsafe { (self.api.add_cleanup_hook)(self.isolate, end, null_mut()) };
        }
    }

    /// Runs a script, and does something with its value while that lives.
    fn evaluate<T>(&self, code: &CStr, then: impl FnOnce(Pointer) -> T) -> Option<T> {
        let mut scope = Scope::default();
        // SAFETY: memory for a scope, which does not move until it is closed below, and the
        // isolate that this thread is in.
        unsafe { (self.api.open_scope)(&raw mut scope, self.isolate) };
        let result = self.run_script(code).map(then);
        // SAFETY: opened above, and the innermost: those within are closed.
        unsafe { (self.api.close_scope)(&raw mut scope) };
        result
    }

    /// The value of a script, as a handle of the innermost scope.
    fn run_script(&self, code: &CStr) -> Option<Pointer> {
        let some = |pointer: Pointer| (!pointer.is_null()).then_some(pointer);
        // SAFETY: the isolate that this thread is in; a scope is open for the handle.
        let context = some(unsafe { (self.api.current_context)(self.isolate) })?;
        // SAFETY: the same, and a C string whose length it finds by itself (-1).
        let text = unsafe { (self.api.new_string)(self.isolate, code.as_ptr(), 0, -1) };
        let text = some(text)?;
        // SAFETY: handles of the open scope, neither of them empty, and no origin.
        let script = some(unsafe { (self.api.compile)(context, text, null_mut()) })?;
        // SAFETY: handles of the open scope, neither of them empty.
        some(unsafe { (self.api.run)(script, context) })
    }
}

/// Called by node when nothing is left to do.
extern "C" fn end(_: Pointer) {
    if let (Some(v8), Some(script)) = (V8::find(), EXIT_SCRIPT.get()) {
        let mut scope = Scope::default();
        // It forbids programs by now; its own listeners have all been called.
        // SAFETY: memory for a scope, and the isolate that this thread is in. The scope is
        // never closed: the process ends, or node does without programs from here on.
        unsafe { (v8.api.allow_execution)(&raw mut scope, v8.isolate) };
        // SAFETY: a handle of the open scope. The script gives a small whole number, and node
        // is built without the check of that.
        let number = |value| unsafe { (v8.api.int32_value)(value) };
        if let Some(code) = v8.evaluate(script, number) {
            exit_before_memory(code);
        }
    }
}
