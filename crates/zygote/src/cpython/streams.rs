//! CPython's standard output and error with what they print gathered ([`crate::output`]).
//!
//! The objects stay CPython's own. They get a `write` and a `flush` of their own, bound methods of the same names and types as before, and
//! lose them again when the program has them reconfigured, detached or closed.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

use super::copy::Method;
use super::{Gil, Pointer};
use crate::output::{self, Waiting};
use crate::symbols::{find, symbols};

symbols! {
    #[allow(non_snake_case)]
    struct Api {
        PyUnicode_AsUTF8AndSize: c"PyUnicode_AsUTF8AndSize" = fn(Pointer, *mut isize) -> *const c_char,
        PyUnicode_GetLength: c"PyUnicode_GetLength" = fn(Pointer) -> isize,
        PyObject_GetBuffer: c"PyObject_GetBuffer" = fn(Pointer, *mut Buffer, c_int) -> c_int,
        PyBuffer_Release: c"PyBuffer_Release" = fn(*mut Buffer),
        PyObject_GetItem: c"PyObject_GetItem" = fn(Pointer, Pointer) -> Pointer,
        PyList_GetItem: c"PyList_GetItem" = fn(Pointer, isize) -> Pointer,
        PyTuple_GetItem: c"PyTuple_GetItem" = fn(Pointer, isize) -> Pointer,
        PyLong_FromSsize_t: c"PyLong_FromSsize_t" = fn(isize) -> Pointer,
        Py_BuildValue: c"Py_BuildValue" = fn(*const c_char) -> Pointer,
        PyErr_Clear: c"PyErr_Clear" = fn(),
        PyErr_Occurred: c"PyErr_Occurred" = fn() -> Pointer,
        PyErr_CheckSignals: c"PyErr_CheckSignals" = fn() -> c_int,
        PyErr_SetFromErrno: c"PyErr_SetFromErrno" = fn(Pointer) -> Pointer,
        PyEval_SaveThread: c"PyEval_SaveThread" = fn() -> Pointer,
        PyEval_RestoreThread: c"PyEval_RestoreThread" = fn(Pointer),
        PyCFunction_NewEx: c"PyCFunction_NewEx" = fn(*const c_void, Pointer, Pointer) -> Pointer,
    }
}

impl Api {
    fn find() -> Option<&'static Self> {
        static FOUND: std::sync::OnceLock<Option<Api>> = std::sync::OnceLock::new();
        // SAFETY: names of CPython's documented C API, with its types.
        FOUND.get_or_init(|| unsafe { Self::resolve() }).as_ref()
    }
}

/// A `Py_buffer`.
#[repr(C)]
struct Buffer {
    data: *const u8,
    object: Pointer,
    length: isize,
    rest: [usize; 8],
}

/// `METH_O` and `METH_NOARGS`, in every version.
const ONE_ARGUMENT: c_int = 8;
const NO_ARGUMENTS: c_int = 4;

/// The methods, by the name that code of ours finds them with.
static METHODS: [(&CStr, Method); 6] = [
    (
        c"write text",
        Method::new(c"write", write_text::<1>, ONE_ARGUMENT),
    ),
    (
        c"write error",
        Method::new(c"write", write_text::<2>, ONE_ARGUMENT),
    ),
    (
        c"write bytes",
        Method::new(c"write", write_bytes::<1>, ONE_ARGUMENT),
    ),
    (
        c"write error bytes",
        Method::new(c"write", write_bytes::<2>, ONE_ARGUMENT),
    ),
    (c"flush", Method::new(c"flush", flush, NO_ARGUMENTS)),
    (c"stop", Method::new(c"stop", stop, NO_ARGUMENTS)),
];

/// Has the streams that the interpreter has now gather what is printed.
const INSTALL: &str = "
import sys
def install(stream, text, binary):
    stream.flush()
    def instead(name):
        original = getattr(type(stream), name)
        def call(*values, **named):
            stream.flush()
            for it in changed:
                vars(stream).pop(it, None)
            result = original(stream, *values, **named)
            if name == 'reconfigure':
                original(stream, write_through=True)
            return result
        call.__name__, call.__qualname__ = name, 'TextIOWrapper.' + name
        return call
    changed = dict(write=bind(text, stream), flush=bind('flush', stream))
    changed.update((name, instead(name)) for name in ('reconfigure', 'detach', 'close'))
    vars(stream).update(changed)
    vars(stream.buffer).update(write=bind(binary, stream.buffer), flush=bind('flush', stream.buffer))
    class Original:
        def __getitem__(self, text):
            written = type(stream).write(stream, text)
            type(stream).flush(stream)
            return written
    originals.append(Original())
