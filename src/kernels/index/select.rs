//! Places of order statistics within a row. Among equal elements the choice follows the selection algorithms
//! that PyTorch's results come from, since programs see it in the indices.

use crate::diag::Result;
use crate::kernels::wide::Wide;
use crate::resources::{Collect, Scratch, memory};
use std::cmp::Ordering;

/// Moves the element that belongs at `nth` in order there: partition around the median of three until three elements
/// are left, which are sorted by insertion. Falls back to a heap if partitions stay lopsided.
fn nth_element(items: &mut [usize], nth: usize, less: &impl Fn(usize, usize) -> bool) {
    let (mut first, mut last) = (0, items.len());
    let mut budget = 2 * items.len().max(1).ilog2();
    while last - first > 3 {
        if budget == 0 {
            partial_sort(&mut items[first..last], last - first, less);
            return;
        }
        budget -= 1;
        let cut = partition_pivot(items, first, last, less);
        if cut <= nth { first = cut } else { last = cut }
    }
    insertion_sort(&mut items[first..last], less);
}

/// Puts the median of three elements in front and splits the rest around it; gives the start of the upper part.
fn partition_pivot(
    items: &mut [usize],
    first: usize,
    last: usize,
    less: &impl Fn(usize, usize) -> bool,
) -> usize {
    let (a, b, c) = (first + 1, first + (last - first) / 2, last - 1);
    let (x, y, z) = (items[a], items[b], items[c]);
    let median = if less(x, y) {
        if less(y, z) {
            b
        } else if less(x, z) {
            c
        } else {
            a
        }
    } else if less(x, z) {
        a
    } else if less(y, z) {
        c
    } else {
        b
    };
    items.swap(first, median);
    let pivot = items[first];
    let (mut low, mut high) = (first + 1, last);
    loop {
        while low < last && less(items[low], pivot) {
            low += 1;
        }
        high -= 1;
        while high > first && less(pivot, items[high]) {
            high -= 1;
        }
        if low >= high {
            return low;
        }
        items.swap(low, high);
        low += 1;
    }
}

/// Stable. An element before the first goes there at once, whatever stands between.
fn insertion_sort(items: &mut [usize], less: &impl Fn(usize, usize) -> bool) {
    for i in 1..items.len() {
        if less(items[i], items[0]) {
            items[..=i].rotate_right(1);
            continue;
        }
        let mut at = i;
        while at > 0 && less(items[at], items[at - 1]) {
            items.swap(at, at - 1);
            at -= 1;
        }
    }
}

/// The sort without promise of stability: quicksort down to runs of 16, then insertion.
pub fn intro_sort(items: &mut [usize], less: &impl Fn(usize, usize) -> bool) {
    let mut pending = vec![(0, items.len(), 2 * items.len().max(1).ilog2())];
    while let Some((first, mut last, mut budget)) = pending.pop() {
        while last - first > 16 {
            if budget == 0 {
                partial_sort(&mut items[first..last], last - first, less);
                break;
            }
            budget -= 1;
            let cut = partition_pivot(items, first, last, less);
            pending.push((cut, last, budget));
            last = cut;
        }
    }
    insertion_sort(items, less);
}

/// The place of the element that would stand at `nth` if the row were sorted stably.
pub fn nth_place<W: Wide>(row: &[W], nth: usize) -> usize {
    let mut items = memory::taken((0..row.len()).collect());
    *items.select_nth_unstable_by(nth, |x, y| row[*x].order(row[*y]).then(x.cmp(y))).1
}

