//! A folder that is gone when the load is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What statfs says of a file system in memory: TMPFS_MAGIC and RAMFS_MAGIC.
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// See the module.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new folder among the temporary files.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("prime-agents-load-{:016x}", rand::random::<u64>()));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(path = %self.0.display(), %error, "a temporary folder is left behind");
        }
    }
}

/// Whether what is written below this folder stays in memory, so that making it durable costs nothing.
pub fn is_in_memory(folder: &Path) -> bool {
    rustix::fs::statfs(folder)
        .is_ok_and(|system| u64::try_from(system.f_type).is_ok_and(|kind| IN_MEMORY.contains(&kind)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path().to_owned();
        fs::write(path.join("file"), "x").unwrap();
        assert!(path.is_dir());
        drop(scratch);
        assert!(!path.exists());
    }
}