bind = kept.pop('bind method')
originals = kept['originals'] = []
if type(sys.stdout).__name__ == type(sys.stderr).__name__ == 'TextIOWrapper' and sys.stdout.encoding == sys.stderr.encoding == 'utf-8':
    install(sys.stdout, 'write text', 'write bytes')
    install(sys.stderr, 'write error', 'write error bytes')
kept['unbuffer'] = bind('stop', None)
";

/// Objects whose item of a text is the text written by the stream's own method: of standard output, and of standard error.
static ORIGINALS: [AtomicPtr<c_void>; 2] = [const { AtomicPtr::new(null_mut()) }; 2];

static BIND: Method = Method::new(c"bind", bind, 1);

impl Gil {
    /// Has standard output and error gathered, once, before there is a program. Whether they are of a kind that can be.
    pub fn gather_output(&self) -> io::Result<bool> {
        let api = Api::find().ok_or(io::ErrorKind::NotFound)?;
        // SAFETY: a method that lives as long as the process, without an object or a module. We hold the lock.
        let function =
            unsafe { (api.PyCFunction_NewEx)((&raw const BIND).cast(), null_mut(), null_mut()) };
        let function = self.owned(function)?;
        self.set(&self.kept()?, c"bind method", function.as_ptr())?;
        self.release(function);
        self.run(INSTALL)?;
        let mut gathers = true;
        for (at, original) in (0..).zip(&ORIGINALS) {
            // SAFETY: a dictionary that we own, and a C string. We hold the lock.
            let all = unsafe {
                (self.api.PyDict_GetItemString)(self.kept()?.as_ptr(), c"originals".as_ptr())
            };
            // SAFETY: a list, as the code above has made it, which stays where it is. Of too short a one it says so.
            let found = unsafe { (api.PyList_GetItem)(all, at) };
            gathers &= !found.is_null();
            original.store(found, Ordering::Relaxed);
        }
        // SAFETY: it takes nothing. Streams that are left as they are have none.
        unsafe { (api.PyErr_Clear)() };
        Ok(gathers)
    }
}

/// A method of this name, of an object: `bind(name, object)`.
extern "C" fn bind(_: Pointer, arguments: Pointer) -> Pointer {
    let Some(api) = Api::find() else {
        return null_mut();
    };
    // SAFETY: a tuple, as every function that takes a varying number of arguments is given, with two items, as only code of ours calls it.
    let name = unsafe { (api.PyTuple_GetItem)(arguments, 0) };
    // SAFETY: the same.
    let object = unsafe { (api.PyTuple_GetItem)(arguments, 1) };
    let Some(name) = text(api, name) else {
        return null_mut();
    };
    let found = METHODS.iter().find(|(known, _)| known.to_bytes() == name);
    let method = found.map_or(null(), |(_, method)| &raw const *method);
    // SAFETY: a method that lives as long as the process, and an object that lives. Without a method it is an error of Python's.
    unsafe { (api.PyCFunction_NewEx)(method.cast(), object, null_mut()) }
}

/// The bytes of a text, if it is one that has some; otherwise an error is set.
fn text(api: &Api, object: Pointer) -> Option<&[u8]> {
    let mut length = 0;
    // SAFETY: an object that our caller was given, and room for a number. Of another than a text it says so.
    let data = unsafe { (api.PyUnicode_AsUTF8AndSize)(object, &raw mut length) };
    // SAFETY: so many bytes, which live as long as the object does.
    (!data.is_null()).then(|| unsafe { std::slice::from_raw_parts(data.cast(), length as usize) })
}

