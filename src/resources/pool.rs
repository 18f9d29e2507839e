//! The threads that share loops: one team for the process, built when it is first needed.
//!
//! What runs in the team is a piece of a loop. It opens no storage and waits for nothing, so the team never stands still;
//! forked tasks, which wait, have threads of their own ([`super::tasks`]). As many threads as [`set_threads`],
//! `FLAMBEAU_NUM_THREADS` or `RAYON_NUM_THREADS` says work on a loop, else one for each core; the one that asks is among them.
//! With one thread, where threads cannot be started, or while the team is being built, loops run in the thread that asks. A
//! process that was forked off builds a team of its own: threads do not survive a fork.
//!
//! Pieces are charged to the budget of the thread that asks. When that is used up, the pieces that have not begun are left out:
//! the result is thrown away, as the caller's next check fails.

use super::team::Team;
use super::{Budget, Scratch, budget, memory};
use crate::diag::Result;
use parking_lot::{Mutex, RwLock};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Room on a thread's stack: kernels of builds without optimization keep many vectors there. The system gives pages as they
/// are used.
const STACK_BYTES: usize = 16 << 20;

/// The team of this process, if it could be built.
struct Built {
    process: u32,
    threads: usize,
    team: Option<Arc<Team>>,
}

static BUILT: RwLock<Option<Built>> = RwLock::new(None);
/// Threads that were asked for; 0 leaves it to the environment.
static WANTED: AtomicUsize = AtomicUsize::new(0);
/// Portions of a slice for each thread, so that all end at about the same time.
const PORTIONS: usize = 8;
/// No machine has more cores.
const MAX_THREADS: usize = 1024;

/// Sets how many threads share loops from now on; 0 leaves it to the environment.
pub fn set_threads(threads: usize) {
    WANTED.store(threads.min(MAX_THREADS), Ordering::Relaxed);
}

/// How many threads share loops.
pub fn threads() -> usize {
    static DEFAULT: OnceLock<usize> = OnceLock::new();
    match WANTED.load(Ordering::Relaxed) {
        0 => *DEFAULT.get_or_init(|| {
            let named =
                |name: &str| std::env::var(name).ok()?.trim().parse::<usize>().ok().filter(|n| *n > 0);
            let asked = named("FLAMBEAU_NUM_THREADS").or_else(|| named("RAYON_NUM_THREADS"));
            asked.unwrap_or_else(cores).min(MAX_THREADS)
        }),
        threads => threads,
    }
}

/// How many cores the process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