/// As [`nth_place`], by the quick selection of `kthvalue`: its pivot is the median of the first, the middle and the last.
pub fn kth_place<W: Wide>(row: &[W], k: usize) -> usize {
    let mut items = memory::taken((0..row.len()).collect());
    let greater = |x: usize, y: usize| row[x].order(row[y]) == Ordering::Greater;
    let (mut left, mut right) = (0usize, row.len() - 1);
    loop {
        if right <= left {
            return items[k];
        }
        if right == left + 1 {
            if greater(items[left], items[right]) {
                items.swap(left, right);
            }
            return items[k];
        }
        let middle = left + (right - left) / 2;
        items.swap(middle, left + 1);
        if greater(items[left + 1], items[right]) {
            items.swap(left + 1, right);
        }
        if greater(items[left], items[right]) {
            items.swap(left, right);
        }
        if greater(items[left + 1], items[left]) {
            items.swap(left, left + 1);
        }
        let (mut i, mut j) = (left + 1, right);
        let pivot = items[left];
        loop {
            i += 1;
            while greater(pivot, items[i]) {
                i += 1;
            }
            j -= 1;
            while greater(items[j], pivot) {
                j -= 1;
            }
            if j < i {
                break;
            }
            items.swap(i, j);
        }
        items.swap(left, j);
        if j <= k {
            left = i;
        }
        if j >= k {
            right = j.saturating_sub(1);
        }
    }
}

/// The places of the k largest (or smallest) elements.
pub fn top_places<W: Wide>(row: &[W], k: usize, largest: bool, sorted: bool) -> Result<Scratch<usize>> {
    let before =
        |x: usize, y: usize| row[x].order(row[y]) == if largest { Ordering::Greater } else { Ordering::Less };
    let mut items = (0..row.len()).scratch()?;
    if k == 0 {
        return Ok(Scratch::default());
    }
    if k * 64 <= row.len() {
        partial_sort(&mut items, k, &before);
    } else {
        nth_element(&mut items, k - 1, &before);
        if sorted {
            intro_sort(&mut items[..k - 1], &before);
        }
    }
    items.truncate(k);
    Ok(items)
}

/// The first k in order, by a heap of k.
fn partial_sort(items: &mut [usize], k: usize, before: &impl Fn(usize, usize) -> bool) {
    for root in (0..k / 2).rev() {
        sift_down(&mut items[..k], root, before);
    }
    for i in k..items.len() {
        if before(items[i], items[0]) {
            items.swap(i, 0);
            sift_down(&mut items[..k], 0, before);
        }
    }
    for end in (1..k).rev() {
        items.swap(0, end);
        sift_down(&mut items[..end], 0, before);
    }
}

/// Lets the hole at `root` sink to a leaf along the later children, then lets its element rise to its place.
fn sift_down(heap: &mut [usize], root: usize, before: &impl Fn(usize, usize) -> bool) {
    let element = heap[root];
    let mut hole = root;
    while 2 * hole + 2 < heap.len() {
        let (left, right) = (2 * hole + 1, 2 * hole + 2);
        let child = if before(heap[right], heap[left]) { left } else { right };
        heap[hole] = heap[child];
        hole = child;
    }
    if 2 * hole + 2 == heap.len() {
        heap[hole] = heap[2 * hole + 1];
        hole = 2 * hole + 1;
    }
    while hole > root && before(heap[(hole - 1) / 2], element) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = element;
}

/// The place of the last of the most frequent elements; of equally frequent ones the smallest.
pub fn mode_place<W: Wide>(row: &[W]) -> usize {
    let mut items = memory::taken((0..row.len()).collect());
    let less =
        |x: usize, y: usize| !row[x].is_nan() && !row[y].is_nan() && row[x].order(row[y]) == Ordering::Less;
    intro_sort(&mut items, &less);
    let (mut best, mut best_count, mut count) = (0, 0, 0);
    for (i, place) in items.iter().enumerate() {
        count += 1;
        if items.get(i + 1).is_none_or(|next| row[*next] != row[*place]) {
            if count > best_count {
                (best, best_count) = (*place, count);
            }
            count = 0;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_agree_with_sorting() {
        let row: Vec<i64> = (0..200).map(|i| (i * 7919) % 31).collect();
        let mut sorted = row.clone();
        sorted.sort_unstable();
        for n in [0, 1, 57, 100, 199] {
            assert_eq!(row[nth_place(&row, n)], sorted[n]);
            assert_eq!(row[kth_place(&row, n)], sorted[n]);
        }
        for k in [1, 3, 50, 200] {
            let top: Vec<i64> =
                top_places(&row, k, false, true).expect("small").iter().map(|i| row[*i]).collect();
            assert_eq!(top, sorted[..k]);
        }
        assert_eq!(row[mode_place(&[1i64, 2, 2, 1, 3])], row[3]);
    }
}
