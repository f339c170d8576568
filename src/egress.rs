//! The way out of a cell: a proxy that reaches the hosts a run was granted, and no others.

mod address;

pub use address::{Reach, is_own};
