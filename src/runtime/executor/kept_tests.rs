//! Plans that are kept on disk: who finds them, who does not, and what becomes of damaged ones.

use crate::backends::cache::{DiskCache, Kind, LIMIT, entry};
use crate::diag::log::LogSpec;
use crate::dialects::{Gradients, Registry, Run};
use crate::ir::Symbol;
use crate::runtime::hook_tests::program_of;
use crate::runtime::{PlanReport, Program};
use crate::tensor::Tensor;
use crate::value::{Object, Value};
use flambeau_files::Temporary;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

/// A convolution with its batch norm, and a product with what is computed of a weight.
const HEADER: &str = "  training : bool\n  w : Tensor\n  mean : Tensor\n  var : Tensor\n  m : Tensor\n";
const FORWARD: &str = "def forward(self, x: Tensor) -> Tensor:\n    y = torch.batch_norm(torch.conv2d(x, self.w), None, None, self.mean, self.var, self.training, 0.1, 0.001, False)\n    return torch.matmul(torch.relu(y).mean([2, 3]), torch.neg(self.m)) + 1.0\n";

fn cache(folder: &Temporary) -> Arc<DiskCache> {
    Arc::new(DiskCache::new(Kind::Plans, folder.path().join("plans"), LIMIT))
}

fn numbers(sizes: &[i64], seed: u32) -> Value {
    let count: i64 = sizes.iter().product();
    let number =
        |n: i64| ((n as u32).wrapping_mul(2_654_435_761).wrapping_add(seed << 24) >> 20) as f32 / 4096.0;
    Tensor::from_vec(&(0..count).map(number).collect::<Vec<f32>>(), sizes).expect("small").into()
}

/// The module with weights of these seeds: of the convolution, the norm, the product. The first and the last are large storages.
fn module([w, mean, m]: [u32; 3]) -> Program {
    let module = program_of("__torch__.M", HEADER, &[FORWARD]).expect("compiles");
    let instance = Object::new(Symbol::new("__torch__.M"));
    for (name, value) in [
        ("training", Value::Bool(false)),
        ("w", numbers(&[160, 16, 3, 3], w)),
        ("mean", numbers(&[160], mean)),
        ("var", numbers(&[160], 77)),
        ("m", numbers(&[160, 160], m)),
    ] {
        instance.set(Symbol::new(name), value);
    }
    Program::with(module, Some(instance), Registry::builtin()).planned()
}

fn call(program: &Program) -> String {
    let run = Run::silent();
    run.set_grad_enabled(false);
    program.run("forward", vec![numbers(&[1, 16, 8, 8], 5)], &run).expect("runs").to_text()
}

fn graph(program: &Program) -> String {
    program.plan_graphs().first().expect("a plan").1.to_string()
}

/// The answer and what became of its plan, of a program with a cache. The answer is that without.
fn answer(program: &Program, cache: &Arc<DiskCache>) -> PlanReport {
    let kept = program.keeping_plans_in(Arc::clone(cache));
    let plain = program.planned();
    assert_eq!(call(&kept), call(&plain));
    assert_eq!(graph(&kept), graph(&plain));
    kept.plan_report()
}

fn files(cache: &DiskCache) -> Vec<PathBuf> {
    let files = fs::read_dir(cache.folder()).into_iter().flatten();
    files.map(|file| file.expect("an entry").path()).collect()
}

#[test]
fn a_second_program_takes_the_plan() {
    let folder = Temporary::new("kept").expect("a folder");
    let cache = cache(&folder);
    let first = answer(&module([1, 2, 3]), &cache);
    assert_eq!((first.built, first.from_disk, first.unkept.len()), (1, 0, 0), "{:?}", first.unkept);
    let second = answer(&module([1, 2, 3]), &cache);
    assert_eq!((second.built, second.from_disk), (1, 1));
    let report = cache.report();
    assert_eq!((report.loaded, report.missed, report.written, report.damaged), (1, 1, 1, 0));
    let making = module([1, 2, 3]).keeping_plans_in(cache);
    call(&making);
    let makings: Vec<_> = making.plan_makings().into_values().collect();
    let plain = module([1, 2, 3]);
    call(&plain);
    let expected: Vec<_> = plain.plan_makings().into_values().collect();
    assert_eq!(makings[0].rules, expected[0].rules);
    assert!(makings[0].kept > 3);
    let what = |making: &crate::runtime::Making| -> Vec<(String, u64, usize, u64, String)> {
        let of = |stage: &crate::runtime::Stage| {
            let removed = format!("{:?}", stage.removed);
            (stage.pass.to_string(), stage.changes, stage.ops, stage.bytes, removed)
        };
        making.stages.iter().map(of).collect()
    };
    assert_eq!(what(&makings[0]), what(&expected[0]));
}

