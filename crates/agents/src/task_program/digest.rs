//! The digest that tells programs of tasks apart.

use std::fs::File;
use std::io::Read as _;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::limits::MODULE_BYTES_MAX;
use super::program::TaskProgram;
use crate::{AgentError, Failure};

/// The content of a regular file that is not too large.
fn content(path: &str) -> Option<Vec<u8>> {
    // This comes first, because opening a pipe would wait for its writer.
    let metadata = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    if metadata.len() > MODULE_BYTES_MAX as u64 {
        return None;
    }

    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    file.take(MODULE_BYTES_MAX as u64).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Adds a part, so that no two lists of parts give the same input.
fn add(hash: &mut Sha256, kind: &str, bytes: &[u8]) {
    hash.update(format!("{kind} {} ", bytes.len()));
    hash.update(bytes);
}

impl TaskProgram {
    /// SHA-256 over what it declares and its module, or over what it declares and its command. The
    /// content of each file of up to 16 MiB that the command names stands for its name: the same
    /// program has the same digest in another folder. Files that the program itself reads are not
    /// in it. Blocks until it has declared its task.
    ///
    /// # Errors
    /// It cannot be started, or its module cannot be read.
    pub fn digest(self: &Arc<Self>) -> Result<String, AgentError> {
        let declared = self.declaration()?;
        let mut hash = Sha256::new();
        add(&mut hash, "declared", declared.to_string().as_bytes());

        if let Some(uploaded) = self.uploaded_digest() {
            add(&mut hash, "uploaded", uploaded.as_bytes());
        }
        let Some(task) = self.configured() else { return Ok(format!("{:x}", hash.finalize())) };
        if let Some(module) = &task.module {
            let bytes = content(module).ok_or_else(|| {
                let reason = format!("{module} cannot be read again");
                AgentError::new("task", Failure::Refused, reason)
            })?;
            add(&mut hash, "module", &bytes);
        }
        for argument in &task.command {
            match content(argument) {
                Some(bytes) => add(&mut hash, "file", &bytes),
                None => add(&mut hash, "argument", argument.as_bytes()),
            }
        }
        Ok(format!("{:x}", hash.finalize()))
    }
}
