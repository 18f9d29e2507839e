//! A team of threads that help with loops: who asks works on its own loop, and idle threads join in.
//!
//! An idle thread looks for the next loop for a while before it sleeps: the ops of a program follow each other closely, and
//! to wake a thread takes as long as a small op. Where there are fewer cores than threads it sleeps at once. A loop waits for
//! the threads that have joined it, never for one that has not: on a busy machine the asking thread does all the work itself.
//! Any number of threads may ask at the same time. The team knows neither pieces nor budgets.
#![allow(unsafe_code, reason = "a loop is lent to other threads; `Open` takes it back before it ends")]

use parking_lot::{Condvar, Mutex};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// How long an idle thread looks for work before it sleeps, and an asking one for the end of its loop.
const PATIENCE: Duration = Duration::from_micros(200);
/// From then on it lets others have the core between two looks.
const COURTEOUS: Duration = Duration::from_micros(20);
/// Looks between two looks at the clock.
const LOOKS: usize = 32;

/// Threads that wait for loops; they end with it.
pub(super) struct Team {
    shared: Arc<Shared>,
    helpers: usize,
}

/// What the team's threads see.
struct Shared {
    /// Loops that may be joined; the newest is last.
    open: Mutex<Vec<Arc<Region>>>,
    /// Loops that were begun.
    begun: AtomicUsize,
    /// Threads that look for a loop.
    looking: AtomicUsize,
    /// Threads that sleep, and where they do. The number changes while the lock is held.
    sleeping: AtomicUsize,
    bed: Mutex<()>,
    wake: Condvar,
    ended: AtomicBool,
    /// Whether idle threads may look for work: there is a core for each thread.
    looks: bool,
}

/// A loop that is lent to the team.
struct Region {
    /// Takes pieces of the loop until none is left. Called by who has joined only; see [`Team::run`].
    work: &'static (dyn Fn() + Sync),
    /// How many threads have joined and not left yet; with [`CLOSED`], none may join any more.
    present: AtomicUsize,
    /// How many threads may still join.
    seats: AtomicUsize,
    owner: Thread,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

const CLOSED: usize = 1 << (usize::BITS - 1);

impl Team {
    /// A team of as many of `helpers` threads as can be started; none where none can.
    pub fn new(helpers: usize, stack_bytes: usize, looks: bool) -> Option<Team> {
        let shared = Arc::new(Shared {
            open: Mutex::default(),
            begun: AtomicUsize::new(0),
            looking: AtomicUsize::new(0),
            sleeping: AtomicUsize::new(0),
            bed: Mutex::default(),
            wake: Condvar::new(),
            ended: AtomicBool::new(false),
            looks,
        });
        let start = |n: usize| {
            let thread = std::thread::Builder::new().name(format!("flambeau-{n}")).stack_size(stack_bytes);
            let shared = Arc::clone(&shared);
            thread.spawn(move || shared.attend()).is_ok()
        };
        let helpers = (0..helpers).take_while(|n| start(*n)).count();
        (helpers > 0).then_some(Team { shared, helpers })
    }

