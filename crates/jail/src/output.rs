//! What a runtime has printed and not yet written to its pipe: a file in memory that the runtime and the server share.
//!
//! A program that prints in small pieces would wake the server for each. Its runtime gathers them here instead and writes them together. The
//! server reads what is left here when the program is quiet, and when it has ended, however that came: nothing is lost that was printed.
//!
//! SECURITY: the program can write anything here. The server reads it as what it is, output; it maps nothing of it.

/// Where both open the file, below the workspace: whoever comes first makes it. The runtime takes its name away before the program starts.
pub const PATH: &str = ".home/.output";
/// The file has a head of numbers, each of eight bytes, and then bytes of the stream.
pub const HEAD: usize = 64;
pub const DATA: usize = (1 << 16) - HEAD;

/// Positions in the stream, counted from its beginning. The runtime writes the first four numbers, the server the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// Where the stream ends so far.
    Printed,
    /// Up to where it was written to the pipe, or taken.
    Written,
    /// The position of the first byte of the data.
    Base,
    /// 1 while the runtime writes to the pipe.
    Writing,
    /// Up to where the server has taken it.
    Taken,
    /// 1 while the server takes.
    Taking,
}

impl Field {
    pub const fn offset(self) -> usize {
        self as usize * 8
    }
}

const _: () = assert!(Field::Taking.offset() + 8 <= HEAD);
