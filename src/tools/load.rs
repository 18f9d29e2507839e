//! Loading for the commands: what `toolkit` loads, with a bar for a person where gigabytes are read.

use super::case::Case;
use super::io::Io;
use super::progress::Progress;
use crate::diag::{Diagnostic, Result, files};
use crate::dialects::{Registry, Run};
use crate::frontend::archive;
use crate::resources::memory;
use crate::runtime::Program;
use crate::toolkit::load_opened;
use std::path::Path;
use std::sync::Arc;

pub use crate::toolkit::{
    Loaded, detach_parameters, is_graph, is_model, is_text, load_archive_with, load_graph_with, load_mapped,
    load_model, load_source_with, origins, restore, start,
};

/// [`load_model`] for a person, who sees how far the reading of gigabytes is.
pub fn load_shown(path: &Path, run: &Run, registry: &Arc<Registry>, io: &Io<'_>) -> Result<Loaded> {
    let shown = io.terminal.process && io.terminal.err;
    load_opened(path, run, registry, &|path| match path.metadata() {
        Ok(meta) if shown && meta.len() >= LARGE => read_shown(path, meta.len()),
        _ => archive::Archive::open(path),
    })
}

/// Files from this size on take long enough to read that a person wants to see it.
const LARGE: u64 = 1 << 30;

/// Reads an archive piece by piece.
fn read_shown(path: &Path, length: u64) -> Result<archive::Archive> {
    use std::io::Read;
    let named = |e: String| Diagnostic::input(format!("{}: {e}", path.display()));
    let limits = archive::Limits::default();
    if length > limits.file_bytes {
        // The reader itself says what is wrong with it.
        return archive::Archive::open(path);
    }
    let progress = Progress::bytes("loading", length, true);
    let mut bytes: Vec<u8> = memory::vec_reserved(length as usize)?;
    let mut file = files::open(path).map_err(|e| named(e.to_string()))?.take(length);
    loop {
        let read = Read::by_ref(&mut file).take(16 << 20).read_to_end(&mut bytes);
        match read.map_err(|e| named(e.to_string()))? {
            0 => break,
            n => progress.advance(n as u64),
        }
    }
    progress.end();
    archive::Archive::from_bytes(bytes).map_err(|mut error| {
        let message = format!("{}: {}", path.display(), error.message());
        error.report_mut().message = message;
        error
    })
}

/// The program of a case: of its archive, else of its source, else of its graph.
pub(super) fn load_case(case: &Case, run: &Run, registry: &Arc<Registry>) -> Result<Program> {
    match (&case.archive, &case.source, &case.graph) {
        (Some(bytes), ..) => load_archive_with(bytes.clone(), run, registry),
        (None, Some(source), _) => load_source_with("<string>", source, registry),
        (None, None, Some(graph)) => load_graph_with("graph", graph, &case.entry, registry),
        (None, None, None) => Err(Diagnostic::input(format!("case {} carries no program", case.name))),
    }
}
