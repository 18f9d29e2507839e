//! Replays the fuzzers' corpora (`fuzz/corpus`): nothing there may panic, and every pickle that is read
//! must survive writing.

use std::path::PathBuf;

use super::hostile_zip::read_all;
use crate::frontend::archive::{DebugRanges, Limits, pickle};

fn inputs(target: &str) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files = std::fs::read_dir(folder).expect("the corpus is committed");
    files.map(|file| std::fs::read(file.expect("an entry").path()).expect("a file")).collect()
}

#[test]
fn pickles() {
    let limits = Limits::default();
    let mut read = 0;
    for input in inputs("pickle") {
        let Ok(tree) = pickle::parse(&input, &limits) else { continue };
        read += 1;
        let _ = DebugRanges::decode(&tree, &limits);
        let written = pickle::write(&tree);
        let again = pickle::parse(&written, &limits).expect("what was written is read");
        assert_eq!(pickle::write(&again), written);
    }
    assert!(read > 20, "only {read} inputs are pickles");
}

#[test]
fn archives() {
    let whole = inputs("archive").into_iter().filter(|input| input.first().is_some_and(|mode| mode % 2 == 0));
    let read = whole.filter(|input| read_all(&input[1..]).is_ok()).count();
    assert!(read >= 8, "only {read} inputs are archives");
}
