//! `flambeau lsp`: a language server on standard input and output, for graph text, rules, dialects, TorchScript and
//! check files.
//!
//! `document` holds open files, `index` finds the names in graph text, `problems` asks our own parsers what is
//! wrong, `features` answers what an editor asks, `format` sets indentation, `project` reads `flambeau.toml`. Nothing
//! here parses for itself what another module can: errors are those of the commands.

mod complete;
mod document;
mod features;
mod format;
mod index;
mod problems;
mod project;
mod tokens;

#[cfg(test)]
mod tests;

use crate::diag::{Diagnostic, Result};
use document::{Document, Encoding};
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response};
use lsp_types as lsp;
use project::Project;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Words of `flambeau lsp`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Speak over standard input and output (the only way; editors often pass the word)
    #[arg(long)]
    stdio: bool,
}

/// Runs the server until the client says goodbye.
pub fn run(_: &Options) -> Result<bool> {
    let (connection, threads) = Connection::stdio();
    serve(&connection)?;
    drop(connection);
    threads.join().map_err(|e| Diagnostic::input(format!("standard streams: {e}")))?;
    Ok(true)
}

/// Serves one client.
pub fn serve(connection: &Connection) -> Result<()> {
    let protocol = |e: lsp_server::ProtocolError| Diagnostic::input(format!("language server: {e}"));
    let (id, params) = connection.initialize_start().map_err(protocol)?;
    // A client that tells nothing of itself is served all the same.
    let params: lsp::InitializeParams = serde_json::from_value(params).unwrap_or_default();
    let encoding = Encoding::agreed(&params);
    let info = lsp::ServerInfo { name: "flambeau".into(), version: Some(env!("CARGO_PKG_VERSION").into()) };
    let result = lsp::InitializeResult { capabilities: capabilities(encoding), server_info: Some(info) };
    let result = serde_json::to_value(result).map_err(|e| Diagnostic::internal(e.to_string()))?;
    connection.initialize_finish(id, result).map_err(protocol)?;
    let mut server =
        Server { connection, encoding, project: Project::find(&roots(&params)), documents: BTreeMap::new() };
    server.report_project();
    for message in &connection.receiver {
        match message {
            Message::Request(request) => {
                if connection.handle_shutdown(&request).map_err(protocol)? {
                    return Ok(());
                }
                server.answer(request);
            }
            Message::Notification(notification) => server.notice(notification),
            Message::Response(_) => {}
        }
    }
    Ok(())
}

#[allow(deprecated, reason = "clients that know no workspace folders still send a root")]
fn roots(params: &lsp::InitializeParams) -> Vec<PathBuf> {
    let folders = params.workspace_folders.iter().flatten().map(|folder| &folder.uri);
    let mut roots: Vec<PathBuf> = folders.filter_map(project::path_of).collect();
    roots.extend(params.root_uri.as_ref().and_then(project::path_of));
    roots
}

fn capabilities(encoding: Encoding) -> lsp::ServerCapabilities {
    lsp::ServerCapabilities {
        position_encoding: Some(encoding.name()),
        text_document_sync: Some(lsp::TextDocumentSyncKind::INCREMENTAL.into()),
        hover_provider: Some(true.into()),
        definition_provider: Some(lsp::OneOf::Left(true)),
        references_provider: Some(lsp::OneOf::Left(true)),
        document_highlight_provider: Some(lsp::OneOf::Left(true)),
        document_symbol_provider: Some(lsp::OneOf::Left(true)),
        document_formatting_provider: Some(lsp::OneOf::Left(true)),
        rename_provider: Some(lsp::OneOf::Left(true)),
        semantic_tokens_provider: Some(
            lsp::SemanticTokensOptions {
                legend: tokens::legend(),
                full: Some(lsp::SemanticTokensFullOptions::Bool(true)),
                ..lsp::SemanticTokensOptions::default()
            }
            .into(),
        ),
        completion_provider: Some(lsp::CompletionOptions {
            trigger_characters: Some([":", "%", "[", "-", ".", "?", " "].map(String::from).to_vec()),
            ..lsp::CompletionOptions::default()
        }),
        ..lsp::ServerCapabilities::default()
    }
}

struct Server<'c> {
    connection: &'c Connection,
    encoding: Encoding,
    project: Project,
    documents: BTreeMap<String, Document>,
}

