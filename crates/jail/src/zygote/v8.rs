//! What we need of V8 and node, found by name in the process itself.
//!
//! These are functions of C++ that node exports for its add-ons. Each takes and returns
//! pointers: a `Local` is one, and `this` is the first argument.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;

use super::function;
use crate::sys;

static RUNTIME: OnceLock<Option<V8>> = OnceLock::new();
/// What tells the exit code when a program has ended.
static LEAVE: OnceLock<CString> = OnceLock::new();

type Pointer = *mut c_void;
/// More room than a scope of V8's takes up.
type Scope = [usize; 8];

pub struct V8 {
    isolate: extern "C" fn() -> Pointer,
    context: extern "C" fn(Pointer) -> Pointer,
    text: extern "C" fn(Pointer, *const c_char, c_int, c_int) -> Pointer,
    compile: extern "C" fn(Pointer, Pointer, Pointer) -> Pointer,
    run: extern "C" fn(Pointer, Pointer) -> Pointer,
    number: extern "C" fn(Pointer) -> c_int,
    open: extern "C" fn(&mut Scope, Pointer),
    close: extern "C" fn(&mut Scope),
    allow: extern "C" fn(&mut Scope, Pointer),
    at_end: extern "C" fn(Pointer, extern "C" fn(Pointer), Pointer),
}

impl V8 {
    /// The one that we are in, if we are.
    pub fn find() -> Option<&'static Self> {
        let found = RUNTIME.get_or_init(Self::look_up).as_ref()?;
        (!(found.isolate)().is_null()).then_some(found)
    }

    fn look_up() -> Option<Self> {
        Some(Self {
            isolate: function(c"_ZN2v87Isolate10GetCurrentEv")?,
            context: function(c"_ZN2v87Isolate17GetCurrentContextEv")?,
            text: function(c"_ZN2v86String11NewFromUtf8EPNS_7IsolateEPKcNS_13NewStringTypeEi")?,
            compile: function(c"_ZN2v86Script7CompileENS_5LocalINS_7ContextEEENS1_INS_6StringEEEPNS_12ScriptOriginE")?,
            run: function(c"_ZN2v86Script3RunENS_5LocalINS_7ContextEEE")?,
            number: function(c"_ZNK2v85Int325ValueEv")?,
            open: function(c"_ZN2v811HandleScopeC1EPNS_7IsolateE")?,
            close: function(c"_ZN2v811HandleScopeD1Ev")?,
            allow: function(c"_ZN2v87Isolate29AllowJavascriptExecutionScopeC1EPS0_")?,
            at_end: function(c"_ZN4node25AddEnvironmentCleanupHookEPN2v87IsolateEPFvPvES3_")?,
        })
    }

    /// Runs what a program will need to have run. It must not throw.
    pub fn warm(&self, code: &str) {
        if let Ok(code) = CString::new(code)
            && !code.is_empty()
        {
            self.run(&code, drop);
        }
    }

    /// Has the process end with the number that `leave` says when the program and all that
    /// it waits for have ended. To take itself apart takes it longer than a small program,
    /// and nobody can see that.
    pub fn finish(&self, leave: &str) {
        if let Ok(leave) = CString::new(leave)
            && !leave.is_empty()
        {
            LEAVE.get_or_init(|| leave);
            (self.at_end)((self.isolate)(), end, std::ptr::null_mut());
        }
    }

    /// Runs a script, and does something with what it comes to.
    fn run<T>(&self, code: &CStr, then: impl FnOnce(Pointer) -> T) -> Option<T> {
        let isolate = (self.isolate)();
        let mut scope = Scope::default();
        (self.open)(&mut scope, isolate);
        let context = (self.context)(isolate);
        let some = |pointer: Pointer| (!pointer.is_null()).then_some(pointer);
        let value = some((self.text)(isolate, code.as_ptr(), 0, -1))
            .and_then(|text| some((self.compile)(context, text, std::ptr::null_mut())))
            .and_then(|script| some((self.run)(script, context)));
        let result = value.map(then);
        (self.close)(&mut scope);
        result
    }
}

/// Called by node when nothing is left to do.
extern "C" fn end(_: Pointer) {
    if let (Some(v8), Some(leave)) = (V8::find(), LEAVE.get()) {
        // It forbids programs by now; its own listeners have all been called.
        (v8.allow)(&mut Scope::default(), (v8.isolate)());
        if let Some(code) = v8.run(leave, |value| (v8.number)(value)) {
            sys::exit_before_memory(code);
        }
    }
}
