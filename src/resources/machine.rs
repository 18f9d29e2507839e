//! What the processor can do, as far as kernels ask for it: which instructions they use is found out when the program runs.

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

#[cfg(test)]
mod tests {
    #[test]
    fn the_architecture_comes_first() {
        assert!(super::features().starts_with(std::env::consts::ARCH));
    }
}
