//! `flambeau lsp`: a language server on standard input and output, for graph text, rules, dialects, TorchScript and
//! check files.
//!
//! `transport` frames messages, `work` has jobs done beside the thread that talks to the client, `document` holds open
//! files, `index` finds the names in graph text, `problems` asks our own parsers what is wrong, `features` answers what
//! an editor asks, `format` sets indentation, `project` reads `flambeau.toml`. Nothing here parses for itself what
//! another module can: errors are those of the commands.

mod complete;
mod diagnostic;
mod document;
mod features;
mod format;
mod index;
mod problems;
mod project;
mod tokens;
mod transport;
mod work;

#[cfg(test)]
mod tests;

use crate::diag::{Diagnostic, Result};
use crate::toolkit::Toolkit;
use document::{Document, Encoding};
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response};
use lsp_types as lsp;
use parking_lot::Mutex;
use project::Project;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use work::{Answer, Failure, Work};

/// Options of `flambeau lsp`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Communicate over standard input and output (the only transport; editors often pass this option)
    #[arg(long)]
    stdio: bool,
}

/// Runs the server until the client says goodbye.
pub fn run(_: &Options, toolkit: &Toolkit) -> Result<bool> {
    let (connection, threads) = transport::connect(std::io::stdin(), std::io::stdout());
    let served = serve(&connection, toolkit);
    drop(connection);
    // What ended the input explains better why the server could not go on.
    threads.join().and(served)?;
    Ok(true)
}

/// How often late work is looked for.
const TICK: Duration = Duration::from_millis(200);

