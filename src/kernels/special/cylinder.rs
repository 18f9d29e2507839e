//! Bessel functions of both kinds of orders 0 and 1: the rational approximations of Moshier's Cephes library (j0.c, j1.c), as
//! PyTorch evaluates them. PyTorch leaves the leading ones of three denominators out, so that its answers are off by up to
//! one in 10^5 of the size of the function; these are its answers, and not the better ones. Every sum is rounded to the tensor's
//! precision.

use super::Rounding;
use std::f64::consts::{FRAC_2_PI, FRAC_PI_4};

/// Where the approximation by x² gives way to waves.
const NEAR: f64 = 5.0;
/// sqrt(2 / π)
const SCALE: f64 = 0.797_884_560_802_865_4;

/// The tables of one order. Highest powers first.
struct Order {
    /// What the wave lags behind: π/4, 3π/4.
    lag: f64,
    /// Waves: numerator and denominator in phase, then out of phase, in (5/x)².
    waves: [&'static [f64]; 4],
    /// First kind near 0: numerator and denominator in x².
    first: [&'static [f64]; 2],
    /// Squares of its first two roots.
    roots: [f64; 2],
    /// Second kind near 0, without its logarithm.
    second: [&'static [f64]; 2],
}

static ZERO: Order = Order {
    lag: FRAC_PI_4,
    waves: [
        &[
            0.000_796_936_729_297_347_1,
            0.082_835_239_210_744_08,
            1.239_533_716_464_143,
            5.447_250_030_587_687,
            8.747_165_001_998_17,
            5.303_240_382_353_949,
            1.0,
        ],
        &[
            0.000_924_408_810_558_863_7,
            0.085_628_847_435_447_45,
            1.253_527_439_010_589_5,
            5.470_977_403_304_171,
            8.761_908_832_370_695,
            5.306_052_882_353_947,
            1.0,
        ],
        &[
            -0.011_366_383_889_846_916,
            -1.282_527_186_705_093_1,
            -19.553_954_425_773_597,
            -93.206_015_212_376_83,
            -177.681_167_980_488_06,
            -147.077_505_154_951_18,
            -51.410_532_676_659_93,
            -6.050_143_506_007_285,
        ],
        &[
            64.317_825_611_817_8,
            856.430_025_976_980_6,
            3_882.401_836_054_016_3,
            7_240.467_741_956_525,
            5_930.727_011_873_169,
            2_062.093_316_603_278_3,
            242.005_740_240_291_4,
        ],
    ],
    first: [
        &[-4_794_432_209.782_018, 1_956_174_919_465.565_7, -249_248_344_360_967.72, 9_708_622_510_473_064.0],
        &[
            499.563_147_152_651,
            173_785.401_676_374_7,
            48_440_965.833_996_21,
            11_185_553_704.535_683,
            2_112_775_201_154.892,
            310_518_229_857_422.56,
            3.181_219_559_432_049_6e16,
            1.710_862_940_810_431_5e18,
        ],
    ],
    roots: [5.783_185_962_946_784, 30.471_262_343_662_087],
    second: [
        &[
            15_592.436_785_523_574,
            -14_663_929.590_397_16,
            5_435_264_770.518_765,
            -982_136_065_717.911_5,
            87_590_639_439_536.7,
            -3_466_283_033_847_297.0,
            4.427_332_685_725_698_4e16,
            -1.849_508_004_369_866_8e16,
        ],
        &[
            1_041.283_536_642_598_4,
            626_107.330_137_135,
            268_919_633.393_814_15,
            86_400_248_710.393_5,
            20_297_961_275_010.555,
            3_171_577_528_429_750.5,
            2.505_962_561_726_530_6e17,
        ],
    ],
};

static ONE: Order = Order {
    lag: 3.0 * FRAC_PI_4,
    waves: [
        &[
            0.000_762_125_616_208_173_1,
            0.073_139_705_694_091_76,
            1.127_196_081_296_849_3,
            5.112_079_511_468_076,
            8.424_045_901_417_724,
            5.214_515_986_823_615,
            1.0,
        ],
        &[
            0.000_571_323_128_072_548_7,
            0.068_845_590_875_449_54,
            1.105_142_326_340_617,
            5.073_863_861_286_015,
            8.399_855_543_276_042,
            5.209_828_486_823_619,
            1.0,
        ],
        &[
            0.051_086_259_475_017_66,
            4.982_138_729_512_334,
            75.823_828_413_254_53,
            366.779_609_360_150_8,
            710.856_304_998_926_1,
            597.489_612_400_613_6,
            211.688_757_100_572_13,
            25.207_020_585_802_372,
        ],
        &[
            74.237_327_703_567_52,
            1_056.448_860_382_628_3,
            4_986.410_583_376_536,
            9_562.318_924_047_562,
            7_997.041_604_473_507,
            2_826.192_785_176_390_8,
            336.093_607_810_698_3,
        ],
    ],
    first: [
        &[-899_971_225.705_559_4, 452_228_297_998.194_03, -72_749_424_522_181.83, 3_682_957_328_638_529.0],
        &[
            620.836_478_118_054_3,
            256_987.256_757_748_84,
            83_514_679.143_194_93,
            22_151_159_547.979_25,
            4_749_141_220_799.914,
            784_369_607_876_235.9,
            8.952_223_361_846_274e16,
            5.322_786_203_326_801e18,
        ],
    ],
    roots: [14.681_970_642_123_893, 49.218_456_321_694_6],
    second: [
        &[
            1_263_204_747.901_780_4,
            -647_355_876_379.160_3,
            114_509_511_541_823.73,
            -8_127_702_555_013_251.0,
            2.024_394_757_135_949e17,
            -7.788_771_962_659_501e17,
        ],
        &[
            594.301_592_346_128_2,
            235_564.092_943_068_56,
            73_481_194.445_972_17,
            18_760_131_610.870_617,
            3_882_312_774_962.385_7,
            620_557_727_146_953.8,
            6.871_410_873_553_005e16,
            3.972_706_081_165_606_4e18,
        ],
    ],
};

/// Horner's sum.
fn sum(coefficients: &[f64], x: f64, round: Rounding) -> f64 {
    coefficients.iter().fold(0.0, |sum, c| round(round(sum * x) + round(*c)))
}

fn ratio([above, below]: [&[f64]; 2], x: f64, round: Rounding) -> f64 {
    round(sum(above, x, round) / sum(below, x, round))
}

impl Order {
    /// Functions of both kinds for x above [`NEAR`].
    fn far(&self, x: f64, round: Rounding) -> (f64, f64) {
        let z = round(25.0 / round(x * x));
        let [a, b, c, d] = self.waves;
        let even = ratio([a, b], z, round);
        let odd = round(round(NEAR / x) * ratio([c, d], z, round));
        // Far out the last bit of the phase is most of the error.
        let (sin, cos) = round(x - round(self.lag)).sin_cos();
        let (sin, cos) = (round(sin), round(cos));
        let size = |wave: f64| round(round(wave * round(SCALE)) / round(x.sqrt()));
        (size(round(round(even * cos) - round(odd * sin))), size(round(round(even * sin) + round(odd * cos))))
    }

    /// The function of the first kind up to [`NEAR`], without the factor x of order 1.
    fn near(&self, x: f64, round: Rounding) -> f64 {
        let z = round(x * x);
        let [first, second] = self.roots.map(|root| round(z - round(root)));
        round(round(first * second) * ratio(self.first, z, round))
    }
}

/// Bessel function of the first kind, order 0; NaN at infinity, as in PyTorch.
pub fn j0(x: f64, round: Rounding) -> f64 {
    let x = x.abs();
    if x < 1e-5 {
        return round(1.0 - round(round(x * x) / 4.0));
    }
    if x <= NEAR { ZERO.near(x, round) } else { ZERO.far(x, round).0 }
}

/// Bessel function of the first kind, order 1; NaN at infinity, as in PyTorch.
pub fn j1(x: f64, round: Rounding) -> f64 {
    let size = x.abs();
    let value = if size <= NEAR { round(size * ONE.near(size, round)) } else { ONE.far(size, round).0 };
    if x < 0.0 { -value } else { value }
}

/// Bessel function of the second kind, order 0; -inf at 0, NaN below and at infinity.
pub fn y0(x: f64, round: Rounding) -> f64 {
    if x == 0.0 {
        return f64::NEG_INFINITY;
    }
    if x > NEAR {
        return ZERO.far(x, round).1;
    }
    let wave = round(round(FRAC_2_PI * round(x.ln())) * j0(x, round));
    round(ratio(ZERO.second, round(x * x), round) + wave)
}

/// Bessel function of the second kind, order 1; -inf at 0, NaN below and at infinity.
pub fn y1(x: f64, round: Rounding) -> f64 {
    if x == 0.0 {
        return f64::NEG_INFINITY;
    }
    if x > NEAR {
        return ONE.far(x, round).1;
    }
    let wave = round(round(j1(x, round) * round(x.ln())) - round(1.0 / x));
    round(round(x * ratio(ONE.second, round(x * x), round)) + round(FRAC_2_PI * wave))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What PyTorch 2.15 gives for float64.
    #[test]
    fn pytorchs_values() {
        let exact = |x: f64| x;
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-14, "{a} {b}");
        near(j0(-5.421_528_065_997_275_5, exact), -0.033_781_501_769_241_46);
        near(y1(5.523_697_053_975_17, exact), -0.031_676_700_989_318_116);
        near(j0(1.5, exact), 0.511_827_671_735_918_4);
        near(j0(4.9, exact), -0.209_738_336_205_916_86);
        near(j0(7.25, exact), 0.291_996_925_600_951_25);
        near(j0(40.0, exact), 0.007_366_890_584_236_952);
        near(j1(1.5, exact), 0.557_936_507_910_099_7);
        near(j1(4.9, exact), -0.314_694_675_360_635_8);
        near(j1(7.25, exact), 0.068_581_717_860_909_07);
        near(j1(40.0, exact), 0.126_038_318_037_585);
        near(y0(1.5, exact), 0.382_448_923_797_759_2);
        near(y0(4.9, exact), -0.292_054_604_046_980_97);
        near(y0(7.25, exact), 0.048_422_522_182_999_514);
        near(y0(40.0, exact), 0.125_936_417_058_260_97);
        near(y1(1.5, exact), -0.412_308_626_973_911_35);
        near(y1(4.9, exact), 0.181_246_699_158_532_84);
        near(y1(7.25, exact), -0.289_347_991_041_107_03);
        near(y1(40.0, exact), -0.005_793_505_821_549_509);
        assert!(y0(-1.0, exact).is_nan() && y1(-1.0, exact).is_nan() && j0(f64::INFINITY, exact).is_nan());
        assert_eq!((y0(0.0, exact), j1(-2.0, exact)), (f64::NEG_INFINITY, -j1(2.0, exact)));
    }
}