thread_local! {
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Does work whose loops run in this thread: it is a piece of a loop itself, and as large as the others.
pub fn alone<T>(work: impl FnOnce() -> T) -> T {
    /// Puts back what was, in an unwinding too.
    struct Former(bool);
    impl Drop for Former {
        fn drop(&mut self) {
            ALONE.set(self.0);
        }
    }
    let _former = Former(ALONE.replace(true));
    work()
}

/// The team; None where loops run in the thread that asks.
fn team() -> Option<Arc<Team>> {
    let threads = threads();
    if threads < 2 || ALONE.get() {
        return None;
    }
    let process = std::process::id();
    // Never blocks: in a process that was forked off the lock may be held for ever by a thread that is not there.
    if let Some(built) = BUILT.try_read()?.as_ref()
        && built.process == process
        && built.threads == threads
    {
        return built.team.clone();
    }
    let mut built = BUILT.try_write()?;
    let team = Team::new(threads - 1, STACK_BYTES, threads <= cores()).map(Arc::new);
    let former = built.replace(Built { process, threads, team: team.clone() });
    if former.as_ref().is_some_and(|former| former.process != process) {
        // Its threads belong to another process; there is nothing to end.
        std::mem::forget(former);
    }
    team
}

/// Calls `work` with each of `0..count`, on several threads. Ends early where a limit of the run is reached.
pub fn for_each(count: usize, work: impl Fn(usize) + Sync) {
    numbers(count, &work);
}

fn numbers(count: usize, work: &(dyn Fn(usize) + Sync)) {
    if count < 2 {
        return (0..count).for_each(work);
    }
    let payer = Payer::here();
    let Some(team) = team() else { return (0..count).take_while(|_| payer.allows()).for_each(work) };
    let next = AtomicUsize::new(0);
    let one = || {
        let n = next.fetch_add(1, Ordering::Relaxed);
        n < count && payer.allows() && {
            work(n);
            true
        }
    };
    team.run(count - 1, &|| payer.pay(&|| while one() {}));
}

/// What `work` gives for each of `0..count`, in order, on several threads. All of it is done, whatever the budget says.
/// Fails where there is no room for the results.
pub fn map<R: Send>(count: usize, work: impl Fn(usize) -> R + Sync) -> Result<Scratch<R>> {
    let Some(team) = (count > 1).then(team).flatten() else { return memory::collected((0..count).map(work)) };
    let mut results = memory::built(count, |out| out.resize_with(count, || None))?;
    let (payer, places) = (Payer::here(), Mutex::new(results.iter_mut().enumerate()));
    let one = || {
        let place = places.lock().next();
        place.is_some_and(|(n, place)| {
            *place = Some(work(n));
            true
        })
    };
    team.run(count - 1, &|| payer.pay(&|| while one() {}));
    memory::built(count, |out| out.extend(results.iter_mut().filter_map(Option::take)))
}

/// Calls `work` with stretches of `size` elements of a slice and their numbers, on several threads.
pub fn chunks<T: Send>(slice: &mut [T], size: usize, work: impl Fn(usize, &mut [T]) + Sync) {
    let all = |at: usize, chunk: &mut [T]| {
        work(at, chunk);
        Ok(())
    };
    // Work that cannot fail leaves nothing to say.
    let _ = chunks_by(slice, size, &all);
}

/// The same for work that can fail; one of the errors is given.
pub fn try_chunks<T: Send>(
    slice: &mut [T],
    size: usize,
    work: impl Fn(usize, &mut [T]) -> Result<()> + Sync,
) -> Result<()> {
    chunks_by(slice, size, &work)
}

/// Compiled once for each type of elements: what work does is called by its address.
fn chunks_by<T: Send>(
    slice: &mut [T],
    size: usize,
    work: &(dyn Fn(usize, &mut [T]) -> Result<()> + Sync),
) -> Result<()> {
    let size = size.max(1);
    let count = slice.len().div_ceil(size);
    // Short stretches are handed out several at a time: handing out costs more than some of them.
    let several = (count / (threads() * PORTIONS)).max(1);
    let portions = slice.chunks_mut(size.saturating_mul(several)).enumerate();
    share(count.div_ceil(several), portions, &|(n, portion): (usize, &mut [T])| {
        for (i, chunk) in portion.chunks_mut(size).enumerate() {
            work(n * several + i, chunk)?;
        }
        Ok(())
    })
}

/// Calls `work` with each item, on several threads; one of the errors is given.
pub fn try_each<T: Send>(items: Vec<T>, work: impl Fn(T) -> Result<()> + Sync) -> Result<()> {
    share(items.len(), items.into_iter(), &work)
}

/// The same for work that cannot fail.
pub fn each<T: Send>(items: Vec<T>, work: impl Fn(T) + Sync) {
    let all = |item: T| {
        work(item);
        Ok(())
    };
    let _ = share(items.len(), items.into_iter(), &all);
}

/// Calls `work` with each of `count` items, on several threads; after an error no further item is begun.
fn share<T>(
    count: usize,
    items: impl Iterator<Item = T> + Send,
    work: &(dyn Fn(T) -> Result<()> + Sync),
) -> Result<()> {
    let items = Mutex::new(items);
    steps(count, &|| {
        let item = items.lock().next()?;
        Some(work(item))
    })
}

/// Calls `step`, which does one of `count` pieces and gives None where none is left, on several threads.
fn steps(count: usize, step: &(dyn Fn() -> Option<Result<()>> + Sync)) -> Result<()> {
    let in_turn = |allows: &dyn Fn() -> bool| {
        while allows()
            && let Some(done) = step()
        {
            done?;
        }
        Ok(())
    };
    if count < 2 {
        return in_turn(&|| true);
    }
    let payer = Payer::here();
    let Some(team) = team() else { return in_turn(&|| payer.allows()) };
    let (failed, stopped) = (Mutex::new(None), AtomicBool::new(false));
    let one = || {
        if stopped.load(Ordering::Relaxed) || !payer.allows() {
            return false;
        }
        match step() {
            Some(Ok(())) => true,
            Some(Err(error)) => {
                stopped.store(true, Ordering::Relaxed);
                *failed.lock() = Some(error);
                true
            }
            None => false,
        }
    };
    team.run(count - 1, &|| payer.pay(&|| while one() {}));
    failed.into_inner().map_or(Ok(()), Err)
}

/// The budget of the thread that asks, for the threads that do the work.
struct Payer(Option<Arc<Budget>>);

impl Payer {
    fn here() -> Payer {
        Payer(budget::current())
    }

    /// Whether a further piece may begin: the budget is not used up.
    fn allows(&self) -> bool {
        !self.0.as_ref().is_some_and(|budget| budget.is_stopped())
    }

    /// Does pieces of work, charged to the payer.
    fn pay(&self, work: &dyn Fn()) {
        let _installed = self.0.as_ref().map(|budget| budget.install());
        work();
    }
}

/// Large pieces of work side by side, on threads of their own with large stacks: programs, files, functions. They may wait
/// and use the pool. What `work` gives for each of `0..count` is in order; as many as there are threads run at a time.
pub fn jobs<R: Send>(
    threads: usize,
    stack_bytes: usize,
    count: usize,
    work: impl Fn(usize) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::new());
    let budget = budget::current();
    let take = || {
        let _installed = budget::install(budget.clone());
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= count {
                return;
            }
            let result = work(n);
            done.lock().push((n, result));
        }
    };
    std::thread::scope(|scope| {
        let mut started = 0;
        for _ in 0..threads.clamp(1, count.max(1)) {
            let thread = std::thread::Builder::new().stack_size(stack_bytes);
            started += usize::from(thread.spawn_scoped(scope, take).is_ok());
        }
        if started == 0 {
            take();
        }
    });
    let mut done = done.into_inner();
    done.sort_by_key(|(n, _)| *n);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::Limits;

    #[test]
    fn everything_is_done_once_and_in_order() {
        assert_eq!(map(1000, |n| n * 2).expect("small"), (0..1000).map(|n| n * 2).collect::<Vec<_>>());
        assert_eq!(jobs(3, 1 << 20, 50, |n| n), (0..50).collect::<Vec<_>>());
        let mut numbers = vec![0usize; 1000];
        chunks(&mut numbers, 7, |at, chunk| chunk.iter_mut().for_each(|x| *x += at + 1));
        assert!(numbers.iter().enumerate().all(|(n, x)| *x == n / 7 + 1));
    }

    #[test]
    fn loops_of_a_piece_that_is_alone_stay_in_its_thread() {
        let ids = alone(|| map(64, |_| std::thread::current().id()).expect("small"));
        assert!(ids.iter().all(|id| *id == std::thread::current().id()));
        let unwound = std::panic::catch_unwind(|| alone(|| panic!("a piece fails")));
        assert!(unwound.is_err() && !ALONE.get());
    }

    #[test]
    fn pieces_are_charged_to_who_asks() {
        let budget = Arc::new(Budget::new(Limits { bytes: Some(1 << 30), ..Limits::default() }));
        let _installed = budget.install();
        let charges = map(8, |_| crate::resources::Charge::new(100).expect("fits"));
        // What the pieces hold, and the room of the results.
        assert_eq!(budget.live_bytes(), 800 + 8 * size_of::<crate::resources::Charge>() as u64);
        drop(charges);
        assert_eq!(budget.live_bytes(), 0);
    }

    #[test]
    fn pieces_are_left_out_when_the_run_has_ended() {
        let budget = Arc::new(Budget::default());
        budget.cancel();
        let _installed = budget.install();
        let done = AtomicUsize::new(0);
        let count = |()| {
            done.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        try_each(vec![(); 100], count).expect("nothing fails");
        // One thread does the work itself.
        assert!(threads() < 2 || done.load(Ordering::Relaxed) == 0);
    }
}
