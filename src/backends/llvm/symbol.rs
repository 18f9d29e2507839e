//! What the function of a kernel is called in its object file. The name comes from the kernel's key, so that the same kernel is
//! the same object in every process; it ends in a number that is 0 there and another one each time that the object is linked, as
//! one kernel may be linked more than once. Knows no LLVM.

use crate::backends::cache::Key;
use crate::diag::{Diagnostic, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// Digits of the key in a name.
const DIGITS: usize = 32;

/// The name in the object file.
pub(super) fn of(key: &Key) -> String {
    numbered(key, 0)
}

fn numbered(key: &Key, number: u64) -> String {
    format!("flambeau_{}_{number:016x}", &key.hex()[..DIGITS])
}

/// The object with a name that no other object in this process has, and that name. Both names are equally long, so that nothing
/// else in the object moves. Fails for an object in which the name does not stand.
pub(super) fn instance(mut object: Vec<u8>, key: &Key) -> Result<(Vec<u8>, String)> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let (former, name) = (of(key), numbered(key, NEXT.fetch_add(1, Ordering::Relaxed)));
    let (former, length) = (former.as_bytes(), name.len());
    let mut found = false;
    let mut at = 0;
    while at + length <= object.len() {
        // The first letter first: objects are mostly code.
        if object[at] == former[0] && object[at..at + length] == *former {
            object[at..at + length].copy_from_slice(name.as_bytes());
            found = true;
            at += length;
        } else {
            at += 1;
        }
    }
    match found {
        true => Ok((object, name)),
        false => Err(Diagnostic::internal("machine code without the name of its kernel")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instance_has_a_name_of_its_own() {
        let key = Key::from_bytes([7; 32]);
        let object = format!("..{}..{}.", of(&key), of(&key)).into_bytes();
        let (first, one) = instance(object.clone(), &key).expect("the name is there");
        let (second, two) = instance(object.clone(), &key).expect("the name is there");
        assert_ne!(one, two);
        assert_eq!(first, format!("..{one}..{one}.").into_bytes());
        assert_eq!(second.len(), object.len());
        assert!(instance(object, &Key::from_bytes([8; 32])).is_err());
        assert!(instance(Vec::new(), &key).is_err());
    }
}
