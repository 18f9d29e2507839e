//! The protocols between threads under a model checker, which runs the project's own files on thousands of schedules and reports
//! deadlocks: that of storage here, that of the team of threads in `team`, that of futures in `future`.

mod future;
mod locks;
#[path = "../../src/tensor/shared.rs"]
mod shared;
mod sync;
mod team;

use libtest_mimic::{Failed, Trial};
use shared::Shared;
use shuttle::sync::mpsc;
use shuttle::thread;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Schedules of each model, and preemptions in each.
const SCHEDULES: usize = 1_500;
const PREEMPTIONS: usize = 3;

/// A storage of four numbers.
type Cells = [i64; 4];
type Store = Arc<Shared<Cells>>;

pub fn trials() -> Vec<Trial> {
    let storage: [(&str, fn()); 5] = [
        ("crossed_writers_end", crossed_writers_end),
        ("no_write_is_lost", no_write_is_lost),
        ("readers_see_whole_versions", readers_see_whole_versions),
        ("writers_that_wait_for_the_pool_end", writers_that_wait_for_the_pool_end),
        ("fixed_content_stays_in_place", fixed_content_stays_in_place),
    ];
    let models = storage.into_iter().chain(team::MODELS).chain(future::MODELS);
    models.map(|(name, model)| Trial::test(format!("model::{name}"), move || explore(model))).collect()
}

fn explore(model: fn()) -> Result<(), Failed> {
    let all = || {
        shuttle::check_random(model, SCHEDULES);
        shuttle::check_pct(model, SCHEDULES, PREEMPTIONS);
        team::nothing_was_late();
    };
    catch_unwind(AssertUnwindSafe(all)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_string())).unwrap_or_default().into()
    })
}

fn store() -> Store {
    Arc::new(Shared::new([0; 4]))
}

fn read(store: &Store) -> Arc<Cells> {
    store.read(|| Ok::<(), ()>(())).expect("is never stopped")
}

/// Opens for writing; with `fixed` the content is never copied.
fn write(store: &Store, fixed: bool, change: impl FnOnce(&mut Cells)) {
    let copy = |cells: &Cells| (!fixed).then_some(Ok::<Cells, ()>(*cells));
    let mut open = store.write(|_| 2, copy, || Ok(())).expect("is never stopped");
    assert!(open.get().len() == 4);
    change(open.get_mut().expect("it is not shared"));
}

/// `x += y` beside `y += x`.
fn crossed_writers_end() {
    let (x, y) = (store(), store());
    let add = |to: Store, from: Store| {
        move || {
            for _ in 0..2 {
                let from = read(&from);
                write(&to, false, |cells| cells[0] += from[0] + 1);
            }
        }
    };
    let other = thread::spawn(add(x.clone(), y.clone()));
    add(y.clone(), x.clone())();
    other.join().expect("ends");
    assert!(read(&x)[0] >= 2 && read(&y)[0] >= 2);
}

/// Threads that write different elements, beside one that reads.
fn no_write_is_lost() {
    let x = store();
    let writers: Vec<_> = (0..3)
        .map(|n| {
            let x = x.clone();
            thread::spawn(move || (0..2).for_each(|_| write(&x, false, |cells| cells[n] += 1)))
        })
        .collect();
    let seen = read(&x);
    assert!(seen.iter().all(|n| (0..=2).contains(n)));
    for writer in writers {
        writer.join().expect("ends");
    }
    assert_eq!(*read(&x), [2, 2, 2, 0]);
}

/// What a reader holds does not change under it.
fn readers_see_whole_versions() {
    let x = store();
    let other = x.clone();
    let writer = thread::spawn(move || {
        for n in 1..4 {
            write(&other, false, |cells| *cells = [n; 4]);
        }
    });
    for _ in 0..2 {
        let seen = read(&x);
        thread::yield_now();
        assert!(seen.iter().all(|n| *n == seen[0]));
    }
    writer.join().expect("ends");
    assert_eq!(*read(&x), [3; 4]);
}

/// Two tasks that write one storage and hand their loop to a pool of one thread while they hold it.
fn writers_that_wait_for_the_pool_end() {
    let (pieces, work) = mpsc::channel::<mpsc::Sender<()>>();
    let pool = thread::spawn(move || {
        while let Ok(done) = work.recv() {
            done.send(()).expect("the task waits");
        }
    });
    let x = store();
    let tasks: Vec<_> = (0..2)
        .map(|n| {
            let (x, pieces) = (x.clone(), pieces.clone());
            thread::spawn(move || {
                write(&x, false, |cells| {
                    let (done, wait) = mpsc::channel();
                    pieces.send(done).expect("the pool is there");
                    wait.recv().expect("the piece is done");
                    cells[n] = 1;
                });
            })
        })
        .collect();
    drop(pieces);
    for task in tasks {
        task.join().expect("ends");
    }
    pool.join().expect("ends");
    assert_eq!(*read(&x), [1, 1, 0, 0]);
}

/// The writer of fixed content waits for the reader, and nothing is copied.
fn fixed_content_stays_in_place() {
    let x = store();
    let place = Arc::as_ptr(&read(&x)) as usize;
    let other = x.clone();
    let reader = thread::spawn(move || {
        let seen = read(&other);
        thread::yield_now();
        assert!(seen.iter().all(|n| *n == seen[0]));
    });
    write(&x, true, |cells| *cells = [1; 4]);
    reader.join().expect("ends");
    let seen = read(&x);
    assert_eq!((Arc::as_ptr(&seen) as usize, *seen), (place, [1; 4]));
}
