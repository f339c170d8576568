//! Why records cannot be written or read.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    #[error("there are no records in {}", .0.display())]
    None(PathBuf),
    #[error("cannot use the folder of records {}", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("the records are of a newer hotcell (version {0})")]
    Newer(i64),
    #[error("the records cannot be read or written")]
    Database(#[from] rusqlite::Error),
}
