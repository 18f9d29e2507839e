//! What the machine has: instructions of the processor, as far as kernels ask for them (which they use is found out when the
//! program runs), and memory.

use crate::diag::files;
use std::path::Path;
use std::sync::OnceLock;

/// The architecture and those of its vector instructions that some kernel uses where they are there, in one line.
pub fn features() -> String {
    let mut all = vec![std::env::consts::ARCH];
    #[cfg(target_arch = "x86_64")]
    {
        macro_rules! ask {
            ($($feature:tt),*) => {
                $(if std::is_x86_feature_detected!($feature) {
                    all.push($feature);
                })*
            };
        }
        ask!("avx2", "fma", "f16c", "avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512vnni", "avxvnni");
    }
    all.join(" ")
}

/// Bytes of memory and swap, as Linux says; [`usize::MAX`] elsewhere, and where `/proc/meminfo` does not
/// say it: an allocation that is too large fails by itself then, or not at all. It is read once.
pub fn memory() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let about = if cfg!(target_os = "linux") {
            files::read_text(Path::new("/proc/meminfo"))
        } else {
            return usize::MAX;
        };
        about.ok().as_deref().and_then(in_meminfo).unwrap_or(usize::MAX)
    })
}

/// The bytes of `MemTotal` and `SwapTotal`, which are given in KiB. None where a line of them is missing or no number.
fn in_meminfo(text: &str) -> Option<usize> {
    let bytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)
    };
    bytes("MemTotal")?.checked_add(bytes("SwapTotal")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_kib() {
        let text = "MemTotal:       2 kB\nMemFree:        1 kB\nSwapTotal:      3 kB\n";
        assert_eq!(in_meminfo(text), Some(5 * 1024));
        assert_eq!(in_meminfo("MemTotal: 2 kB\n"), None);
        assert_eq!(in_meminfo("MemTotal: many kB\nSwapTotal: 3 kB\n"), None);
        assert!(memory() > 1 << 26, "what runs this test has more than 64 MiB");
    }

    #[test]
    fn the_architecture_comes_first() {
        assert!(super::features().starts_with(std::env::consts::ARCH));
    }
}
