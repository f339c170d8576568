//! What a caller wants to see of a program beside what it prints.

use serde::{Deserialize, Serialize};

/// Which of the things that a program shows are wanted. A program that shows nothing is the same with each of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Showing {
    #[default]
    Nothing,
    /// Pictures, and what it passes to `display`.
    Pictures,
    /// The value of its last expression too.
    All,
    /// The same, with the value as the language's own prompt writes it.
    Prompt,
}