/// Serves one client, over the ops of a toolkit.
pub fn serve(connection: &Connection, toolkit: &Toolkit) -> Result<()> {
    let protocol = |e: lsp_server::ProtocolError| Diagnostic::input(format!("language server: {e}"));
    let (id, params) = connection.initialize_start().map_err(protocol)?;
    // A client that says nothing of itself is served all the same.
    let params: lsp::InitializeParams = serde_json::from_value(params).unwrap_or_default();
    let encoding = Encoding::agreed(&params);
    let info =
        lsp::ServerInfo { name: toolkit.name().into(), version: Some(env!("CARGO_PKG_VERSION").into()) };
    let result = lsp::InitializeResult { capabilities: capabilities(encoding), server_info: Some(info) };
    let result = serde_json::to_value(result).map_err(|e| Diagnostic::internal(e.to_string()))?;
    connection.initialize_finish(id, result).map_err(protocol)?;
    let outbox = Outbox { sender: connection.sender.clone(), latest: Mutex::default() };
    let open =
        Open { project: Arc::new(Project::find(&roots(&params), toolkit)), documents: BTreeMap::new() };
    let mut server = Server { outbox: Arc::new(outbox), encoding, open, work: Work::new(work::MOST_TIME) };
    server.report_project();
    loop {
        let message = match connection.receiver.recv_timeout(TICK) {
            Ok(message) => message,
            Err(error) if error.is_timeout() => {
                server.work.tick();
                continue;
            }
            Err(_) => return Ok(()),
        };
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
        server.work.tick();
    }
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

/// What is open: a snapshot that jobs take along.
#[derive(Clone)]
struct Open {
    project: Arc<Project>,
    documents: BTreeMap<String, Arc<Document>>,
}

impl Open {
    fn document(&self, uri: &lsp::Uri) -> Option<&Document> {
        self.documents.get(uri.as_str()).map(|document| &**document)
    }
}

/// Where messages to the client go.
struct Outbox {
    sender: crossbeam_channel::Sender<Message>,
    /// The state of each open file that problems may be published of.
    latest: Mutex<BTreeMap<String, u64>>,
}

impl Outbox {
    fn send(&self, message: Message) {
        // A client that went away is noticed by the loop.
        let _ = self.sender.send(message);
    }

    fn publish(&self, uri: lsp::Uri, diagnostics: Vec<lsp::Diagnostic>, version: Option<i32>) {
        let params = lsp::PublishDiagnosticsParams { uri, diagnostics, version };
        let method = "textDocument/publishDiagnostics".to_string();
        self.send(Message::Notification(Notification::new(method, params)));
    }

    /// Publishes the problems of a file unless it has changed since they were looked for.
    fn publish_state(&self, document: &Document, state: u64, diagnostics: Vec<lsp::Diagnostic>) {
        let latest = self.latest.lock();
        if latest.get(document.uri.as_str()) == Some(&state) {
            self.publish(document.uri.clone(), diagnostics, Some(document.version));
        }
    }
}

struct Server {
    outbox: Arc<Outbox>,
    encoding: Encoding,
    open: Open,
    work: Work,
}

impl Server {
    /// Answers a request; one of which we know nothing is refused by name.
    fn answer(&self, request: Request) {
        match request.method.as_str() {
            "textDocument/hover" => self.with(request, |open, p: lsp::HoverParams| {
                let at = p.text_document_position_params;
                Ok(open
                    .document(&at.text_document.uri)
                    .and_then(|document| features::hover(document, &open.project, at.position)))
            }),
            "textDocument/definition" => self.with(request, |open, p: lsp::GotoDefinitionParams| {
                let at = p.text_document_position_params;
                Ok(open
                    .document(&at.text_document.uri)
                    .and_then(|document| features::definition(document, &open.project, at.position)))
            }),
            "textDocument/references" => self.with(request, |open, p: lsp::ReferenceParams| {
                let at = p.text_document_position;
                let declared = p.context.include_declaration;
                Ok(open
                    .document(&at.text_document.uri)
                    .and_then(|document| features::references(document, at.position, declared)))
            }),
            "textDocument/documentHighlight" => {
                self.with(request, |open, p: lsp::DocumentHighlightParams| {
                    let at = p.text_document_position_params;
                    Ok(open
                        .document(&at.text_document.uri)
                        .and_then(|document| features::highlights(document, at.position)))
                })
            }
            "textDocument/rename" => self.with(request, |open, p: lsp::RenameParams| {
                let at = p.text_document_position;
                let document =
                    open.document(&at.text_document.uri).ok_or_else(|| "the file is not open".to_string())?;
                features::rename(document, at.position, &p.new_name)
            }),
            "textDocument/completion" => self.with(request, |open, p: lsp::CompletionParams| {
                let at = p.text_document_position;
                let document = open.document(&at.text_document.uri);
                Ok(document.map(|document| complete::complete(document, &open.project, at.position)))
            }),
            "textDocument/documentSymbol" => self.with(request, |open, p: lsp::DocumentSymbolParams| {
                Ok(open.document(&p.text_document.uri).map(features::symbols))
            }),
            "textDocument/semanticTokens/full" => self.with(request, |open, p: lsp::SemanticTokensParams| {
                let document = open.document(&p.text_document.uri);
                Ok(document.and_then(|document| tokens::tokens(document, &open.project)))
            }),
            "textDocument/formatting" => self.with(request, |open, p: lsp::DocumentFormattingParams| {
                Ok(open.document(&p.text_document.uri).and_then(format::edits))
            }),
            method => {
                let message = format!("the method {method} is not supported");
                let code = ErrorCode::MethodNotFound as i32;
                self.outbox.send(Message::Response(Response::new_err(request.id, code, message)));
            }
        }
    }

    /// Has a request answered beside this thread, by what is open now. A text instead of a result is a refusal.
    fn with<P: DeserializeOwned + Send + 'static, R: Serialize + 'static>(
        &self,
        request: Request,
        find: impl FnOnce(&Open, P) -> Result<R, String> + Send + 'static,
    ) {
        let Request { id, params, .. } = request;
        let params = match serde_json::from_value(params) {
            Ok(params) => params,
            Err(error) => {
                let response = Response::new_err(id, ErrorCode::InvalidParams as i32, error.to_string());
                self.outbox.send(Message::Response(response));
                return;
            }
        };
        let (open, outbox, failed) = (self.open.clone(), Arc::clone(&self.outbox), Arc::clone(&self.outbox));
        let late_id = id.clone();
        let run = move || -> Answer {
            let response = match find(&open, params) {
                Ok(result) => Response::new_ok(id, result),
                Err(refusal) => Response::new_err(id, ErrorCode::RequestFailed as i32, refusal),
            };
            Box::new(move || outbox.send(Message::Response(response)))
        };
        let fail = move |failure: Failure| {
            let code = ErrorCode::RequestFailed as i32;
            failed.send(Message::Response(Response::new_err(late_id, code, failure.text())));
        };
        self.work.add(None, run, fail);
    }

    /// Takes note of what changed.
    fn notice(&mut self, notification: Notification) {
        match notification.method.as_str() {
            "textDocument/didOpen" => {
                if let Some(p) = read::<lsp::DidOpenTextDocumentParams>(notification) {
                    let d = p.text_document;
                    self.take(Document::new(d.uri, &d.language_id, d.text, d.version, self.encoding));
                }
            }
            "textDocument/didChange" => {
                if let Some(p) = read::<lsp::DidChangeTextDocumentParams>(notification)
                    && let Some(document) = self.open.documents.remove(p.text_document.uri.as_str())
                {
                    self.take(document.changed_by(p.content_changes, p.text_document.version));
                }
            }
            "textDocument/didClose" => {
                if let Some(p) = read::<lsp::DidCloseTextDocumentParams>(notification) {
                    self.open.documents.remove(p.text_document.uri.as_str());
                    self.outbox.latest.lock().remove(p.text_document.uri.as_str());
                    self.outbox.publish(p.text_document.uri, Vec::new(), None);
                }
            }
            // A dialect or the project file may have changed: all that is open is revisited.
            "textDocument/didSave" | "workspace/didChangeWatchedFiles" => {
                if let Some(project) = self.open.project.reloaded() {
                    self.open.project = Arc::new(project);
                    self.report_project();
                }
                let all = std::mem::take(&mut self.open.documents);
                for document in all.into_values() {
                    self.take(document.as_saved());
                }
            }
            _ => {}
        }
    }

    /// Keeps a document and has what is wrong with it published.
    fn take(&mut self, document: Document) {
        let document = Arc::new(document);
        let key = document.uri.as_str().to_string();
        self.open.documents.insert(key.clone(), Arc::clone(&document));
        let state = {
            let mut latest = self.outbox.latest.lock();
            let state = latest.get(&key).map_or(0, |state| state + 1);
            latest.insert(key.clone(), state);
            state
        };
        let (outbox, failed) = (Arc::clone(&self.outbox), Arc::clone(&self.outbox));
        let (project, late) = (Arc::clone(&self.open.project), Arc::clone(&document));
        let run = move || -> Answer {
            let found = problems::problems(&document, &project);
            Box::new(move || outbox.publish_state(&document, state, found))
        };
        let fail = move |failure: Failure| {
            let problem = problems::whole_file(format!("the file was not analyzed: {}", failure.text()));
            failed.publish_state(&late, state, vec![problem]);
        };
        self.work.add(Some(key), run, fail);
    }

    /// Publishes what is wrong with the project file and the dialects it names.
    fn report_project(&self) {
        for (uri, found) in self.open.project.problems(self.encoding) {
            self.outbox.publish(uri, found, None);
        }
    }
}

/// The parameters of a notification; a malformed one has no answer and is passed over.
fn read<P: DeserializeOwned>(notification: Notification) -> Option<P> {
    serde_json::from_value(notification.params).ok()
}
