//! A generator as a value: shared by reference, with its state here or kept by a host.

use super::generator::Generator;
use crate::diag::Result;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;

/// Keeps the state of a random generator in the place of a run or of a value, so that others draw from the same one.
pub trait StateKeeper: Send + Sync {
    /// The state now, as `torch.get_rng_state()` gives it; None where the one that asks is to keep its own.
    fn state(&self) -> Result<Option<Vec<u8>>>;
    /// Takes the state after numbers were drawn.
    fn keep(&self, state: &[u8]) -> Result<()>;
}

/// A random generator that a program or a host made. Clones draw from the same one.
#[derive(Clone)]
pub struct SharedGenerator(Arc<Inner>);

struct Inner {
    /// What it is where nothing else keeps its state; held while it draws.
    own: Mutex<Generator>,
    keeper: Option<Arc<dyn StateKeeper>>,
}

impl SharedGenerator {
    /// A generator with a state of its own.
    pub fn new(generator: Generator) -> SharedGenerator {
        SharedGenerator(Arc::new(Inner { own: Mutex::new(generator), keeper: None }))
    }

    /// The generator of a host.
    pub fn kept_by(keeper: Arc<dyn StateKeeper>) -> SharedGenerator {
        let own = Mutex::new(Generator::new(Generator::DEFAULT_SEED));
        SharedGenerator(Arc::new(Inner { own, keeper: Some(keeper) }))
    }

    /// Runs work with it. Fails where the work does, or its host.
    pub fn with<T>(&self, work: impl FnOnce(&mut Generator) -> Result<T>) -> Result<T> {
        let mut own = self.0.own.lock();
        if let Some(keeper) = &self.0.keeper
            && let Some(state) = keeper.state()?
        {
            return kept(&**keeper, &state, work);
        }
        work(&mut own)
    }

    /// Whether both are one.
    pub fn same(&self, other: &SharedGenerator) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for SharedGenerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Generator")
    }
}

/// Runs work with a generator in a keeper's state. The state after it goes back, also where the work fails.
pub fn kept<T>(
    keeper: &dyn StateKeeper,
    state: &[u8],
    work: impl FnOnce(&mut Generator) -> Result<T>,
) -> Result<T> {
    let mut generator = Generator::from_state(state)?;
    let result = work(&mut generator);
    keeper.keep(&generator.state())?;
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Host(Mutex<Vec<u8>>);

    impl StateKeeper for Host {
        fn state(&self) -> Result<Option<Vec<u8>>> {
            Ok(Some(self.0.lock().clone()))
        }

        fn keep(&self, state: &[u8]) -> Result<()> {
            *self.0.lock() = state.to_vec();
            Ok(())
        }
    }

    #[test]
    fn clones_draw_from_one_state_and_a_host_sees_it() {
        let own = SharedGenerator::new(Generator::new(3));
        let host = Arc::new(Host(Mutex::new(Generator::new(3).state())));
        let kept = SharedGenerator::kept_by(host.clone());
        let draw = |g: &SharedGenerator| g.with(|g| Ok(g.bits32())).expect("it draws");
        let (first, second) = (draw(&own), draw(&own.clone()));
        assert_ne!(first, second);
        assert_eq!((draw(&kept), draw(&kept)), (first, second));
        assert_eq!(host.state().expect("a host"), own.with(|g| Ok(Some(g.state()))).expect("a state"));
        assert!(own.same(&own.clone()) && !own.same(&kept));
    }
}
