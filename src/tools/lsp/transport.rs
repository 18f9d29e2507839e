//! Messages over a byte stream, framed as the protocol has it, with bounds: no header and no message is believed to be
//! as long as it says before it is known to be short enough. Nothing here knows what a message means.

use crate::diag::{Diagnostic, Result};
use lsp_server::{Connection, Message};
use std::io::{BufRead, BufReader, Read, Write};
use std::thread::JoinHandle;

/// Most bytes of one message; a file of 16 MiB in JSON's escapes fits.
const MOST_MESSAGE: usize = 64 << 20;
/// Most bytes of the header lines of one message.
const MOST_HEADER: u64 = 4096;

/// The threads that read and write for a connection.
pub(super) struct Threads {
    reader: JoinHandle<Result<()>>,
    writer: JoinHandle<()>,
}

impl Threads {
    /// Waits until all that was sent is written. The reader has ended, or the process is about to.
    pub(super) fn join(self) -> Result<()> {
        // A writer that panicked has nothing more to write.
        let _ = self.writer.join();
        match self.reader.is_finished() {
            true => self.reader.join().unwrap_or(Ok(())),
            false => Ok(()),
        }
    }
}

/// A connection over two streams. What cannot be a message ends it.
pub(super) fn connect(
    input: impl Read + Send + 'static,
    mut output: impl Write + Send + 'static,
) -> (Connection, Threads) {
    let (server, streams) = Connection::memory();
    let Connection { sender, receiver } = streams;
    let reader = std::thread::spawn(move || {
        let mut input = BufReader::new(input);
        while let Some(message) = read(&mut input)? {
            let is_exit = matches!(&message, Message::Notification(n) if n.method == "exit");
            // The server may have ended first.
            if sender.send(message).is_err() || is_exit {
                break;
            }
        }
        Ok(())
    });
    let writer = std::thread::spawn(move || {
        for message in &receiver {
            // The client went away; the loop that serves it sees the end of its input.
            if message.write(&mut output).is_err() {
                break;
            }
        }
    });
    (server, Threads { reader, writer })
}

/// The next message; None at the end of the stream.
fn read(input: &mut impl BufRead) -> Result<Option<Message>> {
    let Some(length) = header(input)? else { return Ok(None) };
    if length > MOST_MESSAGE {
        return Err(bad(&format!("a message of {length} bytes; the limit is {MOST_MESSAGE}")));
    }
    let mut body = Vec::new();
    let read = input.take(length as u64).read_to_end(&mut body).map_err(|e| bad(&e.to_string()))?;
    if read < length {
        return Err(bad("the stream ends within a message"));
    }
    match serde_json::from_slice(&body) {
        Ok(message) => Ok(Some(message)),
        Err(error) => Err(bad(&format!("a message that is not JSON-RPC: {error}"))),
    }
}

/// The length that the header lines of a message state; None at the end of the stream.
fn header(input: &mut impl BufRead) -> Result<Option<usize>> {
    let mut lines = input.take(MOST_HEADER);
    let mut length = None;
    loop {
        let mut line = String::new();
        let read = lines.read_line(&mut line).map_err(|e| bad(&e.to_string()))?;
        if read == 0 && lines.limit() > 0 && length.is_none() {
            return Ok(None);
        }
        if !line.ends_with('\n') {
            return Err(bad("header lines without an end"));
        }
        let line = line.trim_end();
        if line.is_empty() {
            return length.map(Some).ok_or_else(|| bad("a message without Content-Length"));
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("Content-Length")
        {
            let value = value.trim().parse().map_err(|_| bad("a Content-Length that is not a number"))?;
            length = Some(value);
        }
    }
}

fn bad(what: &str) -> Diagnostic {
    Diagnostic::input(format!("language server: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(text: &[u8]) -> std::result::Result<Option<Message>, String> {
        read(&mut BufReader::new(text)).map_err(|e| e.message().to_string())
    }

    #[test]
    fn messages_are_read() {
        let text =
            b"content-type: x\r\nContent-Length: 38\r\n\r\n{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\": 1}";
        assert!(matches!(outcome(text), Ok(Some(Message::Request(r))) if r.method == "m"));
        assert!(matches!(outcome(b""), Ok(None)));
    }

    #[test]
    fn lengths_are_not_believed() {
        let wrong = |text: &[u8], part: &str| {
            let error = outcome(text).expect_err("refused");
            assert!(error.contains(part), "{error}");
        };
        wrong(b"Content-Length: 99999999999999\r\n\r\n{}", "the limit is");
        wrong(b"Content-Length: 60000000\r\n\r\n{}", "ends within a message");
        wrong(b"Content-Length: -1\r\n\r\n{}", "not a number");
        wrong(b"\r\n{}", "without Content-Length");
        wrong(&[b'a'; 10_000], "without an end");
        wrong(b"Content-Length: 2\r\n\r\n[]", "not JSON-RPC");
        let deep = [b"Content-Length: 100000\r\n\r\n".to_vec(), vec![b'['; 100_000]].concat();
        wrong(&deep, "not JSON-RPC");
    }
}
