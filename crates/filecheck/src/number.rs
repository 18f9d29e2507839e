//! Whole numbers of any size, as far as numeric blocks need them.
//!
//! Sign and magnitude in base 2³². Sizes are bounded by [`MAX_WORDS`]; what would be larger is not a number.
//! Must not know where numbers come from.

use std::cmp::Ordering;

/// Largest magnitude in 32-bit words (some 2400 decimal digits).
const MAX_WORDS: usize = 256;

/// A whole number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    negative: bool,
    /// Least word first, without zero words at the end; zero is empty and never negative.
    words: Vec<u32>,
}

impl From<usize> for Number {
    fn from(value: usize) -> Self {
        let value = value as u64;
        Number::new(false, vec![value as u32, (value >> 32) as u32])
    }
}

impl Number {
    fn new(negative: bool, mut words: Vec<u32>) -> Self {
        while words.last() == Some(&0) {
            words.pop();
        }
        Number { negative: negative && !words.is_empty(), words }
    }

    fn bounded(self) -> Option<Self> {
        (self.words.len() <= MAX_WORDS).then_some(self)
    }

    /// The value of digits in a base from 2 to 36; `None` for an overlong number or a foreign digit.
    pub fn from_digits(digits: &[u8], radix: u32) -> Option<Self> {
        let mut words: Vec<u32> = Vec::new();
        for digit in digits {
            let mut carry = u64::from(char::from(*digit).to_digit(radix)?);
            for word in &mut words {
                carry += u64::from(*word) * u64::from(radix);
                *word = carry as u32;
                carry >>= 32;
            }
            if carry > 0 {
                words.push(carry as u32);
            }
            if words.len() > MAX_WORDS {
                return None;
            }
        }
        Some(Number::new(false, words))
    }

    /// The digits of the magnitude in a base; letters are small.
    pub fn digits(&self, radix: u32) -> String {
        let mut words = self.words.clone();
        let mut digits = Vec::new();
        while !words.is_empty() {
            let mut rest = 0;
            for word in words.iter_mut().rev() {
                let value = rest << 32 | u64::from(*word);
                *word = (value / u64::from(radix)) as u32;
                rest = value % u64::from(radix);
            }
            digits.push(char::from_digit(rest as u32, radix).unwrap_or('0'));
            while words.last() == Some(&0) {
                words.pop();
            }
        }
        if digits.is_empty() { "0".into() } else { digits.iter().rev().collect() }
    }

    /// Whether it is below zero.
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// The number with the other sign.
    pub fn negated(self) -> Self {
        Number::new(!self.negative, self.words)
    }

    /// Sum; `None` when it is too large.
    pub fn add(&self, other: &Number) -> Option<Number> {
        if self.negative == other.negative {
            return Number::new(self.negative, add_words(&self.words, &other.words)).bounded();
        }
        Some(match compare_words(&self.words, &other.words) {
            Ordering::Less => Number::new(other.negative, subtract_words(&other.words, &self.words)),
            _ => Number::new(self.negative, subtract_words(&self.words, &other.words)),
        })
    }

    /// Difference; `None` when it is too large.
    pub fn sub(&self, other: &Number) -> Option<Number> {
        self.add(&other.clone().negated())
    }

    /// Product; `None` when it is too large.
    pub fn mul(&self, other: &Number) -> Option<Number> {
        let mut words = vec![0u32; self.words.len() + other.words.len()];
        for (i, a) in self.words.iter().enumerate() {
            let mut carry = 0u64;
            for (slot, b) in words[i..].iter_mut().zip(other.words.iter().chain([&0])) {
                carry += u64::from(*slot) + u64::from(*a) * u64::from(*b);
                *slot = carry as u32;
                carry >>= 32;
            }
        }
        Number::new(self.negative != other.negative, words).bounded()
    }

    /// Quotient towards zero; `None` when the divisor is zero.
    pub fn div(&self, other: &Number) -> Option<Number> {
        if other.words.is_empty() {
            return None;
        }
        let mut quotient = vec![0u32; self.words.len()];
        let mut rest: Vec<u32> = Vec::new();
        for bit in (0..self.words.len() * 32).rev() {
            rest = add_words(&rest, &rest);
            if self.words[bit / 32] >> (bit % 32) & 1 == 1 {
                rest = add_words(&rest, &[1]);
            }
            if compare_words(&rest, &other.words) != Ordering::Less {
                rest = subtract_words(&rest, &other.words);
                quotient[bit / 32] |= 1 << (bit % 32);
            }
        }
        Some(Number::new(self.negative != other.negative, quotient))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => compare_words(&self.words, &other.words),
            (true, true) => compare_words(&other.words, &self.words),
        }
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn compare_words(a: &[u32], b: &[u32]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.iter().rev().cmp(b.iter().rev()))
}

fn add_words(a: &[u32], b: &[u32]) -> Vec<u32> {
    let mut carry = 0u64;
    let mut sum = Vec::with_capacity(a.len().max(b.len()) + 1);
    for index in 0..a.len().max(b.len()) {
        carry +=
            u64::from(a.get(index).copied().unwrap_or(0)) + u64::from(b.get(index).copied().unwrap_or(0));
        sum.push(carry as u32);
        carry >>= 32;
    }
    if carry > 0 {
        sum.push(carry as u32);
    }
    sum
}

/// `a - b` for `a >= b`, without zero words at the end.
fn subtract_words(a: &[u32], b: &[u32]) -> Vec<u32> {
    let mut borrow = 0i64;
    let mut difference = Vec::with_capacity(a.len());
    for (index, word) in a.iter().enumerate() {
        let value = i64::from(*word) - i64::from(b.get(index).copied().unwrap_or(0)) - borrow;
        borrow = i64::from(value < 0);
        difference.push(value as u32);
    }
    while difference.last() == Some(&0) {
        difference.pop();
    }
    difference
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: i128) -> Number {
        let magnitude = Number::from_digits(value.unsigned_abs().to_string().as_bytes(), 10).unwrap();
        if value < 0 { magnitude.negated() } else { magnitude }
    }

    #[test]
    fn arithmetic_agrees_with_the_machine() {
        let samples = [0, 1, -1, 7, -10, 1 << 31, u32::MAX.into(), -(1i128 << 63), (1 << 64) + 12345];
        for a in samples {
            for b in samples {
                let (x, y) = (number(a), number(b));
                assert_eq!(x.add(&y), Some(number(a + b)), "{a} + {b}");
                assert_eq!(x.sub(&y), Some(number(a - b)), "{a} - {b}");
                assert_eq!(x.mul(&y), a.checked_mul(b).map(number).or(x.mul(&y)), "{a} * {b}");
                assert_eq!(x.div(&y), a.checked_div(b).map(number), "{a} / {b}");
                assert_eq!(x.cmp(&y), a.cmp(&b), "{a} <=> {b}");
            }
        }
    }

    #[test]
    fn digits_come_back() {
        let text = "123456789012345678901234567890";
        assert_eq!(Number::from_digits(text.as_bytes(), 10).unwrap().digits(10), text);
        assert_eq!(Number::from_digits(b"DEADBEEF00", 16).unwrap().digits(16), "deadbeef00");
        assert_eq!(Number::from_digits(b"0", 10).unwrap().digits(10), "0");
        assert_eq!(Number::from_digits(&b"9".repeat(100_000), 10), None);
    }
}