extern "C" fn write_text<const FD: i32>(_: Pointer, object: Pointer) -> Pointer {
    let Some(api) = Api::find() else {
        return null_mut();
    };
    let Some(bytes) = text(api, object) else {
        // SAFETY: it takes nothing. An error is set, which CPython's own method says better, or none is needed.
        unsafe { (api.PyErr_Clear)() };
        return write_as_ever::<FD>(api, object);
    };
    let put = put::<FD>(api, bytes);
    // SAFETY: a text, as we know by now.
    let length = unsafe { (api.PyUnicode_GetLength)(object) };
    match put {
        // SAFETY: it takes a number.
        Ok(()) => unsafe { (api.PyLong_FromSsize_t)(length) },
        Err(error) => raise(api, &error),
    }
}

/// By the method of the stream's own type, for what is no text or has no UTF-8.
fn write_as_ever<const FD: i32>(api: &Api, object: Pointer) -> Pointer {
    let [stdout, stderr] = &ORIGINALS;
    let original = if FD == 1 { stdout } else { stderr }.load(Ordering::Relaxed);
    // SAFETY: an object that is never given back, and one that our caller was given. We hold the lock.
    unsafe { (api.PyObject_GetItem)(original, object) }
}

extern "C" fn write_bytes<const FD: i32>(_: Pointer, object: Pointer) -> Pointer {
    let Some(api) = Api::find() else {
        return null_mut();
    };
    let mut buffer = Buffer {
        data: null(),
        object: null_mut(),
        length: 0,
        rest: [0; 8],
    };
    // SAFETY: an object that our caller was given, and room for its buffer. Of one without it says so.
    if unsafe { (api.PyObject_GetBuffer)(object, &raw mut buffer, 0) } != 0 {
        return null_mut();
    }
    let bytes = match buffer.length {
        0 => &[][..],
        // SAFETY: so many bytes, which stay until the buffer is released.
        length => unsafe { std::slice::from_raw_parts(buffer.data, length as usize) },
    };
    let (put, length) = (put::<FD>(api, bytes), buffer.length);
    // SAFETY: what was taken above, once.
    unsafe { (api.PyBuffer_Release)(&raw mut buffer) };
    match put {
        // SAFETY: it takes a number.
        Ok(()) => unsafe { (api.PyLong_FromSsize_t)(length) },
        Err(error) => raise(api, &error),
    }
}

fn put<const FD: i32>(api: &Api, bytes: &[u8]) -> io::Result<()> {
    match FD {
        1 => output::print(bytes, api),
        _ => output::write_all(FD, bytes, api),
    }
}

extern "C" fn flush(_: Pointer, _: Pointer) -> Pointer {
    let Some(api) = Api::find() else {
        return null_mut();
    };
    match output::flush(api) {
        Ok(()) => none(api),
        Err(error) => raise(api, &error),
    }
}

extern "C" fn stop(_: Pointer, _: Pointer) -> Pointer {
    output::stop();
    Api::find().map_or(null_mut(), none)
}

fn none(api: &Api) -> Pointer {
    // SAFETY: a C string; of an empty one it makes None.
    unsafe { (api.Py_BuildValue)(c"".as_ptr()) }
}

fn raise(api: &Api, error: &io::Error) -> Pointer {
    // SAFETY: it takes nothing. A handler of a signal may have raised one.
    if !unsafe { (api.PyErr_Occurred)() }.is_null() {
        return null_mut();
    }
    let Some(class) = find(c"PyExc_OSError") else {
        return null_mut();
    };
    output::set_errno(error.raw_os_error().unwrap_or(libc::EIO));
    // SAFETY: a variable of CPython's with a class, which is there as long as the interpreter.
    let class = unsafe { *class.cast::<Pointer>() };
    // SAFETY: a class of errors that are made of the number just set. We hold the lock.
    unsafe { (api.PyErr_SetFromErrno)(class) }
}

impl Waiting for Api {
    fn aside<T>(&self, work: impl FnOnce() -> T) -> T {
        // SAFETY: whoever calls a method of Python holds the lock, and has it again afterwards.
        let state = unsafe { (self.PyEval_SaveThread)() };
        let result = work();
        // SAFETY: what the first returned to this thread, once.
        unsafe { (self.PyEval_RestoreThread)(state) };
        result
    }

    fn on_interrupt(&self) -> io::Result<()> {
        // SAFETY: it takes nothing, and we hold the lock. What a handler of the program's raises stays set.
        match unsafe { (self.PyErr_CheckSignals)() } {
            0 => Ok(()),
            _ => Err(io::Error::other("a handler of the program's has raised it")),
        }
    }
}
