//! Planes of images: pooled, scaled by channel, brought to another size.

pub mod bilinear;
pub mod channels;
pub mod groups;
pub mod linear;
pub mod pool;
pub mod resample;
pub mod resize;

/// The weight of Lanczos's filter at a distance: `sinc(x) * sinc(x / 3)` within three elements.
/// Source: Turkowski, "Filters for common resampling tasks".
fn lanczos(x: f64) -> f64 {
    let sinc = |x: f64| {
        let x = x * std::f64::consts::PI;
        if x == 0.0 { 1.0 } else { x.sin() / x }
    };
    if x.abs() < 3.0 { sinc(x) * sinc(x / 3.0) } else { 0.0 }
}
