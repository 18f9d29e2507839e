//! Floats of 8 bits: how their bytes read as numbers and how numbers round to them.

use bytemuck::{Pod, Zeroable};

/// What is special to one of the formats.
struct Format {
    /// Bits of the fraction.
    fraction: i32,
    /// What is added to exponents.
    bias: i32,
    /// The byte, without sign, of the largest number.
    largest: u8,
    /// The byte, without sign, of what is larger: infinity, NaN, or the largest number.
    overflow: u8,
    /// The byte of NaN, without sign.
    nan: u8,
    /// Whether 0x80 is the only NaN, so that there is no -0.
    one_nan: bool,
}

impl Format {
    /// The nearest number, ties to even.
    fn encode(&self, x: f32) -> u8 {
        let sign = if self.one_nan || x.is_sign_positive() { 0 } else { 0x80 };
        if x.is_nan() {
            return self.nan | sign;
        }
        let size = f64::from(x).abs();
        if size == 0.0 {
            return sign;
        }
        // Every float32 is a normal float64.
        let exponent = ((size.to_bits() >> 52) as i32 - 1023).max(1 - self.bias);
        let steps = (size * 2f64.powi(self.fraction - exponent)).round_ties_even();
        if steps >= 1024.0 {
            return self.overflow | sign;
        }
        // A fraction that rounds up to the next power of two carries into the exponent.
        let code = ((exponent + self.bias - 1) << self.fraction) + steps as i32;
        let code = if code > i32::from(self.largest) { self.overflow } else { code as u8 };
        if self.one_nan && code != 0 && x < 0.0 { code | 0x80 } else { code | sign }
    }

    fn decode(&self, byte: u8) -> f32 {
        let code = i32::from(byte & 0x7f);
        if self.one_nan && byte == 0x80 {
            return f32::NAN;
        }
        let size = if code > i32::from(self.largest) {
            if code == i32::from(self.overflow) { f32::INFINITY } else { f32::NAN }
        } else {
            let (exponent, rest) = (code >> self.fraction, code & ((1 << self.fraction) - 1));
            let whole = if exponent == 0 { 0 } else { 1 << self.fraction };
            (whole + rest) as f32 * 2f32.powi(exponent.max(1) - self.bias - self.fraction)
        };
        if byte & 0x80 == 0 { size } else { -size }
    }
}

macro_rules! formats {
    ($($(#[$doc:meta])* $name:ident = $format:expr;)*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
        #[repr(transparent)]
        pub struct $name(u8);

        impl $name {
            /// The nearest number of the format, ties to even.
            pub fn from_f32(x: f32) -> $name {
                $name($format.encode(x))
            }

            /// The number.
            pub fn to_f32(self) -> f32 {
                $format.decode(self.0)
            }
        })*
    };
}

formats! {
    /// float8_e4m3fn: no infinities; what is too large becomes the largest number.
    E4m3fn = Format { fraction: 3, bias: 7, largest: 0x7e, overflow: 0x7e, nan: 0x7f, one_nan: false };
    /// float8_e5m2: as IEEE 754 would have it.
    E5m2 = Format { fraction: 2, bias: 15, largest: 0x7b, overflow: 0x7c, nan: 0x7f, one_nan: false };
    /// float8_e4m3fnuz: one NaN, no infinities, no -0.
    E4m3fnuz = Format { fraction: 3, bias: 8, largest: 0x7f, overflow: 0x80, nan: 0x80, one_nan: true };
    /// float8_e5m2fnuz: one NaN, no infinities, no -0.
    E5m2fnuz = Format { fraction: 2, bias: 16, largest: 0x7f, overflow: 0x80, nan: 0x80, one_nan: true };
}

/// float8_e8m0fnu: a power of two; 255 is NaN. There is no sign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(transparent)]
pub struct E8m0fnu(u8);

impl E8m0fnu {
    /// The exponent of a number's size, rounded to nearest.
    pub fn from_f32(x: f32) -> E8m0fnu {
        let bits = x.to_bits() & 0x7fff_ffff;
        let (exponent, rest) = ((bits >> 23) as u8, bits & 0x7f_ffff);
        if exponent == 255 {
            return E8m0fnu(255);
        }
        // Half way the even exponent's rule does not hold: only the smallest stays.
        let up = rest > 0x40_0000 || rest == 0x40_0000 && exponent > 0;
        E8m0fnu(exponent + u8::from(up))
    }

    /// The number.
    pub fn to_f32(self) -> f32 {
        match self.0 {
            0 => f32::from_bits(0x40_0000),
            255 => f32::NAN,
            exponent => f32::from_bits(u32::from(exponent) << 23),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from PyTorch.
    #[test]
    fn numbers_round_as_in_pytorch() {
        let e4m3 = |x| E4m3fn::from_f32(x).to_f32();
        assert_eq!([0.1, 448.0, 463.9, -0.001].map(e4m3), [0.1015625, 448.0, 448.0, -0.001953125]);
        assert_eq!([465.0, f32::NEG_INFINITY].map(e4m3), [448.0, -448.0]);
        let e5m2 = |x| E5m2::from_f32(x).to_f32();
        assert_eq!([0.1, 57344.0, 61440.0, 1e-6].map(e5m2), [0.09375, 57344.0, f32::INFINITY, 0.0]);
        assert_eq!(E4m3fnuz::from_f32(-0.0).to_f32().to_bits(), 0);
        assert!(E4m3fnuz::from_f32(1000.0).to_f32().is_nan());
        assert_eq!(E5m2fnuz::from_f32(57344.0).to_f32(), 57344.0);
        assert_eq!([1.0, 1.5, 3.1, 0.3].map(|x| E8m0fnu::from_f32(x).to_f32()), [1.0, 2.0, 4.0, 0.25]);
    }

    #[test]
    fn every_byte_comes_back() {
        for byte in 0..=255u8 {
            let same = |x: f32, back: u8| x.is_nan() || back == byte;
            let x = E4m3fn(byte).to_f32();
            assert!(same(x, E4m3fn::from_f32(x).0), "e4m3fn {byte}");
            let x = E5m2(byte).to_f32();
            assert!(same(x, E5m2::from_f32(x).0), "e5m2 {byte}");
            let x = E4m3fnuz(byte).to_f32();
            assert!(same(x, E4m3fnuz::from_f32(x).0), "e4m3fnuz {byte}");
            let x = E5m2fnuz(byte).to_f32();
            assert!(same(x, E5m2fnuz::from_f32(x).0), "e5m2fnuz {byte}");
            let x = E8m0fnu(byte).to_f32();
            assert!(same(x, E8m0fnu::from_f32(x).0) || byte == 0, "e8m0fnu {byte}");
        }
    }
}
