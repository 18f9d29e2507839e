//! Modules that are kept on disk: who finds them, who does not, and what becomes of damaged ones.

use super::*;
use crate::backends::cache::{CacheReport, DiskCache, Kind, LIMIT, entry};
use crate::diag::log::LogSpec;
use crate::diag::{Result, Source};
use crate::dialects::{Registry, Run};
use crate::frontend::archive::{Code, Compiled};
use crate::frontend::script::{ArchiveCode, Library, compile_archive};
use crate::ir::{Attr, Module, Symbol, Type};
use crate::passes::manager::Settings;
use crate::passes::parse;
use crate::runtime::Program;
use crate::tensor::Tensor;
use crate::value::{Object, Value};
use flambeau_files::Temporary;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

const CODE: &str = "class M(Module):
  __parameters__ = []
  __buffers__ = []
  n : int
  def forward(self: __torch__.M, x: Tensor) -> Tensor:
    y = torch.mul(x, torch.neg(CONSTANTS.c0))
    return torch.add((self).twice(y), CONSTANTS.c1)
  def twice(self: __torch__.M, x: Tensor) -> Tensor:
    return torch.mul(x, 2)
  def named(self: __torch__.M) -> int:
    return self.n
";

/// An archive's code with these constants.
struct Archive {
    source: Arc<Source>,
    constants: Vec<(Type, Attr)>,
    classes: Vec<String>,
}

impl Library for Archive {
    fn source(&self, module: &str) -> Option<Result<Arc<Source>>> {
        (module == "__torch__").then(|| Ok(Arc::clone(&self.source)))
    }
}

fn numbers(count: i64, first: f32) -> Attr {
    let numbers: Vec<f32> = (0..count).map(|n| first + n as f32 / 8.0).collect();
    Attr::Tensor(Tensor::from_vec(&numbers, &[count]).expect("small"))
}

/// With a large constant and a small one.
fn archive(text: &str, large: f32, small: f32) -> Archive {
    let source = Source::new("code/__torch__.py", text);
    let constants = [numbers(20_000, large), numbers(1, small)].map(|attr| (Type::tensor(), attr));
    Archive { source, constants: constants.into(), classes: vec!["__torch__.M".to_string()] }
}

fn compiled(archive: &Archive) -> Result<Module> {
    let Archive { source, constants, classes } = archive;
    let library = Archive { source: Arc::clone(source), constants: Vec::new(), classes: Vec::new() };
    let code = ArchiveCode { library, constants: constants.clone(), classes: classes.clone() };
    compile_archive(&Registry::builtin(), code)
}

fn cache(folder: &Temporary) -> Arc<DiskCache> {
    Arc::new(DiskCache::new(Kind::Modules, folder.path().join("modules"), LIMIT))
}

/// The program of an archive with a cache, or without one.
fn program(archive: &Archive, cache: Option<&Arc<DiskCache>>) -> Program {
    let instance = Object::new(Symbol::new("__torch__.M"));
    instance.set(Symbol::new("n"), Value::Int(7));
    let Some(cache) = cache else {
        let module = compiled(archive).expect("compiles");
        return Program::with(module, Some(instance), Registry::builtin());
    };
    let Archive { source, constants, classes } = archive;
    let keeper = Keeper::in_cache(Arc::clone(cache));
    let code = Code { version: 3, sources: &[Arc::clone(source)], constants, classes };
    let module = keeper.module(&code, Box::new(|| compiled(archive))).expect("compiles");
    let program = Program::with(module, Some(instance), Registry::builtin());
    match keeper.into_origin() {
        Some(origin) => program.with_origin(origin),
        None => program,
    }
}

const PASSES: &str = "inline,constant-propagation,dce";

/// The program after a pipeline that a call of `forward` is run by.
fn passed(program: &Program, passes: &str, mut settings: Settings) -> Program {
    settings.roots = vec![Symbol::new("__torch__.M.forward")];
    if let Some(instance) = program.instance() {
        settings.extras.set(Arc::new(instance.clone()));
    }
    let pipeline = parse(passes).expect("passes");
    let change = |module: &mut Module, registry: &Registry| {
        pipeline.run_with(module, registry, settings.clone()).map(drop)
    };
    program.passed((&pipeline, &settings), change).expect("they pass")
}

fn answer(program: &Program) -> String {
    let x = Tensor::from_vec(&[1.5f32], &[1]).expect("small");
    program.run("forward", vec![x.into()], &Run::silent()).expect("runs").to_text()
}

/// The same archive with a cache and without one: the same text, the same answers. What became of the cache.
fn both(archive: &Archive, cache: &Arc<DiskCache>) -> CacheReport {
    let before = cache.report();
    let (kept, plain) = (program(archive, Some(cache)), program(archive, None));
    assert_eq!(kept.module().to_string(), plain.module().to_string());
    let through = |program: &Program| passed(program, PASSES, Settings::default());
    let (kept, plain) = (through(&kept), through(&plain));
    assert_eq!(kept.module().to_string(), plain.module().to_string());
    assert_eq!(answer(&kept), answer(&plain));
    let CacheReport { loaded, missed, written, .. } = cache.report();
    CacheReport {
        loaded: loaded - before.loaded,
        missed: missed - before.missed,
        written: written - before.written,
        ..cache.report()
    }
}

fn numbers_of(report: &CacheReport) -> [u64; 3] {
    [report.loaded, report.missed, report.written]
}

fn files(cache: &DiskCache) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(cache.folder())
        .into_iter()
        .flatten()
        .map(|file| file.expect("an entry").path())
        .collect();
    files.sort();
    files
}

