//! Places for the labels of lines: over no box and no other label. `page.js` does the same for the browser.
//!
//! Must not know how labels are drawn.

use super::place::Rect;
use hashbrown::HashMap;

/// Width of a letter of a label, and its height.
const LETTER: f64 = 6.1;
const HEIGHT: f64 = 11.0;
/// Side of a cell of the grid by which rectangles are found, so that large pictures take linear time.
const CELL: f64 = 64.0;
/// Rectangles that cover more cells than this are not entered in all of them: nothing that is drawn here is so large.
const MAX_CELLS: usize = 4096;

/// A label that wants a place.
pub(super) struct Wish {
    /// What it says.
    pub(super) text: String,
    /// Where it would stand, and whether it ends there instead of beginning.
    pub(super) tip: (f64, f64, bool),
    /// Where its line begins, and where the line's first part ends.
    pub(super) start: (f64, f64),
    pub(super) first: (f64, f64),
}

/// A label in its place: the text's corner, and whether it ends there.
pub(super) struct Label {
    pub(super) text: String,
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) left: bool,
}

/// What is taken, and what waits for a place.
#[derive(Default)]
pub(super) struct Labels {
    cells: HashMap<(i64, i64), Vec<Rect>>,
    wishes: Vec<Wish>,
}

impl Labels {
    /// Something is drawn here.
    pub(super) fn take(&mut self, rect: Rect) {
        for cell in cells(rect) {
            self.cells.entry(cell).or_default().push(rect);
        }
    }

    pub(super) fn wish(&mut self, wish: Wish) {
        self.wishes.push(wish);
    }

    /// The labels for which there is room, in the order of their wishes. The others are left out: types of values stand in the
    /// boxes' titles too.
    pub(super) fn settle(mut self) -> Vec<Label> {
        let mut out = Vec::new();
        for wish in std::mem::take(&mut self.wishes) {
            let width = wish.text.chars().count() as f64 * LETTER;
            let rect = |(x, y, left): (f64, f64, bool)| Rect {
                x: if left { x - width } else { x },
                y: y - 9.0,
                width,
                height: HEIGHT,
            };
            if let Some(place) = places(&wish).into_iter().find(|place| self.is_free(rect(*place))) {
                self.take(rect(place));
                let (x, y, left) = place;
                out.push(Label { text: wish.text, x, y, left });
            }
        }
        out
    }

    fn is_free(&self, q: Rect) -> bool {
        let apart = |r: &Rect| {
            q.x >= r.x + r.width || q.x + q.width <= r.x || q.y >= r.y + r.height || q.y + q.height <= r.y
        };
        cells(q).all(|cell| self.cells.get(&cell).is_none_or(|taken| taken.iter().all(apart)))
    }
}

/// Places that a label may take, the best first: beside its line's start, on the other side, lower, in the middle, at the end.
fn places(wish: &Wish) -> [(f64, f64, bool); 11] {
    let ((sx, sy), (fx, fy)) = (wish.start, wish.first);
    let (mx, my) = ((sx + fx) / 2.0, (sy + fy) / 2.0 + 4.0);
    [
        wish.tip,
        (sx + 5.0, sy + 12.0, false),
        (sx - 5.0, sy + 12.0, true),
        (sx + 5.0, sy + 23.0, false),
        (sx - 5.0, sy + 23.0, true),
        (mx + 5.0, my, false),
        (mx - 5.0, my, true),
        (fx + 5.0, fy - 6.0, false),
        (fx - 5.0, fy - 6.0, true),
        (sx + 5.0, sy + 34.0, false),
        (sx - 5.0, sy + 34.0, true),
    ]
}

/// The cells that a rectangle touches.
fn cells(r: Rect) -> impl Iterator<Item = (i64, i64)> {
    let range =
        |from: f64, length: f64| (from / CELL).floor() as i64..=((from + length) / CELL).floor() as i64;
    let (across, down) = (range(r.x, r.width), range(r.y, r.height));
    across.flat_map(move |i| down.clone().map(move |j| (i, j))).take(MAX_CELLS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(x: f64, y: f64) -> Wish {
        Wish {
            text: "%x : Tensor".into(),
            tip: (x + 5.0, y + 12.0, false),
            start: (x, y),
            first: (x, y + 40.0),
        }
    }

    #[test]
    fn labels_stand_beside_boxes_and_each_other() {
        let mut labels = Labels::default();
        labels.take(Rect { x: 0.0, y: 0.0, width: 100.0, height: 48.0 });
        labels.take(Rect { x: 51.0, y: 48.0, width: 200.0, height: 16.0 });
        labels.wish(wish(50.0, 48.0));
        labels.wish(wish(50.0, 48.0));
        let places: Vec<(f64, f64, bool)> = labels.settle().iter().map(|l| (l.x, l.y, l.left)).collect();
        assert_eq!(places, [(45.0, 60.0, true), (45.0, 71.0, true)]);
    }

    #[test]
    fn a_label_without_room_is_left_out() {
        let mut labels = Labels::default();
        labels.take(Rect { x: -500.0, y: -500.0, width: 1000.0, height: 1000.0 });
        labels.wish(wish(0.0, 0.0));
        assert!(labels.settle().is_empty());
    }
}
