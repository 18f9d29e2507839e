//! What a command works with: its toolkit, and where it reads and writes: the process's streams, or a test's.

use crate::diag::{Diagnostic, Result, files};
use crate::toolkit::Toolkit;
use parking_lot::Mutex;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the streams of a command lead to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terminal {
    /// The streams are those of the process.
    pub process: bool,
    /// Standard output is read by a person.
    pub out: bool,
    /// Messages are read by a person.
    pub err: bool,
}

impl Terminal {
    /// The streams of the process, and whether they are terminals.
    pub fn of_process() -> Terminal {
        Terminal { process: true, out: std::io::stdout().is_terminal(), err: std::io::stderr().is_terminal() }
    }
}

/// Bytes that are written by one and read by another.
#[derive(Clone, Default)]
pub struct Kept(Arc<Mutex<Vec<u8>>>);

impl Kept {
    /// Takes what was written.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock())
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The toolkit of a command, its streams, and the folder that relative paths start from.
pub struct Io<'a> {
    /// What can be extended: ops, passes, rules, devices, the program's name.
    pub toolkit: &'a Toolkit,
    /// Where relative paths start.
    pub directory: &'a Path,
    /// Standard input.
    pub stdin: &'a mut dyn Read,
    /// Standard output.
    pub out: &'a mut dyn Write,
    /// Messages.
    pub err: &'a mut dyn Write,
    /// What they lead to.
    pub terminal: Terminal,
}

impl<'a> Io<'a> {
    /// Streams that are not a terminal: pipes, files, tests.
    pub fn new(
        toolkit: &'a Toolkit,
        directory: &'a Path,
        stdin: &'a mut dyn Read,
        out: &'a mut dyn Write,
        err: &'a mut dyn Write,
    ) -> Io<'a> {
        Io { toolkit, directory, stdin, out, err, terminal: Terminal::default() }
    }

    /// Where a program prints that runs for this command, and what keeps it where that is not the process's own output: it is
    /// to be given to [`Io::print_kept`] after the run.
    pub fn program_output(&self) -> (Box<dyn Write + Send>, Kept) {
        let kept = Kept::default();
        match self.terminal.process {
            true => (Box::new(std::io::stdout()), kept),
            false => (Box::new(kept.clone()), kept),
        }
    }

    /// Prints what a program printed.
    pub fn print_kept(&mut self, kept: &Kept) {
        let _ = self.out.write_all(&kept.take());
    }

    /// The toolkit with what dialect files and files of derivatives add.
    pub fn toolkit_with(&self, files: &[PathBuf]) -> Result<Toolkit> {
        self.toolkit.with_files(files, self.directory)
    }

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

    /// Writes to standard output. A closed pipe is not a failure of the command.
    pub fn print(&mut self, text: &str) {
        let _ = self.out.write_all(text.as_bytes());
    }

    /// Writes a message.
    pub fn message(&mut self, text: &str) {
        let _ = self.err.write_all(text.as_bytes());
    }
}
