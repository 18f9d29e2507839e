//! `hash`: the numbers that PyTorch's libraries give on 64-bit Linux, so that programs which print them agree.

use crate::diag::{Diagnostic, Result};
use crate::dialects::{Effects, OpDef, host, one};
use crate::ir::{Type, TypeKind};
use crate::value::Value;
use hashbrown::HashMap;

/// Tuples nested deeper than this have no hash.
const MAX_DEPTH: usize = 64;

/// The rows.
pub static OPS: &[OpDef] = &[
    // Reads the world: a tensor's hash is where it lives.
    host("aten::hash.generic(t value) -> int", |a| one(hash(a.value(0)?, 0, &mut Known::new())? as i64))
        .effects(Effects::READS_WORLD)
        .doc("a number that equal values share"),
];

/// Hashes of tuples met, by identity: tuples may share parts.
type Known = HashMap<usize, u64>;

fn hash(value: &Value, depth: usize, known: &mut Known) -> Result<u64> {
    Ok(match value {
        Value::None => 0,
        Value::Bool(x) => u64::from(*x),
        Value::Int(x) => *x as u64,
        Value::Float(x) if *x == 0.0 => 0,
        Value::Float(x) => bytes(&x.to_le_bytes()),
        Value::Str(text) => bytes(&crate::value::bytes::bytes(text)),
        Value::Tensor(tensor) => tensor.id() as u64,
        Value::Device(device) => {
            let kind = if device.is_cpu() { 0 } else { u64::from(device.kind_name() == "cuda") };
            (kind << 16) | device.index().map_or(255, |index| u64::from(index) & 255)
        }
        Value::Enum(member) => hash(&member.value, depth + 1, known)?,
        Value::Tuple(tuple) if depth < MAX_DEPTH => {
            if let Some(seed) = known.get(&tuple.id()) {
                return Ok(*seed);
            }
            let mut seed = 0;
            for item in tuple.items() {
                seed = combine(seed, hash(item, depth + 1, known)?);
            }
            known.insert(tuple.id(), seed);
            seed
        }
        other => return Err(unhashable(&other.ty())),
    })
}

fn unhashable(ty: &Type) -> Diagnostic {
    let name = match ty.kind() {
        TypeKind::List(_) => ty.annotation().to_string(),
        TypeKind::Dict(..) => ty.annotation().to_string(),
        _ => ty.to_string(),
    };
    Diagnostic::runtime(format!("unhashable type: '{name}'"))
}

fn combine(seed: u64, hash: u64) -> u64 {
    let mixed = hash.wrapping_add(0x9e37_79b9).wrapping_add(seed << 6).wrapping_add(seed >> 2);
    seed ^ mixed
}

/// Murmur2 for 64 bits with the seed of the C++ standard library.
fn bytes(data: &[u8]) -> u64 {
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    let shake = |x: u64| x ^ (x >> 47);
    let mut hash = 0xc70f_6907 ^ (data.len() as u64).wrapping_mul(FACTOR);
    let (words, rest) = data.as_chunks::<8>();
    for word in words {
        let word = shake(u64::from_le_bytes(*word).wrapping_mul(FACTOR)).wrapping_mul(FACTOR);
        hash = (hash ^ word).wrapping_mul(FACTOR);
    }
    if !rest.is_empty() {
        let tail = rest.iter().rev().fold(0, |tail, byte| (tail << 8) | u64::from(*byte));
        hash = (hash ^ tail).wrapping_mul(FACTOR);
    }
    shake(shake(hash).wrapping_mul(FACTOR))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_pytorch() {
        let cases = [
            (Value::Int(-5), -5),
            (Value::str("a"), 4993892634952068459),
            (Value::str(""), 6142509188972423790),
            (Value::str("0123456789abcdef0"), 4013166917474506472),
            (Value::Float(1.0), 8386164645967068059),
            (Value::Float(-0.0), 0),
            (Value::tuple(vec![Value::Int(1), Value::Int(2)]), 175247769363),
        ];
        for (value, expected) in cases {
            assert_eq!(
                hash(&value, 0, &mut Known::new()).map(|h| h as i64).ok(),
                Some(expected),
                "{value:?}"
            );
        }
        assert!(hash(&Value::ints([1]), 0, &mut Known::new()).is_err());
        let shared = (0..60).fold(Value::Int(1), |x, _| Value::tuple(vec![x.clone(), x]));
        assert!(hash(&shared, 0, &mut Known::new()).is_ok());
    }
}
