//! Where a command reads and writes: the process's streams, or a test's.

use crate::diag::{Diagnostic, Result, files};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The streams of a command and the folder that relative paths start from.
pub struct Io<'a> {
    /// Where relative paths start.
    pub directory: &'a Path,
    /// Standard input.
    pub stdin: &'a mut dyn Read,
    /// Standard output.
    pub out: &'a mut dyn Write,
    /// Messages.
    pub err: &'a mut dyn Write,
}

impl Io<'_> {
    /// A path as the command means it.
    pub fn path(&self, path: &Path) -> PathBuf {
        self.directory.join(path)
    }

    /// The text of a file; `-` is standard input.
    pub fn read_text(&mut self, path: &Path) -> Result<String> {
        let shown = path.display();
        let bytes = if path == Path::new("-") {
            files::read_stream(self.stdin, files::TEXT_BYTES)
                .map_err(|e| Diagnostic::input(format!("standard input: {e}")))?
        } else {
            files::read(&self.path(path), files::TEXT_BYTES)
                .map_err(|e| Diagnostic::input(format!("{shown}: {e}")))?
        };
        String::from_utf8(bytes).map_err(|_| Diagnostic::input(format!("{shown} is not text")))
    }

    /// Writes to standard output. A closed pipe is no failure of the command.
    pub fn print(&mut self, text: &str) {
        let _ = self.out.write_all(text.as_bytes());
    }

    /// Writes a message.
    pub fn message(&mut self, text: &str) {
        let _ = self.err.write_all(text.as_bytes());
    }
}