    /// Calls `work` here and in up to `helpers` threads of the team. `work` takes pieces until none is left; each call ends
    /// when there are none. Returns when all calls have ended; a panic in one of them goes on here.
    pub fn run(&self, helpers: usize, work: &(dyn Fn() + Sync)) {
        // SAFETY: only threads that have joined the region call `work`; `Open` lets nobody join any more and waits for those
        // that have, before this function returns or unwinds.
        let lent = unsafe { std::mem::transmute::<&(dyn Fn() + Sync), &'static (dyn Fn() + Sync)>(work) };
        let helpers = helpers.min(self.helpers);
        let region = Arc::new(Region {
            work: lent,
            present: AtomicUsize::new(0),
            seats: AtomicUsize::new(helpers),
            owner: std::thread::current(),
            panic: Mutex::default(),
        });
        let open = Open { shared: &self.shared, region: &region };
        self.shared.begin(&region, helpers);
        work();
        drop(open);
        if let Some(panic) = region.panic.lock().take() {
            resume_unwind(panic);
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        let _bed = self.shared.bed.lock();
        self.shared.wake.notify_all();
    }
}

impl Shared {
    /// Offers a region to the team, and wakes as many threads as it lacks.
    fn begin(&self, region: &Arc<Region>, helpers: usize) {
        self.open.lock().push(Arc::clone(region));
        // With what a thread does that falls asleep: either it sees the region, or it is seen asleep.
        self.begun.fetch_add(1, Ordering::SeqCst);
        if self.sleeping.load(Ordering::SeqCst) > 0 {
            let lacking = helpers.saturating_sub(self.looking.load(Ordering::Relaxed));
            let _bed = self.bed.lock();
            for _ in 0..lacking.min(self.sleeping.load(Ordering::Relaxed)) {
                self.wake.notify_one();
            }
        }
    }

    /// What a thread of the team does.
    fn attend(&self) {
        while !self.ended.load(Ordering::Relaxed) {
            let seen = self.begun.load(Ordering::SeqCst);
            match self.join() {
                Some(region) => region.help(),
                None => self.idle(seen),
            }
        }
    }

    /// A region that this thread has joined.
    fn join(&self) -> Option<Arc<Region>> {
        let open = self.open.lock();
        open.iter().rev().find(|region| region.admits()).cloned()
    }

    /// Waits until a region is begun after the `seen` first ones.
    fn idle(&self, seen: usize) {
        let nothing = || self.begun.load(Ordering::SeqCst) == seen && !self.ended.load(Ordering::SeqCst);
        if self.looks {
            self.looking.fetch_add(1, Ordering::Relaxed);
            let found = look_until(|| !nothing());
            self.looking.fetch_sub(1, Ordering::Relaxed);
            if found {
                return;
            }
        }
        let mut bed = self.bed.lock();
        self.sleeping.fetch_add(1, Ordering::SeqCst);
        while nothing() {
            self.wake.wait(&mut bed);
        }
        self.sleeping.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Region {
    /// Joins, if that is allowed still.
    fn admits(&self) -> bool {
        let seat = self.seats.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        let join = |n: usize| (n & CLOSED == 0).then_some(n + 1);
        seat.is_ok() && self.present.fetch_update(Ordering::Acquire, Ordering::Relaxed, join).is_ok()
    }

    /// Works until no piece is left, and leaves.
    fn help(&self) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(self.work)) {
            *self.panic.lock() = Some(panic);
        }
        // Nothing is left for others either.
        self.present.fetch_or(CLOSED, Ordering::Relaxed);
        if self.present.fetch_sub(1, Ordering::AcqRel) == CLOSED | 1 {
            self.owner.unpark();
        }
    }
}

/// A region that is lent; it is taken back when this is dropped.
struct Open<'a> {
    shared: &'a Shared,
    region: &'a Arc<Region>,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.region.present.fetch_or(CLOSED, Ordering::Relaxed);
        self.shared.open.lock().retain(|region| !Arc::ptr_eq(region, self.region));
        let empty = || self.region.present.load(Ordering::Acquire) == CLOSED;
        if empty() || (self.shared.looks && look_until(empty)) {
            return;
        }
        while !empty() {
            std::thread::park();
        }
    }
}

/// Looks for a while whether something holds. False where it does not in that time.
fn look_until(holds: impl Fn() -> bool) -> bool {
    let mut since = None;
    loop {
        for _ in 0..LOOKS {
            if holds() {
                return true;
            }
            std::hint::spin_loop();
        }
        let past = since.get_or_insert_with(Instant::now).elapsed();
        if past > PATIENCE {
            return false;
        }
        if past > COURTEOUS {
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STACK_BYTES: usize = 1 << 20;

    /// Adds up `0..count` on the team.
    fn sum(team: &Team, count: usize) -> usize {
        let (next, sum) = (AtomicUsize::new(0), AtomicUsize::new(0));
        team.run(3, &|| {
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= count {
                    return;
                }
                sum.fetch_add(n, Ordering::Relaxed);
            }
        });
        sum.into_inner()
    }

    #[test]
    fn loops_of_many_threads_are_done_once() {
        for looks in [false, true] {
            let team = Team::new(3, STACK_BYTES, looks).expect("threads start");
            std::thread::scope(|scope| {
                for thread in 0..8 {
                    let team = &team;
                    scope.spawn(move || {
                        for n in 0..300 {
                            let count = 2 + (n * 7 + thread) % 50;
                            assert_eq!(sum(team, count), count * (count - 1) / 2);
                            if n % 100 == 0 {
                                // The team falls asleep in between.
                                std::thread::sleep(PATIENCE * 3);
                            }
                        }
                    });
                }
            });
        }
    }

    #[test]
    fn helpers_join_and_loops_nest() {
        let team = Team::new(1, STACK_BYTES, true).expect("threads start");
        // Each call waits for the other, so that both threads must be there.
        let (arrived, inner) = (AtomicUsize::new(0), AtomicUsize::new(0));
        team.run(1, &|| {
            arrived.fetch_add(1, Ordering::SeqCst);
            while arrived.load(Ordering::SeqCst) < 2 {
                std::thread::yield_now();
            }
            inner.fetch_add(sum(&team, 10), Ordering::SeqCst);
        });
        assert_eq!((arrived.into_inner(), inner.into_inner()), (2, 90));
    }

    #[test]
    fn panics_reach_the_thread_that_asks_and_the_team_goes_on() {
        let team = Team::new(1, STACK_BYTES, true).expect("threads start");
        let owner = std::thread::current().id();
        for in_helper in [false, true] {
            let arrived = AtomicUsize::new(0);
            let call = || {
                arrived.fetch_add(1, Ordering::SeqCst);
                while arrived.load(Ordering::SeqCst) < 2 {
                    std::thread::yield_now();
                }
                assert!((std::thread::current().id() == owner) == in_helper, "on purpose");
            };
            let caught = catch_unwind(AssertUnwindSafe(|| team.run(1, &call)));
            let text = caught.expect_err("it panics").downcast::<&str>().map(|s| *s);
            assert_eq!(text.ok(), Some("on purpose"));
            assert_eq!(sum(&team, 100), 4950);
        }
    }

    #[test]
    fn threads_end_with_their_team() {
        let team = Team::new(2, STACK_BYTES, true).expect("threads start");
        assert_eq!(sum(&team, 100), 4950);
        let shared = Arc::downgrade(&team.shared);
        drop(team);
        let begin = Instant::now();
        while shared.strong_count() > 0 {
            assert!(begin.elapsed() < Duration::from_secs(20), "threads still hold what they share");
            std::thread::yield_now();
        }
    }
}
