//! Boxes: the greedy choice of those that do not overlap.

use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, OpDef, Outputs, one, opaque};
use crate::kernels::compute::Real;
use crate::resources::Collect;
use crate::tensor::{DType, Tensor};

/// The rows.
pub static OPS: &[OpDef] = &[opaque(
    "torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    nms,
)
.doc("Indices of the boxes (x1, y1, x2, y2) that overlap none of a higher score by more than the threshold")];

fn nms(a: &Args<'_>) -> Result<Outputs> {
    let (boxes, scores, threshold) = (a.tensor(0)?, a.tensor(1)?, a.float(2)?);
    check(boxes, scores)?;
    if boxes.numel() == 0 {
        return one(Tensor::zeros(DType::I64, &[0])?);
    }
    let kept = match boxes.dtype() {
        DType::F32 => greedy::<f32>(boxes, scores, threshold)?,
        DType::F64 => greedy::<f64>(boxes, scores, threshold)?,
        other => return Err(crate::kernels::create::range::not_implemented("nms_kernel", other)),
    };
    one(Tensor::from_vec(&kept, &[kept.len() as i64])?)
}

fn check(boxes: &Tensor, scores: &Tensor) -> Result<()> {
    let fail = |text: String| Err(Diagnostic::runtime(text));
    let (b, s) = (boxes.sizes(), scores.sizes());
    if b.len() != 2 {
        return fail(format!("boxes should be a 2d tensor, got {}D", b.len()));
    }
    if b[1] != 4 {
        return fail(format!("boxes should have 4 elements in dimension 1, got {}", b[1]));
    }
    if s.len() != 1 {
        return fail(format!("scores should be a 1d tensor, got {}D", s.len()));
    }
    if b[0] != s[0] {
        return fail(format!(
            "boxes and scores should have same number of elements in dimension 0, got {} and {}",
            b[0], s[0]
        ));
    }
    if boxes.dtype() != scores.dtype() {
        return fail("dets should have the same type as scores".into());
    }
    Ok(())
}

/// From the highest score down, keeps a box and drops all that overlap it too much. Areas and overlaps are computed in
/// the boxes' dtype and compared in double.
fn greedy<R: Real>(boxes: &Tensor, scores: &Tensor, threshold: f64) -> Result<Vec<i64>> {
    let (boxes, scores) = (boxes.elements::<R>()?, scores.elements::<R>()?);
    let corners = |i: usize| (boxes[4 * i], boxes[4 * i + 1], boxes[4 * i + 2], boxes[4 * i + 3]);
    let area = |i: usize| {
        let (x1, y1, x2, y2) = corners(i);
        (x2 - x1) * (y2 - y1)
    };
    let areas = (0..scores.len()).map(area).scratch()?;
    let mut order = (0..scores.len()).scratch()?;
    // Equal scores stay in order; NaN counts as the highest, as PyTorch sorts.
    order.sort_by(|i, j| {
        let (a, b) = (scores[*i], scores[*j]);
        b.partial_cmp(&a).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
    });
    let larger = |a: R, b: R| if a < b { b } else { a };
    let smaller = |a: R, b: R| if b < a { b } else { a };
    let (mut dropped, mut kept) = (vec![false; scores.len()], Vec::new());
    for (at, i) in order.iter().enumerate() {
        if dropped[*i] {
            continue;
        }
        kept.push(*i as i64);
        let (x1, y1, x2, y2) = corners(*i);
        for j in &order[at + 1..] {
            if dropped[*j] {
                continue;
            }
            let (u1, v1, u2, v2) = corners(*j);
            let width = larger(R::ZERO, smaller(x2, u2) - larger(x1, u1));
            let height = larger(R::ZERO, smaller(y2, v2) - larger(y1, v1));
            let shared = width * height;
            let overlap = shared / (areas[*i] + areas[*j] - shared);
            dropped[*j] = overlap.wide() > threshold;
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_boxes_of_lower_score_go() {
        let boxes = [0.0, 0.0, 10.0, 10.0, 1.0, 1.0, 10.0, 10.0, 20.0, 20.0, 30.0, 30.0f32];
        let boxes = Tensor::from_vec(&boxes, &[3, 4]).expect("valid");
        let scores = Tensor::from_vec(&[0.5f32, 0.9, 0.1], &[3]).expect("valid");
        assert_eq!(greedy::<f32>(&boxes, &scores, 0.5).expect("valid"), [1, 2]);
        assert_eq!(greedy::<f32>(&boxes, &scores, 0.9).expect("valid"), [1, 0, 2]);
    }
}