impl Server<'_> {
    /// Answers a request; one of which we know nothing is refused by name.
    fn answer(&mut self, request: Request) {
        let response = match request.method.as_str() {
            "textDocument/hover" => self.with(request, |s, p: lsp::HoverParams| {
                let at = p.text_document_position_params;
                features::hover(s.document(&at.text_document.uri)?, &s.project, at.position)
            }),
            "textDocument/definition" => self.with(request, |s, p: lsp::GotoDefinitionParams| {
                let at = p.text_document_position_params;
                features::definition(s.document(&at.text_document.uri)?, &s.project, at.position)
            }),
            "textDocument/references" => self.with(request, |s, p: lsp::ReferenceParams| {
                let at = p.text_document_position;
                let document = s.document(&at.text_document.uri)?;
                features::references(document, at.position, p.context.include_declaration)
            }),
            "textDocument/documentHighlight" => self.with(request, |s, p: lsp::DocumentHighlightParams| {
                let at = p.text_document_position_params;
                features::highlights(s.document(&at.text_document.uri)?, at.position)
            }),
            "textDocument/rename" => self.rename(request),
            "textDocument/completion" => self.with(request, |s, p: lsp::CompletionParams| {
                let at = p.text_document_position;
                Some(complete::complete(s.document(&at.text_document.uri)?, &s.project, at.position))
            }),
            "textDocument/documentSymbol" => self.with(request, |s, p: lsp::DocumentSymbolParams| {
                Some(features::symbols(s.document(&p.text_document.uri)?))
            }),
            "textDocument/semanticTokens/full" => self.with(request, |s, p: lsp::SemanticTokensParams| {
                tokens::tokens(s.document(&p.text_document.uri)?, &s.project)
            }),
            "textDocument/formatting" => self.with(request, |s, p: lsp::DocumentFormattingParams| {
                format::edits(s.document(&p.text_document.uri)?)
            }),
            method => {
                let message = format!("the method {method} is not supported");
                Response::new_err(request.id, ErrorCode::MethodNotFound as i32, message)
            }
        };
        self.send(Message::Response(response));
    }

    fn with<P: DeserializeOwned, R: Serialize>(
        &self,
        request: Request,
        work: impl FnOnce(&Self, P) -> Option<R>,
    ) -> Response {
        match serde_json::from_value(request.params) {
            Ok(params) => Response::new_ok(request.id, work(self, params)),
            Err(error) => Response::new_err(request.id, ErrorCode::InvalidParams as i32, error.to_string()),
        }
    }

    /// A rename can be refused, with the reason.
    fn rename(&self, request: Request) -> Response {
        let params: lsp::RenameParams = match serde_json::from_value(request.params) {
            Ok(params) => params,
            Err(error) => {
                return Response::new_err(request.id, ErrorCode::InvalidParams as i32, error.to_string());
            }
        };
        let at = params.text_document_position;
        let edits = self
            .document(&at.text_document.uri)
            .ok_or_else(|| "the file is not open".to_string())
            .and_then(|document| features::rename(document, at.position, &params.new_name));
        match edits {
            Ok(edit) => Response::new_ok(request.id, edit),
            Err(message) => Response::new_err(request.id, ErrorCode::RequestFailed as i32, message),
        }
    }

    fn document(&self, uri: &lsp::Uri) -> Option<&Document> {
        self.documents.get(uri.as_str())
    }

    /// Takes note of what changed.
    fn notice(&mut self, notification: Notification) {
        match notification.method.as_str() {
            "textDocument/didOpen" => {
                if let Some(p) = read::<lsp::DidOpenTextDocumentParams>(notification) {
                    let d = p.text_document;
                    let document = Document::new(d.uri, &d.language_id, d.text, d.version, self.encoding);
                    self.take(document);
                }
            }
            "textDocument/didChange" => {
                if let Some(p) = read::<lsp::DidChangeTextDocumentParams>(notification)
                    && let Some(mut document) = self.documents.remove(p.text_document.uri.as_str())
                {
                    document.change(p.content_changes, p.text_document.version);
                    self.take(document);
                }
            }
            "textDocument/didClose" => {
                if let Some(p) = read::<lsp::DidCloseTextDocumentParams>(notification) {
                    self.documents.remove(p.text_document.uri.as_str());
                    self.publish(p.text_document.uri, Vec::new(), None);
                }
            }
            // A dialect or the project file may have changed: all that is open is looked at again.
            "textDocument/didSave" | "workspace/didChangeWatchedFiles" => {
                if self.project.reload() {
                    self.report_project();
                }
                let all = std::mem::take(&mut self.documents);
                for mut document in all.into_values() {
                    document.changed = false;
                    self.take(document);
                }
            }
            _ => {}
        }
    }

    /// Keeps a document and tells what is wrong with it.
    fn take(&mut self, document: Document) {
        let found = problems::problems(&document, &self.project);
        self.publish(document.uri.clone(), found, Some(document.version));
        self.documents.insert(document.uri.as_str().to_string(), document);
    }

    /// Tells what is wrong with the project file and the dialects it names.
    fn report_project(&self) {
        for (uri, found) in self.project.problems(self.encoding) {
            self.publish(uri, found, None);
        }
    }

    fn publish(&self, uri: lsp::Uri, diagnostics: Vec<lsp::Diagnostic>, version: Option<i32>) {
        let params = lsp::PublishDiagnosticsParams { uri, diagnostics, version };
        let method = "textDocument/publishDiagnostics".to_string();
        self.send(Message::Notification(Notification::new(method, params)));
    }

    fn send(&self, message: Message) {
        // A client that went away is noticed by the loop.
        let _ = self.connection.sender.send(message);
    }
}

/// The parameters of a notification; a malformed one has no answer and is passed over.
fn read<P: DeserializeOwned>(notification: Notification) -> Option<P> {
    serde_json::from_value(notification.params).ok()
}