#[test]
fn weights_that_no_pass_read_may_be_others() {
    let folder = Temporary::new("kept").expect("a folder");
    let cache = cache(&folder);
    answer(&module([1, 2, 3]), &cache);
    assert_eq!(answer(&module([9, 2, 3]), &cache).from_disk, 1);
    // Small ones are part of the key: batch norm is computed of them.
    assert_eq!(answer(&module([1, 8, 3]), &cache).from_disk, 0);
    assert_eq!(files(&cache).len(), 2);
}

#[test]
fn weights_that_a_pass_read_may_not() {
    let folder = Temporary::new("kept").expect("a folder");
    let cache = cache(&folder);
    answer(&module([1, 2, 3]), &cache);
    assert_eq!(answer(&module([1, 2, 4]), &cache).from_disk, 0);
    assert_eq!((cache.report().damaged, files(&cache).len()), (0, 1), "another model is not damage");
    // The newest stays.
    assert_eq!(answer(&module([1, 2, 4]), &cache).from_disk, 1);
}

#[test]
fn what_shares_memory_is_another_kind() {
    let folder = Temporary::new("kept").expect("a folder");
    let cache = cache(&folder);
    let shared = module([1, 2, 2]);
    answer(&module([1, 2, 2]), &cache);
    let instance = shared.instance().expect("an instance");
    let mean = instance.get(Symbol::new("mean")).expect("a tensor");
    instance.set(Symbol::new("var"), mean);
    assert_eq!(answer(&shared, &cache).from_disk, 0);
}

#[test]
fn what_is_not_kept_is_counted() {
    let folder = Temporary::new("kept").expect("a folder");
    let cache = cache(&folder);
    let logged = module([1, 2, 3]).logging(&LogSpec::parse("dce").expect("a topic"));
    let report = answer(&logged, &cache);
    assert_eq!(report.unkept.get("passes are limited or logged"), Some(&1), "{report:?}");
    assert!(report.to_text().contains("1 of these not put into the cache: passes are limited or logged"));
    let mut added = Registry::with_builtins();
    added
        .register("mine::twice(Tensor x) -> Tensor", |args| Ok(vec![args.tensor(0)?.clone().into()].into()))
        .expect("a schema");
    let plain = module([1, 2, 3]);
    let other = Program::with(plain.module().clone(), plain.instance().cloned(), Arc::new(added)).planned();
    let report = answer(&other, &cache);
    assert_eq!(
        report.unkept.keys().next().map(String::as_str),
        Some("ops, rules or lowerings were added to the built-in ones")
    );
    assert!(files(&cache).is_empty());
}

#[test]
fn damaged_plans_are_made_anew() {
    let folder = Temporary::new("kept").expect("a folder");
    let cache = cache(&folder);
    let program = module([1, 2, 3]);
    answer(&program, &cache);
    let file = files(&cache).pop().expect("a plan");
    let whole = fs::read(&file).expect("readable");
    let content = whole.len() - 32;
    for at in (0..content).step_by(content / 40) {
        // A checksum that fits: what was damaged before it was made.
        let mut bytes = whole[..content].to_vec();
        bytes[at] = bytes[at].wrapping_add(1);
        for bytes in [entry::sealed(bytes.clone()), bytes, entry::sealed(whole[..at].to_vec())] {
            fs::write(&file, bytes).expect("writable");
            let kept = program.keeping_plans_in(Arc::clone(&cache));
            // What passes the checksum may say anything, and raises at worst.
            let run = Run::silent();
            run.set_grad_enabled(false);
            let _ = kept.run("forward", vec![numbers(&[1, 16, 8, 8], 5)], &run);
        }
    }
    fs::write(&file, &whole[..content]).expect("writable");
    assert_eq!(answer(&program, &cache).from_disk, 0);
    assert_eq!(answer(&program, &cache).from_disk, 1, "a whole one took its place");
}

