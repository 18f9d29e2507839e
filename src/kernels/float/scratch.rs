//! Room that kernels need while they run, kept by each thread from call to call: fresh pages would cost more than many
//! layers do. Knows floats only.

use crate::diag::Result;
use crate::resources::{Charge, memory};
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// Buffers that a thread keeps, and floats of the largest one that is kept.
const KEPT: usize = 4;
const LARGEST: usize = 1 << 23;

thread_local! {
    static FREE: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
}

/// Floats with whatever they held before, charged to the run; given back when dropped.
pub(super) struct Scratch {
    /// Never shorter than it was, so that nothing is cleared when it is taken again.
    room: Vec<f32>,
    count: usize,
    _charge: Charge,
}

impl Scratch {
    /// Room for `count` floats. Fails without memory, or beyond the run's limit.
    pub fn new(count: usize) -> Result<Scratch> {
        // What a thread keeps is charged to the run that works in it.
        let mut room = FREE.with_borrow_mut(Vec::pop).unwrap_or_default();
        if room.capacity() < count {
            room = memory::reserved(count)?.into_vec();
        }
        let charge = Charge::new(count.saturating_mul(size_of::<f32>()))?;
        if room.len() < count {
            room.resize(count, 0.0);
        }
        Ok(Scratch { room, count, _charge: charge })
    }
}

impl Deref for Scratch {
    type Target = [f32];
    fn deref(&self) -> &[f32] {
        &self.room[..self.count]
    }
}

impl DerefMut for Scratch {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.room[..self.count]
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let room = std::mem::take(&mut self.room);
        // Where the thread ends, or is in here already, the buffer is freed.
        let _ = FREE.try_with(|free| {
            if let Ok(mut free) = free.try_borrow_mut()
                && free.len() < KEPT
                && room.capacity() <= LARGEST
            {
                free.push(room);
            }
        });
    }
}
