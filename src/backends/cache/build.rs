//! Which build of Flambeau this is. As far as kernels are concerned: its version, and a fingerprint of the sources that decide
//! what machine code a kernel becomes. As far as plans are: a fingerprint of all sources, rules and tables, which `build.rs` makes.
//! Taken when Flambeau is compiled, so that nothing of an older build is ever used by a newer one of the same version.

use std::sync::LazyLock;

/// Sources whose change may change machine code: the code generator, the closed form that it reads, and the primitives of
/// that. A test asks whether a file of the generator is missing.
const SOURCES: &[(&str, &[u8])] = &[
    ("llvm/call.rs", include_bytes!("../llvm/call.rs")),
    ("llvm/control.rs", include_bytes!("../llvm/control.rs")),
    ("llvm/emit.rs", include_bytes!("../llvm/emit.rs")),
    ("llvm/ending.rs", include_bytes!("../llvm/ending.rs")),
    ("llvm/exact.rs", include_bytes!("../llvm/exact.rs")),
    ("llvm/ir.rs", include_bytes!("../llvm/ir.rs")),
    ("llvm/machine.rs", include_bytes!("../llvm/machine.rs")),
    ("llvm/math.rs", include_bytes!("../llvm/math.rs")),
    ("llvm/mod.rs", include_bytes!("../llvm/mod.rs")),
    ("llvm/orc.rs", include_bytes!("../llvm/orc.rs")),
    ("llvm/power.rs", include_bytes!("../llvm/power.rs")),
    ("llvm/scalar.rs", include_bytes!("../llvm/scalar.rs")),
    ("llvm/symbol.rs", include_bytes!("../llvm/symbol.rs")),
    ("llvm/trig.rs", include_bytes!("../llvm/trig.rs")),
    ("llvm/generate.rs", include_bytes!("../llvm/generate.rs")),
    ("llvm/shared.rs", include_bytes!("../llvm/shared.rs")),
    ("llvm/values.rs", include_bytes!("../llvm/values.rs")),
    ("llvm/warp.rs", include_bytes!("../llvm/warp.rs")),
    ("cache/key.rs", include_bytes!("key.rs")),
    ("loops/elem.rs", include_bytes!("../../dialects/loops/elem.rs")),
    ("loops/kernel.rs", include_bytes!("../../dialects/loops/kernel.rs")),
    ("loops/names.rs", include_bytes!("../../dialects/loops/names.rs")),
    ("dialects/scalar.rs", include_bytes!("../../dialects/scalar.rs")),
    // How many steps loops take at once is a constant of their code.
    ("resources/budget.rs", include_bytes!("../../resources/budget.rs")),
    ("tensor/scalar.rs", include_bytes!("../../tensor/scalar.rs")),
];

/// Only the number stays in the program.
const FINGERPRINT: u128 = fingerprint(SOURCES);

/// FNV-1a over all sources, each ended by a byte that no text has. It distinguishes versions; it does not prevent forgery, for
/// who can write to the cache needs no forgery.
const fn fingerprint(sources: &[(&str, &[u8])]) -> u128 {
    let mut hash = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
    let mut file = 0;
    while file < sources.len() {
        let (_, bytes) = sources[file];
        let mut at = 0;
        while at <= bytes.len() {
            let byte = if at < bytes.len() { bytes[at] } else { 0xff };
            hash = (hash ^ byte as u128).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
            at += 1;
        }
        file += 1;
    }
    hash
}

/// This build.
pub(super) fn identity() -> &'static str {
    static IDENTITY: LazyLock<String> =
        LazyLock::new(|| format!("flambeau {} {FINGERPRINT:032x}", env!("CARGO_PKG_VERSION")));
    &IDENTITY
}

/// This build with all that passes are made of.
pub(super) fn sources() -> &'static str {
    concat!("flambeau ", env!("CARGO_PKG_VERSION"), " ", env!("FINGERPRINT_OF_SOURCES"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_fingerprint_covers_the_code_generator() {
        let folder = format!("{}/src/backends/llvm", env!("CARGO_MANIFEST_DIR"));
        let files = std::fs::read_dir(folder)
            .expect("the sources")
            .map(|file| format!("llvm/{}", file.expect("an entry").file_name().to_string_lossy()));
        let listed = SOURCES.iter().map(|(name, _)| name.to_string());
        let listed: BTreeSet<String> = listed.filter(|name| name.starts_with("llvm/")).collect();
        let files = files.filter(|name| name != "llvm/tests.rs");
        assert_eq!(files.collect::<BTreeSet<String>>(), listed);
    }

    /// What the generator uses of other layers is listed too, or decides no machine code.
    #[test]
    fn the_fingerprint_covers_what_the_generator_uses() {
        let known = [
            "crate::backends::",
            "crate::diag::",
            "crate::dialects::loops::{",
            "crate::dialects::loops::Kernel;",
            "crate::dialects::scalar::",
            "crate::lowering::Target;",
            "crate::resources::budget",
            "crate::resources::pool;",
            "crate::resources::{budget, pool};",
            "crate::tensor::Scalar;",
        ];
        for (name, bytes) in SOURCES.iter().filter(|(name, _)| name.starts_with("llvm/")) {
            let text = std::str::from_utf8(bytes).expect("text");
            for used in text.lines().filter_map(|line| line.strip_prefix("use crate::")) {
                let known =
                    known.iter().any(|k| k.strip_prefix("crate::").is_some_and(|k| used.starts_with(k)));
                assert!(known, "{name} uses {used}: does it belong to SOURCES?");
            }
        }
    }

    #[test]
    fn a_changed_byte_and_a_moved_border_change_the_fingerprint() {
        let of = |files: &[&[u8]]| fingerprint(&files.iter().map(|f| ("", *f)).collect::<Vec<_>>());
        assert_ne!(of(&[b"ab"]), of(&[b"ac"]));
        assert_ne!(of(&[b"ab", b"c"]), of(&[b"a", b"bc"]));
        assert_ne!(of(&[b"ab"]), of(&[b"ab", b""]));
    }
}
