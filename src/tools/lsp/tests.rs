//! The parts of the server; a whole session stands in tests/lsp.rs.
