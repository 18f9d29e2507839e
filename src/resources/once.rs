//! What is made once and shared by all who ask for it, though one of them may be out of time or memory.

use crate::diag::{Diagnostic, ErrorKind, Result};
use parking_lot::Mutex;
use std::sync::OnceLock;

/// Something that is made when it is first asked for. A failure is the answer to all who ask; but where the limits of one who
/// asks end the making, the next one makes it.
#[derive(Debug)]
pub struct Once<T> {
    made: OnceLock<Result<T>>,
    making: Mutex<()>,
}

impl<T> Default for Once<T> {
    fn default() -> Once<T> {
        Once { made: OnceLock::new(), making: Mutex::default() }
    }
}

impl<T> Once<T> {
    /// What was made, if it is there.
    pub fn get(&self) -> Option<&T> {
        self.made.get()?.as_ref().ok()
    }

    /// What was made, now or before.
    pub fn get_or_make(&self, make: impl FnOnce() -> Result<T>) -> Result<&T> {
        if let Some(made) = self.made.get() {
            return made.as_ref().map_err(Diagnostic::clone);
        }
        let _making = self.making.lock();
        if let Some(made) = self.made.get() {
            return made.as_ref().map_err(Diagnostic::clone);
        }
        match make() {
            Err(error) if error.kind() == ErrorKind::Limit => Err(error),
            made => self.made.get_or_init(|| made).as_ref().map_err(Diagnostic::clone),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_stay_and_limits_do_not() {
        let once = Once::default();
        let limit = || Err(Diagnostic::new(ErrorKind::Limit, "no time"));
        assert!(once.get_or_make(limit).is_err() && once.get().is_none());
        assert_eq!(once.get_or_make(|| Ok(7)).ok(), Some(&7));
        assert_eq!(once.get_or_make(limit).ok(), Some(&7));
        let failed: Once<i32> = Once::default();
        assert!(failed.get_or_make(|| Err(Diagnostic::internal("odd"))).is_err());
        assert_eq!(failed.get_or_make(|| Ok(1)).expect_err("it stays").message(), "odd");
    }
}
