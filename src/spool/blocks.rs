//! The one file of everything that is spooled, handed out in blocks.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, open};

/// What is handed out at a time.
const BLOCK: u64 = 64 << 10;
/// How many blocks there are: 1 GiB for all outputs, those of running programs among them.
const MOST: u32 = 1 << 14;

static POOL: Mutex<Pool> = Mutex::new(Pool {
    file: None,
    free: Vec::new(),
    next: 0,
});

struct Pool {
    /// Opened when it is first needed.
    file: Option<&'static File>,
    free: Vec<u32>,
    /// The first block that was never used.
    next: u32,
}

/// Blocks that one stream has, in its order. ResultValue back when dropped.
#[derive(Debug, Default)]
pub struct Blocks(Vec<u32>);

impl Blocks {
    /// Writes at a place of the stream, which grows as far as that. An error if all blocks are taken.
    pub fn write(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let file = file()?;
        let end = at + bytes.len() as u64;
        while (self.0.len() as u64) * BLOCK < end {
            self.0.push(take()?);
        }
        self.each(at, bytes.len(), |range, place| {
            file.write_all_at(&bytes[range], place)
        })
    }

    /// Fills `bytes` from a place of the stream on.
    pub fn read(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        let file = file()?;
        self.each(at, bytes.len(), |range, place| {
            file.read_exact_at(&mut bytes[range], place)
        })
    }

    /// Which part of a piece of the stream is where in the file.
    fn each(
        &self,
        at: u64,
        length: usize,
        mut work: impl FnMut(std::ops::Range<usize>, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut done = 0;
        while done < length {
            let now = at + done as u64;
            let (block, inside) = ((now / BLOCK) as usize, now % BLOCK);
            let part = ((BLOCK - inside) as usize).min(length - done);
            let block = self.0.get(block).ok_or(io::ErrorKind::UnexpectedEof)?;
            work(done..done + part, u64::from(*block) * BLOCK + inside)?;
            done += part;
        }
        Ok(())
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        let Some(file) = lock().file else {
            return;
        };
        // What nobody can read any more takes no room.
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        for block in &self.0 {
            let _ = fallocate(file, hole, u64::from(*block) * BLOCK, BLOCK);
        }
        lock().free.append(&mut self.0);
    }
}

fn take() -> io::Result<u32> {
    let mut pool = lock();
    if let Some(block) = pool.free.pop() {
        return Ok(block);
    }
    if pool.next >= MOST {
        return Err(io::ErrorKind::StorageFull.into());
    }
    pool.next += 1;
    Ok(pool.next - 1)
}

/// The file, which is there as long as the process.
fn file() -> io::Result<&'static File> {
    let mut pool = lock();
    match pool.file {
        Some(file) => Ok(file),
        None => {
            let file: &'static File = Box::leak(Box::new(nameless_file()?));
            Ok(*pool.file.insert(file))
        }
    }
}

fn lock() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file in the temporary folder that no path leads to.
fn nameless_file() -> io::Result<File> {
    let folder = std::env::temp_dir();
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    match open(&folder, flags, mode) {
        Ok(file) => Ok(file.into()),
        // Not every file system can do that; then it has a name for a moment.
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR) => {
            let path = folder.join(format!("hotcell-{}", crate::random::random_name()));
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        }
        Err(error) => Err(error.into()),
    }
}
