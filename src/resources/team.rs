//! A team of threads that help with loops: who asks works on its own loop, and idle threads join in.
//!
//! An idle thread looks for the next loop for a while before it sleeps: the ops of a program follow each other closely, and
//! to wake a thread takes as long as a small op. Where there are fewer cores than threads it sleeps at once. A loop waits for
//! the threads that have joined it, never for one that has not: on a busy machine the asking thread does all the work itself.
//! Any number of threads may ask at the same time. The team knows neither pieces nor budgets.
//!
//! The file is also compiled against a model checker (`tests/model`), which is why threads and locks come from `super::sync`.
#![allow(unsafe_code, reason = "a loop is lent to other threads; `Open` takes it back before it ends")]

use super::sync::{self, AtomicBool, AtomicUsize, Condvar, Instant, LOOKS, Mutex, Ordering, Thread};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

/// How long an idle thread looks for work before it sleeps, and an asking one for the end of its loop.
pub(super) const PATIENCE: Duration = Duration::from_micros(200);
/// From then on it lets others have the core between two looks.
const COURTEOUS: Duration = Duration::from_micros(20);

/// Threads that wait for loops; they end with it.
pub(super) struct Team {
    pub(super) shared: Arc<Shared>,
    helpers: usize,
}

/// What the team's threads see.
pub(super) struct Shared {
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
            let thread = sync::Builder::new().name(format!("flambeau-{n}")).stack_size(stack_bytes);
            let shared = Arc::clone(&shared);
            thread.spawn(move || shared.attend()).is_ok()
        };
        let helpers = (0..helpers).take_while(|n| start(*n)).count();
        (helpers > 0).then_some(Team { shared, helpers })
    }

    /// Calls `work` here and in up to `helpers` threads of the team. `work` takes pieces until none is left; each call ends
    /// when there are none. Returns when all calls have ended; a panic in one of them goes on here.
    pub fn run(&self, helpers: usize, work: &(dyn Fn() + Sync)) {
        // SAFETY: only threads that have joined the region call `work`; `Open` lets no thread join any more and waits for those
        // that have, before this function returns or unwinds.
        let lent = unsafe { std::mem::transmute::<&(dyn Fn() + Sync), &'static (dyn Fn() + Sync)>(work) };
        let helpers = helpers.min(self.helpers);
        let region = Arc::new(Region {
            work: lent,
            present: AtomicUsize::new(0),
            seats: AtomicUsize::new(helpers),
            owner: sync::current(),
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
            sync::park();
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
            sync::spin_loop();
        }
        let past = since.get_or_insert_with(Instant::now).elapsed();
        if past > PATIENCE {
            return false;
        }
        if past > COURTEOUS {
            sync::yield_now();
        }
    }
}
