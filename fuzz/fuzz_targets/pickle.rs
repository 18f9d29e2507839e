//! The pickle machine alone: no input may panic, and what was read must survive writing and reading.
#![no_main]

use flambeau::frontend::archive::{DebugRanges, Limits, pickle};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let limits = Limits::default();
    let Ok(tree) = pickle::parse(data, &limits) else { return };
    for (id, node) in tree.iter() {
        node.children(|child| assert!(child < id, "a child stands behind its parent"));
    }
    if let Ok(ranges) = DebugRanges::decode(&tree, &limits) {
        for (start, place) in ranges.iter() {
            assert!(place.is_none_or(|place| place.text().len() <= place.source().text().len()));
            ranges.lookup(start as usize);
        }
    }
    let written = pickle::write(&tree);
    let again = pickle::parse(&written, &limits).expect("what was written is read");
    assert_eq!(pickle::write(&again), written, "writing is a fixed point");
});
