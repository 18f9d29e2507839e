//! The team of threads under the model checker: every loop is done, sleeping threads are woken, threads end with their team,
//! panics arrive, and no thread calls what was lent after the lender has it back.

mod sync;
#[path = "../../../src/resources/team.rs"]
#[allow(
    unused,
    reason = "the models call a part of the library's file; the library and its unit tests call the rest"
)]
#[allow(clippy::module_inception, reason = "the library's file has the name of this folder")]
mod team;

use shuttle::sync::Barrier;
use shuttle::sync::atomic::AtomicUsize;
use shuttle::thread;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use team::Team;

pub(super) const MODELS: [(&str, fn()); 7] = [
    ("team_does_every_piece_once", every_piece_is_done_once),
    ("team_wakes_who_sleeps", who_sleeps_is_woken),
    ("team_serves_several_askers", several_askers),
    ("team_nests", loops_nest),
    ("team_passes_panics_of_the_asker", panics_of_the_asker),
    ("team_passes_panics_of_helpers", panics_of_helpers),
    ("team_ends_at_once", a_team_ends_at_once),
];

thread_local! {
    /// Calls of something lent after its lender had it back. The checker runs all threads of a model on one.
    static LATE: Cell<usize> = const { Cell::new(0) };
}

/// Fails where something was called that was not lent any more. To be asked when all threads of a model have ended: a call may
/// come after the asker's last look.
pub(super) fn nothing_was_late() {
    assert_eq!(LATE.take(), 0, "a thread called what was lent after the lender had it back");
}

/// Runs a loop on the team as [`Team::run`] does, and watches when `work` is called. It is leaked, so that a call that comes too
/// late is noted instead of reaching into memory that is gone.
fn run(team: &Team, helpers: usize, work: impl Fn() + Send + Sync + 'static) {
    let lent: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(true)));
    let note = || {
        if !lent.load(SeqCst) {
            LATE.set(LATE.get() + 1);
        }
    };
    let watched = move || {
        note();
        let result = catch_unwind(AssertUnwindSafe(&work));
        note();
        if let Err(panic) = result {
            resume_unwind(panic);
        }
    };
    let watched: &'static (dyn Fn() + Sync) = Box::leak(Box::new(watched));
    let result = catch_unwind(AssertUnwindSafe(|| team.run(helpers, watched)));
    lent.store(false, SeqCst);
    if let Err(panic) = result {
        resume_unwind(panic);
    }
}

fn team(helpers: usize, looks: bool) -> Arc<Team> {
    Arc::new(Team::new(helpers, 1 << 16, looks).expect("threads start"))
}

/// Does `pieces` pieces on the team, each of which must be done once.
fn pieces(team: &Team, helpers: usize, pieces: usize) {
    let (next, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&done);
    run(team, helpers, move || {
        while next.fetch_add(1, SeqCst) < pieces {
            count.fetch_add(1, SeqCst);
        }
    });
    assert_eq!(done.load(SeqCst), pieces);
}

/// The same for teams whose threads look for work and for those whose threads sleep at once.
fn both(model: impl Fn(bool)) {
    model(false);
    model(true);
}

fn every_piece_is_done_once() {
    both(|looks| {
        let team = team(2, looks);
        pieces(&team, 2, 3);
        pieces(&team, 1, 2);
    });
}

/// Each call waits for the other, so that a helper must come, each time anew.
fn who_sleeps_is_woken() {
    both(|looks| {
        let team = team(1, looks);
        for _ in 0..2 {
            let both = Barrier::new(2);
            run(&team, 1, move || {
                both.wait();
            });
        }
    });
}

fn several_askers() {
    both(|looks| {
        let team = team(1, looks);
        let other = Arc::clone(&team);
        let asker = thread::spawn(move || pieces(&other, 1, 2));
        pieces(&team, 1, 2);
        asker.join().expect("ends");
    });
}

fn loops_nest() {
    both(|looks| {
        let team = team(1, looks);
        // What is leaked must not keep the team.
        let (inner, next) = (Arc::downgrade(&team), AtomicUsize::new(0));
        run(&team, 1, move || {
            while next.fetch_add(1, SeqCst) < 2 {
                pieces(&inner.upgrade().expect("the asker has it"), 1, 2);
            }
        });
    });
}

fn panics_of_the_asker() {
    both(|looks| {
        let team = team(1, looks);
        let owner = thread::current().id();
        let caught = catch_unwind(AssertUnwindSafe(|| {
            run(&team, 1, move || {
                if thread::current().id() == owner {
                    // Not by `panic!`, whose hook is the checker's.
                    resume_unwind(Box::new("on purpose"));
                }
            });
        }));
        assert_eq!(caught.expect_err("it panics").downcast_ref(), Some(&"on purpose"));
        pieces(&team, 1, 2);
    });
}

fn panics_of_helpers() {
    both(|looks| {
        let team = team(2, looks);
        let owner = thread::current().id();
        let panicked = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&panicked);
        let caught = catch_unwind(AssertUnwindSafe(|| {
            run(&team, 2, move || {
                if thread::current().id() != owner {
                    seen.store(true, SeqCst);
                    resume_unwind(Box::new("on purpose"));
                }
            });
        }));
        assert_eq!(caught.is_err(), panicked.load(SeqCst), "a panic is the asker's, too");
        pieces(&team, 2, 2);
    });
}

/// Threads that have hardly begun.
fn a_team_ends_at_once() {
    both(|looks| drop(team(2, looks)));
}
