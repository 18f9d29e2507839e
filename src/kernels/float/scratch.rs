//! Room that kernels need while they run, kept by each thread from call to call: fresh pages would cost more than many
//! layers do. Knows floats only.

use crate::diag::Result;
use crate::resources::memory;
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// Buffers that a thread keeps, and floats of the largest one that is kept.
const KEPT: usize = 4;
const LARGEST: usize = 1 << 23;

thread_local! {
    static FREE: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
}

/// Floats with whatever they held before; given back when dropped.
pub(super) struct Scratch(Vec<f32>);

impl Scratch {
    /// Room for `count` floats. Fails without memory.
    pub fn new(count: usize) -> Result<Scratch> {
        let mut room = FREE.with_borrow_mut(Vec::pop).unwrap_or_default();
        if room.capacity() < count {
            room = memory::reserved(count)?;
        }
        room.resize(count, 0.0);
        Ok(Scratch(room))
    }
}

impl Deref for Scratch {
    type Target = [f32];
    fn deref(&self) -> &[f32] {
        &self.0
    }
}

impl DerefMut for Scratch {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let room = std::mem::take(&mut self.0);
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
