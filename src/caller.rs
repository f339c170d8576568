//! Who asked for something: the principal that a request is served for.
//!
//! A transport makes one once it knows who is at the other end, and the request carries it
//! to whatever is shared between callers: the queue and the stored output. What a caller may
//! do is decided there; this module only tells two callers apart.

/// One who asks. Two are the same if they may know of each other's runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Caller(Principal);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Principal {
    Local,
    Token,
    Anonymous,
}

impl Caller {
    /// All that [`name`](Self::name) can be.
    pub const NAMES: [&'static str; 3] = ["local", "token", "anonymous"];

    /// Whoever started this process: a shell, an MCP client over standard input, or a
    /// program that uses the library.
    pub fn local() -> Self {
        Self(Principal::Local)
    }

    /// An HTTP client that showed the server's token.
    pub fn token() -> Self {
        Self(Principal::Token)
    }

    /// An HTTP client of a server that asks for no token.
    pub fn anonymous() -> Self {
        Self(Principal::Anonymous)
    }

    /// The word for it in records, the same in every process.
    pub fn name(&self) -> &'static str {
        match self.0 {
            Principal::Local => "local",
            Principal::Token => "token",
            Principal::Anonymous => "anonymous",
        }
    }
}
