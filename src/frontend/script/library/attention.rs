//! `multi_head_attention_forward` as TorchScript text: attention over several heads, with the projections in front and
//! after. Formula: Vaswani et al., "Attention is all you need", 3.2. It must not know how text is compiled.

/// Functions by name.
pub(super) const TABLE: &[(&str, &str)] = &[("multi_head_attention_forward", FORWARD)];

/// Lengths first: queries are (L, N, E), keys (S, N, E), masks (N, S) and (L, S) or (N * heads, L, S).
const FORWARD: &str = include_str!("functions/multi_head_attention_forward.py");