/// Calls that record gradients and write to buffers: the same gradients and the same running statistics from disk.
#[test]
fn recorded_calls_are_kept() {
    let folder = Temporary::new("kept").expect("a folder");
    let cache = cache(&folder);
    let train = "def forward(self, x: Tensor) -> Tensor:\n    y = torch.batch_norm(torch.conv2d(x, self.w), None, None, self.mean, self.var, True, 0.1, 0.001, False)\n    return torch.matmul(torch.relu(y).mean([2, 3]), self.m).sum()\n";
    let train = |disk: Option<&Arc<DiskCache>>| {
        let module = program_of("__torch__.M", HEADER, &[train]).expect("compiles");
        let plain = self::module([1, 2, 3]);
        let instance = plain.instance().cloned().expect("an instance");
        let weights = ["w", "m"].map(|name| {
            let weight = instance.get(Symbol::new(name)).expect("a tensor");
            weight.to_tensor().expect("a tensor").clone()
        });
        weights.iter().for_each(|weight| weight.set_requires_grad(true).expect("floats"));
        let mean = instance.get(Symbol::new("mean")).expect("a tensor");
        let program = Program::with(module, Some(instance), Registry::builtin()).planned();
        let program =
            disk.map_or_else(|| program.planned(), |cache| program.keeping_plans_in(Arc::clone(cache)));
        let run = Run::silent();
        let tape = crate::autodiff::Tape::of(program.registry());
        let mut said = Vec::new();
        for seed in 0..3 {
            let loss = program.run("forward", vec![numbers(&[2, 16, 8, 8], seed)], &run).expect("runs");
            let asked = Gradients {
                outputs: vec![loss.to_tensor().expect("a tensor").clone()],
                cotangents: vec![None],
                inputs: Some(weights.to_vec()),
                keep: false,
                create: false,
                allow_unused: false,
            };
            let found = tape.gradients(&asked, &run).expect("gradients");
            let found: Vec<Value> = found.into_iter().flatten().map(Value::Tensor).collect();
            said.push((loss.to_text(), mean.to_text(), found.iter().map(Value::to_text).collect::<Vec<_>>()));
        }
        (said, program.plan_report())
    };
    let (plain, _) = train(None);
    let [(first, made), (second, read)] = [(); 2].map(|()| train(Some(&cache)));
    assert!(first == plain && second == plain);
    assert_eq!((made.recording, made.from_disk, made.unkept.len()), (1, 0, 0), "{made:?}");
    assert_eq!((read.recording, read.from_disk), (1, 1), "{read:?}");
}

/// Sizes that follow from those of arguments: a sum, a product, a quotient.
const OPEN: &str = "def forward(self, x: Tensor) -> Tensor:\n    y = torch.cat([x, x[:, 1:]], 1)\n    z = torch.max_pool1d(y.flatten().unsqueeze(0), [2], [2])\n    return torch.relu(torch.matmul(y.t(), y)).sum(0) * 2.0 + z.sum()\n";

#[test]
fn plans_of_open_sizes_are_kept() {
    let folder = Temporary::new("kept").expect("a folder");
    let cache = cache(&folder);
    let program = |disk: Option<&Arc<DiskCache>>| {
        let module = program_of("__torch__.M", "  n : int\n", &[OPEN]).expect("compiles");
        let instance = Object::new(Symbol::new("__torch__.M"));
        instance.set(Symbol::new("n"), Value::Int(1));
        let program =
            Program::with(module, Some(instance), Registry::builtin()).planned().with_static_plans(0);
        match disk {
            Some(cache) => program.keeping_plans_in(Arc::clone(cache)),
            None => program,
        }
    };
    let (plain, [first, second]) = (program(None), [(); 2].map(|()| program(Some(&cache))));
    let run = Run::silent();
    run.set_grad_enabled(false);
    let call = |program: &Program, sizes: &[i64]| {
        program.run("forward", vec![numbers(sizes, 3)], &run).expect("runs").to_text()
    };
    for program in [&first, &second] {
        for sizes in [[4, 9], [4, 5], [11, 30], [2, 2], [1, 7]] {
            assert_eq!(call(program, &sizes), call(&plain, &sizes), "{sizes:?}");
        }
    }
    let reports = [&first, &second].map(Program::plan_report);
    // The last two have plans of their own: a size of 1 is never open, and what follows from 2 would be 1.
    let built = reports.each_ref().map(|report| (report.built, report.open, report.from_disk));
    assert_eq!(built, [(3, 1, 0), (3, 1, 3)], "{reports:?}");
    assert_eq!(graph(&first), graph(&second));
    assert!(graph(&first).contains("s0"), "{}", graph(&first));
}