#[test]
fn a_second_program_is_read() {
    let folder = Temporary::new("modules").expect("a folder");
    let cache = cache(&folder);
    let archive = archive(CODE, 1.0, 2.0);
    assert_eq!(numbers_of(&both(&archive, &cache)), [0, 2, 2]);
    assert_eq!(numbers_of(&both(&archive, &cache)), [2, 0, 0]);
    let listed = cache.list().expect("readable");
    let mut names: Vec<String> = listed.into_iter().map(|entry| entry.name.expect("whole")).collect();
    names.sort();
    assert_eq!(names, ["__torch__.M", "__torch__.M after passes"]);
}

#[test]
fn what_is_read_goes_on_as_what_was_made() {
    let folder = Temporary::new("modules").expect("a folder");
    let cache = cache(&folder);
    let archive = archive(CODE, 1.0, 2.0);
    // Later passes name values by what was named before.
    let further = |program: Program| {
        passed(&passed(&program, PASSES, Settings::default()), "fuse", Settings::default())
            .module()
            .to_string()
    };
    let first = further(program(&archive, Some(&cache)));
    assert_eq!(further(program(&archive, Some(&cache))), first);
}

#[test]
fn other_code_constants_or_classes_are_another_module() {
    let folder = Temporary::new("modules").expect("a folder");
    let cache = cache(&folder);
    both(&archive(CODE, 1.0, 2.0), &cache);
    let added = format!("{CODE}  def more(self: __torch__.M) -> int:\n    return 1\n");
    assert_eq!(numbers_of(&both(&archive(&added, 1.0, 2.0), &cache)), [0, 2, 2]);
    assert_eq!(numbers_of(&both(&archive(CODE, 1.0, 3.0), &cache)), [0, 2, 2], "a small constant");
    let mut fewer = archive(CODE, 1.0, 2.0);
    fewer.classes.clear();
    program(&fewer, Some(&cache));
    assert_eq!(cache.report().written, 7);
}

#[test]
fn elements_that_a_pass_read_are_those_of_the_module() {
    let folder = Temporary::new("modules").expect("a folder");
    let cache = cache(&folder);
    both(&archive(CODE, 1.0, 2.0), &cache);
    // Compiling reads no large constant, and propagation of constants did.
    assert_eq!(numbers_of(&both(&archive(CODE, 5.0, 2.0), &cache)), [1, 1, 1]);
    assert_eq!(numbers_of(&both(&archive(CODE, 5.0, 2.0), &cache)), [2, 0, 0]);
}

#[test]
fn what_is_not_kept_is_counted() {
    let folder = Temporary::new("modules").expect("a folder");
    let cache = cache(&folder);
    let archive = archive(CODE, 1.0, 2.0);
    let program = program(&archive, Some(&cache));
    let log = LogSpec::parse("dce").expect("a topic");
    passed(&program, PASSES, Settings { log, ..Settings::default() });
    passed(&program, PASSES, Settings { record_steps: true, ..Settings::default() });
    passed(&program, "freeze", Settings::default());
    let report = cache.report();
    let reasons: Vec<(&str, u64)> = report.unkept.iter().map(|(reason, n)| (*reason, *n)).collect();
    assert_eq!(
        reasons,
        [
            ("passes are examined", 1),
            ("passes are limited or logged", 1),
            ("passes read attributes of the module", 1)
        ]
    );
    assert_eq!(report.written, 1);
    assert!(report.to_text(&cache).contains(", 1 not kept: passes are examined, 1 not kept:"));
}

#[test]
fn what_passes_take_away_is_gone_when_it_is_read() {
    let folder = Temporary::new("modules").expect("a folder");
    let cache = cache(&folder);
    let archive = archive(CODE, 1.0, 2.0);
    let pipeline = parse("dce").expect("a pass");
    let gone = || {
        let program = program(&archive, Some(&cache));
        let changed = program.passed((&pipeline, &Settings::default()), |module, _| {
            module.functions.shift_remove(&Symbol::new("__torch__.M.named"));
            let twice = module.functions[&Symbol::new("__torch__.M.twice")].clone();
            module
                .functions
                .insert(Symbol::new("again"), crate::ir::Function { name: "again".into(), ..twice });
            Ok(())
        });
        changed.expect("changes").module().to_string()
    };
    let made = gone();
    assert_eq!(gone(), made);
    assert!(!made.contains("graph @__torch__.M.named") && made.contains("graph @again"));
    assert_eq!(cache.report().loaded, 2);
}

#[test]
fn damaged_modules_are_made_anew() {
    let folder = Temporary::new("modules").expect("a folder");
    let cache = cache(&folder);
    let archive = archive(CODE, 1.0, 2.0);
    both(&archive, &cache);
    for file in files(&cache) {
        let whole = fs::read(&file).expect("readable");
        let content = whole.len() - 32;
        for at in (0..content).step_by(content / 60) {
            let mut bytes = whole[..content].to_vec();
            bytes[at] = bytes[at].wrapping_add(1);
            for bytes in [entry::sealed(bytes.clone()), bytes, entry::sealed(whole[..at].to_vec())] {
                fs::write(&file, bytes).expect("writable");
                // What passes the checksum may say anything, and raises at worst.
                let kept = passed(&program(&archive, Some(&cache)), PASSES, Settings::default());
                let _ = kept.run("forward", vec![Value::Int(1)], &Run::silent());
            }
        }
        fs::write(&file, &whole).expect("writable");
    }
    assert_eq!(numbers_of(&both(&archive, &cache)), [2, 0, 0]);
}
