//! `flambeau.toml`: the dialects that a project's files use.
//!
//! ```text
//! dialects = ["dialects/*.dialect"]
//! ```
//!
//! Paths start from the file's own folder; a star stands for any letters of the last part.

use super::diagnostic::translated;
use super::document::{Document, Encoding};
use crate::diag::{Diagnostic, Source, files};
use crate::dialects::Registry;
use crate::frontend::dialect;
use crate::toolkit::Toolkit;
use lsp_types as lsp;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of the file.
const NAME: &str = "flambeau.toml";

/// What the file says.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    #[serde(default)]
    dialects: Vec<String>,
}

/// The ops that files of this project may use.
pub(super) struct Project {
    /// Built-in ops and those of the project's dialects.
    pub(super) registry: Arc<Registry>,
    /// What the program knows without any project.
    toolkit: Toolkit,
    roots: Vec<PathBuf>,
    /// Dialects in the order in which they were loaded.
    loaded: Vec<(PathBuf, Arc<Source>)>,
    /// What is wrong with the project's own files.
    wrong: Vec<(PathBuf, Diagnostic)>,
    /// Files with problems that were published and must be taken back once they are mended.
    reported: Vec<PathBuf>,
    /// The text of each file that was read, to see what changed.
    seen: Vec<(PathBuf, String)>,
}

impl Project {
    /// Reads the project files of the client's folders.
    pub(super) fn find(roots: &[PathBuf], toolkit: &Toolkit) -> Project {
        let mut project = Project {
            registry: Arc::clone(toolkit.registry()),
            toolkit: toolkit.clone(),
            roots: roots.to_vec(),
            loaded: Vec::new(),
            wrong: Vec::new(),
            reported: Vec::new(),
            seen: Vec::new(),
        };
        project.read();
        project
    }

    /// The project as its files are now, if one of them changed.
    pub(super) fn reloaded(&self) -> Option<Project> {
        let mut project = Project::find(&self.roots, &self.toolkit);
        if project.seen == self.seen {
            return None;
        }
        project.reported.extend(self.wrong.iter().map(|(path, _)| path.clone()));
        Some(project)
    }

    fn read(&mut self) {
        self.registry = Arc::clone(self.toolkit.registry());
        self.loaded.clear();
        for root in self.roots.clone() {
            let file = root.join(NAME);
            // A folder without one is not a project of ours, which is well.
            let Ok(text) = files::read_text(&file) else { continue };
            self.seen.push((file.clone(), text.clone()));
            match settings(&text) {
                Ok(settings) => {
                    for pattern in &settings.dialects {
                        self.dialects(&file, &root, pattern);
                    }
                }
                Err(error) => self.wrong.push((file, error)),
            }
        }
    }

    /// The ops that a dialect file may build on: all but its own.
    pub(super) fn registry_without(&self, uri: &lsp::Uri) -> Arc<Registry> {
        let path = path_of(uri);
        if !self.loaded.iter().any(|(known, _)| Some(known) == path.as_ref()) {
            return Arc::clone(&self.registry);
        }
        let others = self.loaded.iter().filter(|(known, _)| Some(known) != path.as_ref());
        others.fold(Arc::clone(self.toolkit.registry()), |registry, (_, source)| {
            // One that builds on the missing one is left out, too.
            dialect::load(&registry, source).unwrap_or(registry)
        })
    }

    fn dialects(&mut self, file: &Path, root: &Path, pattern: &str) {
        let paths = matching(root, pattern);
        if paths.is_empty() {
            let error = Diagnostic::input(format!("no dialect file fits {pattern:?}"));
            self.wrong.push((file.to_path_buf(), error));
        }
        for path in paths {
            let text = match files::read_text(&path) {
                Ok(text) => text,
                Err(error) => {
                    let error = Diagnostic::input(format!("{}: {error}", path.display()));
                    self.wrong.push((file.to_path_buf(), error));
                    continue;
                }
            };
            self.seen.push((path.clone(), text.clone()));
            let source = Source::new(path.display().to_string(), text);
            match dialect::load(&self.registry, &source) {
                Ok(registry) => {
                    self.registry = registry;
                    self.loaded.push((path, source));
                }
                Err(error) => self.wrong.push((path, error)),
            }
        }
    }

    /// The dialect files of the project, as loaded.
    pub(super) fn dialect_files(&self, asker: &Document) -> Vec<Document> {
        let file = |(path, source): &(PathBuf, Arc<Source>)| {
            Some(Document::new(uri_of(path)?, "", source.text().to_string(), 0, asker.encoding()))
        };
        self.loaded.iter().filter_map(file).collect()
    }

    /// What is wrong with the project's own files, and an empty list for those that are well again.
    pub(super) fn problems(&self, encoding: Encoding) -> Vec<(lsp::Uri, Vec<lsp::Diagnostic>)> {
        let mut files: Vec<&PathBuf> =
            self.reported.iter().chain(self.wrong.iter().map(|(path, _)| path)).collect();
        files.sort();
        files.dedup();
        let known = files.into_iter().filter_map(|path| Some((path, uri_of(path)?)));
        known
            .map(|(path, uri)| {
                let text = files::read_text(path).unwrap_or_default();
                let document = Document::new(uri.clone(), "", text, 0, encoding);
                let own = self.wrong.iter().filter(|(file, _)| file == path);
                (uri, own.map(|(_, error)| translated(&document, error)).collect())
            })
            .collect()
    }
}

fn settings(text: &str) -> Result<Settings, Diagnostic> {
    toml::from_str(text).map_err(|error| {
        let source = Source::new(NAME, text);
        let range = error.span().unwrap_or(0..0);
        let message = error.message().lines().next().unwrap_or_default().to_string();
        Diagnostic::syntax(message)
            .at(&crate::diag::Span::new(&source, range.start, range.end))
            .hint("known is: dialects = [\"FILE\", ...]")
    })
}

/// Files below `root` that fit, in order of name.
fn matching(root: &Path, pattern: &str) -> Vec<PathBuf> {
    let whole = root.join(pattern);
    let name = whole.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    let Some((before, behind)) = name.split_once('*') else {
        return if whole.is_file() { vec![whole] } else { Vec::new() };
    };
    let fits = |path: &PathBuf| {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        name.len() >= before.len() + behind.len() && name.starts_with(before) && name.ends_with(behind)
    };
    let entries = whole.parent().and_then(|folder| std::fs::read_dir(folder).ok());
    let mut paths: Vec<PathBuf> =
        entries.into_iter().flatten().flatten().map(|e| e.path()).filter(fits).collect();
    paths.sort();
    paths
}

/// The path that an address of a file names.
pub(super) fn path_of(uri: &lsp::Uri) -> Option<PathBuf> {
    if uri.scheme()?.as_str() != "file" {
        return None;
    }
    let mut bytes = Vec::new();
    let mut rest = uri.path().as_str().bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
    }
    String::from_utf8(bytes).ok().map(PathBuf::from)
}

/// The address of a file.
fn uri_of(path: &Path) -> Option<lsp::Uri> {
    let mut text = String::from("file://");
    for byte in path.to_str()?.bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => text.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text.parse().ok()
}
