//! Functions of the process that we are in, found by their names.

use std::ffi::{CStr, c_void};

/// A table of functions that are looked up by name.
///
/// Each field has a symbol and the type of its function. [`symbols!`] makes the struct and an
/// `unsafe fn resolve() -> Option<Self>`: it is for its caller to know that a process which has
/// all of these symbols has functions of these types behind them.
macro_rules! symbols {
    ($(#[$attribute:meta])* struct $table:ident {
        $($field:ident: $symbol:literal = fn($($argument:ty),*) $(-> $result:ty)?,)+
    }) => {
        $(#[$attribute])*
        struct $table {
            $($field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)+
        }

        impl $table {
            /// Looks all of them up; `None` if one is not there.
            ///
            /// # Safety
            /// Each symbol that is there must be a function of the type in the table.
            unsafe fn resolve() -> Option<Self> {
                Some(Self {
                    $($field: {
                        let found = $crate::symbols::find($symbol)?;
                        // SAFETY: not null, and our caller vouches for the type.
                        unsafe {
                            std::mem::transmute::<
                                *mut std::ffi::c_void,
                                unsafe extern "C" fn($($argument),*) $(-> $result)?,
                            >(found)
                        }
                    },)+
                })
            }
        }
    };
}
pub(crate) use symbols;

/// The address of a symbol, from the program and all of its libraries.
pub fn find(symbol: &CStr) -> Option<*mut c_void> {
    // SAFETY: dlsym reads a C string; the handle is one that it names itself.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, symbol.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// The address of the same symbol in the libraries behind this one.
pub fn find_next(symbol: &CStr) -> Option<*mut c_void> {
    // SAFETY: dlsym reads a C string; the handle is one that it names itself.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, symbol.as_ptr()) };
    (!found.is_null()).then_some(found)
}
