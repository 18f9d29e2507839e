//! Loops on a team of real threads. `tests/model` explores the protocol itself.

use super::team::{PATIENCE, Team};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

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
