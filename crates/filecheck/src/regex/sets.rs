//! Sets of bytes.

/// A set of bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByteSet([u64; 4]);

impl ByteSet {
    /// Every byte.
    pub fn all() -> Self {
        ByteSet([u64::MAX; 4])
    }

    /// Adds a byte.
    pub fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    /// Takes a byte away.
    pub fn remove(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] &= !(1 << (byte & 63));
    }

    /// Whether the byte is in it.
    pub fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 != 0
    }

    pub fn invert(&mut self) {
        self.0.iter_mut().for_each(|word| *word = !*word);
    }

    /// Adds all members of another set.
    pub fn merge(&mut self, other: &ByteSet) {
        self.0.iter_mut().zip(other.0).for_each(|(word, more)| *word |= more);
    }
}
