//! Content that threads share: readers keep the version they saw, a writer has the content for itself.
//!
//! **Protocol.** A reader takes the lock only to clone a handle to the content, and computes without any lock
//! ([`Shared::read`]). A writer holds the write lock until it is done ([`Shared::write`]). If handles of readers are still
//! about, it gives them a short time to go and then copies the content: the readers keep the old one. Content whose place
//! must not change (*fixed*: memory that is owned elsewhere) cannot be copied away; its writer waits for the readers.
//!
//! **Why nothing deadlocks.** Readers hold no lock, so nothing ever waits for a reader, except for fixed content. A writer opens
//! what it reads first and its target last, and until it is done waits for nothing but the thread pool, whose pieces of
//! work open no storage. So the holder of a lock makes progress by itself, and waits form no cycle. Of fixed content, an
//! op that writes to one and reads another takes a copy of what it reads (`Storage::read_beside`), so that it holds no handle while it
//! waits. Programs that race get one of the mixtures of old and new content; they neither hang nor see memory that is gone.
//! A thread that waits while it holds content for writing breaks the protocol; the wait ends with an error after a while.
//!
//! The file is also compiled against a model checker (`tests/model`), which is why its locks come from `super::sync`.

use super::sync::{self, RwLock, RwLockWriteGuard};
use std::sync::Arc;
use std::time::Duration;

/// Content behind the protocol.
pub(super) struct Shared<T>(RwLock<Arc<T>>);

/// Why content could not be opened.
#[derive(Debug, PartialEq)]
pub(super) enum Blocked<E> {
    /// The thread holds content for writing, which another one may be waiting for.
    Held,
    /// The caller's own reason: its time is over, or there is no memory for a copy.
    Ended(E),
}

/// How long a waiting thread sleeps before it asks whether its work must end.
const NAP: Duration = Duration::from_millis(20);
/// Number of sleeps of a thread that breaks the protocol.
const MAX_NAPS: usize = 500;

impl<T> Shared<T> {
    pub(super) fn new(content: T) -> Shared<T> {
        Shared(RwLock::new(Arc::new(content)))
    }

    /// The content as it is now. `go_on` is asked now and then while another thread writes.
    #[inline]
    pub(super) fn read<E>(&self, go_on: impl Fn() -> Result<(), E>) -> Result<Arc<T>, Blocked<E>> {
        if let Some(content) = sync::try_read(&self.0) {
            return Ok(Arc::clone(&content));
        }
        let content = wait(go_on, || sync::read_for(&self.0, NAP))?;
        Ok(Arc::clone(&content))
    }

    /// The content for writing, with no reader. `copy` makes another one where readers keep theirs; None: the content is
    /// fixed. `patience` is how often the writer lets other threads go on before it copies.
    #[inline]
    pub(super) fn write<E>(
        &self,
        patience: impl FnOnce(&T) -> usize,
        copy: impl FnOnce(&T) -> Option<Result<T, E>>,
        go_on: impl Fn() -> Result<(), E>,
    ) -> Result<Exclusive<'_, T>, Blocked<E>> {
        let mut content = match sync::try_write(&self.0) {
            Some(content) => content,
            None => wait(&go_on, || sync::write_for(&self.0, NAP))?,
        };
        if Arc::get_mut(&mut content).is_none() {
            let mut left = patience(&content);
            while Arc::get_mut(&mut content).is_none() && left > 0 {
                left -= 1;
                sync::yield_now();
            }
            if Arc::get_mut(&mut content).is_none() {
                match copy(&content) {
                    Some(copied) => *content = Arc::new(copied.map_err(Blocked::Ended)?),
                    None => wait(&go_on, || {
                        sync::nap();
                        Arc::get_mut(&mut content).is_some().then_some(())
                    })?,
                }
            }
        }
        sync::hold(1);
        Ok(Exclusive(content))
    }
}

/// Tries until it works or must not be tried any longer.
fn wait<E, G>(
    go_on: impl Fn() -> Result<(), E>,
    mut attempt: impl FnMut() -> Option<G>,
) -> Result<G, Blocked<E>> {
    let mut naps = 0;
    loop {
        if let Some(done) = attempt() {
            return Ok(done);
        }
        go_on().map_err(Blocked::Ended)?;
        naps += 1;
        if naps >= MAX_NAPS && sync::held() > 0 {
            return Err(Blocked::Held);
        }
    }
}

/// Content that is not shared.
pub(super) struct Exclusive<'a, T>(RwLockWriteGuard<'a, Arc<T>>);

impl<T> Exclusive<'_, T> {
    pub(super) fn get(&self) -> &T {
        &self.0
    }

    /// None never happens: handles are cloned under the lock, which this holds.
    pub(super) fn get_mut(&mut self) -> Option<&mut T> {
        Arc::get_mut(&mut self.0)
    }
}

impl<T> Drop for Exclusive<'_, T> {
    fn drop(&mut self) {
        sync::hold(-1);
    }
}
