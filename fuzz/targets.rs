//! What each fuzzer does with one input. The same functions replay the corpora in the test suite. No input may
//! panic, hang or take more memory than its size justifies; what is read must survive printing and reading.

#[path = "engines.rs"]
pub mod engines;
#[path = "programs.rs"]
pub mod programs;

use flambeau::backends::cache::{DiskCache, KEY_BYTES, Key, Kind, LIMIT, entry};
use flambeau::diag::{Diagnostic, ErrorKind, Result, Source};
use flambeau::dialects::{Laws, Registry, Strictness};
use flambeau::frontend::archive::{Archive, DebugRanges, Limits, pickle, write};
use flambeau::frontend::script;
use flambeau::ir::bytecode::Outside;
use flambeau::ir::{
    self, NoLaws, ParseOptions, PrintOptions, parse_module, parse_schema, parse_type, verify_module,
};
use flambeau::passes;
use flambeau::passes::manager::{Runner, Settings};
use flambeau::rewrite;
use flambeau::toolkit::Toolkit;
use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

static REGISTRY: LazyLock<Arc<Registry>> = LazyLock::new(Registry::builtin);

/// What is done with one input.
type Target = fn(&[u8]);

/// All targets, with the names of their corpora.
pub const ALL: &[(&str, Target)] = &[
    ("source", source),
    ("program", program),
    ("schema", schema),
    ("type", type_text),
    ("graph", graph),
    ("bytecode", bytecode),
    ("mlir", mlir),
    ("passes", one_pass),
    ("rules", rules),
    ("pickle", pickle_machine),
    ("archive", archive),
    ("exported", exported),
    ("kernel", kernel),
    ("cache", cache),
];

/// Runs a target on one input.
///
/// # Panics
/// If there is no such target, and if the target finds a fault.
pub fn run(name: &str, data: &[u8]) {
    let (_, target) = ALL.iter().find(|(known, _)| *known == name).expect("a target of that name");
    target(data);
}

/// TorchScript source, through parser and compiler.
fn source(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let source = Source::new("<fuzz>", text);
    let Ok(module) = script::compile_source(&REGISTRY, &source) else { return };
    let violations = verify_module(&module, &NoLaws, &|_| None);
    assert!(violations.is_empty(), "the compiler made an invalid graph: {violations:?}");
}

/// A program that the bytes choose: all engines must agree on it (`engines.rs`).
fn program(data: &[u8]) {
    if let Err(fault) = engines::compare(&programs::write(data)) {
        panic!("{fault}");
    }
}

fn is_fault(error: &Diagnostic) -> bool {
    matches!(error.kind(), ErrorKind::Panic | ErrorKind::Internal | ErrorKind::Verify)
}

/// Operator schemas.
fn schema(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(schema) = parse_schema(text) else { return };
    let printed = schema.to_string();
    let again = parse_schema(&printed).unwrap_or_else(|e| panic!("{printed}: {e}"));
    assert_eq!(again.to_string(), printed, "printing is a fixed point");
}

/// Types, in all their spellings.
fn type_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(ty) = parse_type(text) else { return };
    let printed = ty.to_string();
    let again = parse_type(&printed).unwrap_or_else(|e| panic!("{printed}: {e}"));
    assert_eq!(again.to_string(), printed, "printing is a fixed point");
}

/// Graph text with its declarations.
fn graph(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let read = |text: &str| parse_module(&Source::new("<fuzz>", text), &ParseOptions::default());
    let Ok(parsed) = read(text) else { return };
    let printed = parsed.module.to_text(&PrintOptions::default());
    let again = read(&printed).unwrap_or_else(|e| panic!("{printed}\n{e:?}"));
    assert_eq!(again.module.to_text(&PrintOptions::default()), printed, "printing is a fixed point");
    let _ = verify_module(&parsed.module, &NoLaws, &|_| None);
    in_mlir(&parsed.module);
}

/// What is in MLIR's generic form and survives printing and reading.
fn mlir(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let parsed = ir::mlir::parse_mlir(&Source::new("<fuzz>", text), &ParseOptions::default());
    if let Ok(parsed) = parsed {
        let _ = verify_module(&parsed.module, &NoLaws, &|_| None);
        in_mlir(&parsed.module);
    }
}

/// A module that has MLIR's form is read back from it, and has the same form then.
fn in_mlir(module: &ir::Module) {
    let form = |module: &ir::Module| {
        let mut out = Vec::new();
        module.write_mlir(&mut out, &PrintOptions::default()).ok()?;
        String::from_utf8(out).ok()
    };
    let Some(text) = form(module) else { return };
    let again = ir::mlir::parse_mlir(&Source::new("<fuzz>", text.as_str()), &ParseOptions::default());
    match again {
        Ok(again) => {
            assert_eq!(form(&again.module).as_deref(), Some(text.as_str()), "printing is a fixed point")
        }
        // Deep graphs and those without a function have no text that is read.
        Err(errors) => {
            let expected = ["nests deeper", "holds no", "is visible here"];
            let known = |e: &Diagnostic| expected.iter().any(|part| e.message().contains(part));
            assert!(errors.iter().all(known), "{text}\n{errors:?}");
        }
    }
}

/// The pass that the first line names, or some pass, over the graph text after it. A pass may refuse a graph; it
/// must not panic, and what it leaves must be valid.
fn one_pass(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Some((name, text)) = text.split_once('\n') else { return };
    let Ok(parsed) = parse_module(&Source::new("<fuzz>", text), &ParseOptions::default()) else { return };
    let mut module = parsed.module;
    let laws = Laws::new(&REGISTRY, Strictness::Dialects);
    if !verify_module(&module, &laws, &|_| None).is_empty() {
        return;
    }
    let some = name.bytes().map(usize::from).sum::<usize>() % passes::TABLE.len();
    let pass = passes::TABLE.iter().find(|pass| pass.name == name).unwrap_or(&passes::TABLE[some]);
    let pipeline = Toolkit::default().parse_pipeline(pass.name).expect("a pass alone is a pipeline");
    let settings = Settings { threads: 1, verify: Some(Strictness::Dialects), ..Settings::default() };
    if let Err(error) = Runner::new(&REGISTRY, settings, &mut std::io::sink()).run(&pipeline, &mut module) {
        assert!(
            !matches!(error.kind(), ErrorKind::Panic | ErrorKind::Internal | ErrorKind::Verify),
            "{error:?}"
        );
    }
}

/// Rewrite rules.
fn rules(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(rules) = rewrite::parse(&Source::new("<fuzz>", text)) else { return };
    for rule in &rules {
        let _ = rewrite::compile(&REGISTRY, rule);
    }
}

/// The pickle machine alone.
fn pickle_machine(data: &[u8]) {
    let limits = Limits::default();
    let Ok(tree) = pickle::parse(data, &limits) else { return };
    for (id, node) in tree.iter() {
        node.children(|child| assert!(child < id, "a child stands behind its parent"));
    }
    if let Ok(ranges) = DebugRanges::decode(&tree, &limits) {
        for (start, place) in ranges.iter() {
            assert!(place.is_none_or(|place| place.text().len() <= place.source().text().len()));
            ranges.lookup(start as usize);
        }
    }
    let written = pickle::write(&tree);
    let again = pickle::parse(&written, &limits).expect("what was written is read");
    assert_eq!(pickle::write(&again), written, "writing is a fixed point");
}

/// Graphs and modules as bytes. Whatever is read is written alike, and prints.
fn bytecode(data: &[u8]) {
    let mut outside =
        Outside { sources: vec![Source::new("<fuzz>", "x = 1\ny = 2\n")], ..Outside::default() };
    if let Some(module) = ir::bytecode::read_module(data, &outside)
        && let Some(bytes) = ir::bytecode::write_module(&module, &mut outside)
    {
        let again = ir::bytecode::read_module(&bytes, &outside).expect("what is written is read");
        assert_eq!(again.to_string(), module.to_string(), "what is read is what was written");
        assert_eq!(ir::bytecode::write_module(&again, &mut outside), Some(bytes), "it is written alike");
    }
    let Some(graph) = ir::bytecode::read(data, &outside) else { return };
    let text = graph.to_string();
    let Some(bytes) = ir::bytecode::write(&graph, &mut outside) else { return };
    let again = ir::bytecode::read(&bytes, &outside).expect("what is written is read");
    assert_eq!(again.to_string(), text, "what is read is what was written");
    assert_eq!(ir::bytecode::write(&again, &mut outside), Some(bytes), "it is written alike");
}

/// Files of the cache of compiled kernels. An input that starts with an even byte is a file as it is; to one that starts with an
/// odd byte its checksum is added, so that it does not stop the fuzzer at the door.
fn kernel(data: &[u8]) {
    let Some((mode, rest)) = data.split_first() else { return };
    let file = if mode % 2 == 0 { rest.to_vec() } else { entry::sealed(rest.to_vec()) };
    let Ok(read) = entry::decode(Kind::Kernels, &file) else { return };
    assert_eq!(entry::encode(Kind::Kernels, &read), file, "what is read is what was written");
    assert!(entry::decode(Kind::Kernels, &file[..file.len() - 1]).is_err(), "a file that is cut is none");
}

/// The key of the kernel that is asked for, and of another one in the same folder.
const KEYS: [Key; 2] = [Key::from_bytes([1; KEY_BYTES]), Key::from_bytes([2; KEY_BYTES])];

/// A folder of the cache in which something happened to a kernel's file: the kernel is given as it was written where its file still
/// is what was written, and else it is not there. The first byte says what happens, the next two where, the rest is the
/// kernel's code and what is written over it.
fn cache(data: &[u8]) {
    let [what, low, high, code @ ..] = data else { return };
    let place = usize::from(u16::from_le_bytes([*low, *high]));
    let scratch = Scratch::new();
    let cache = DiskCache::new(Kind::Kernels, scratch.0.join("kernels"), LIMIT);
    let path = |key: &Key| cache.folder().join(format!("{}.kernel", key.hex()));
    cache.put(&KEYS[0], "asked for", code);
    cache.put(&KEYS[1], "another", &[*what; 9]);
    let file = path(&KEYS[0]);
    let written = fs::read(&file).expect("the kernel was written");
    let mut bytes = written.clone();
    let at = place % bytes.len();
    match what % 10 {
        0 => bytes.truncate(at),
        1 => bytes.extend_from_slice(code),
        2 => bytes[at] ^= code.first().copied().unwrap_or(0),
        3 => bytes.iter_mut().skip(at).zip(code).for_each(|(byte, new)| *byte = *new),
        4 => bytes = code.to_vec(),
        // Whole, under the name of another key.
        5 => bytes = fs::read(path(&KEYS[1])).expect("the other kernel was written"),
        // Changed, with a checksum that fits again.
        6 => {
            bytes.truncate(bytes.len() - 32);
            let at = place % bytes.len();
            bytes[at] ^= code.first().copied().unwrap_or(0);
            bytes = entry::sealed(bytes);
        }
        _ => {}
    }
    fs::write(&file, &bytes).expect("its own folder");
    let mut is_whole = bytes == written;
    match what % 10 {
        7 => fs::remove_file(&file).expect("it is there"),
        8 => {
            fs::remove_file(&file).expect("it is there");
            fs::create_dir(&file).expect("nothing is there");
        }
        // Longer than any kernel; the file has no blocks for that.
        9 => File::options()
            .write(true)
            .open(&file)
            .and_then(|f| f.set_len(entry::MAX_FILE + 1))
            .expect("a sparse file"),
        _ => {}
    }
    is_whole &= what % 10 < 7;
    let listed = cache.list().expect("the folder is its own");
    let own = listed.iter().find(|listed| listed.key == KEYS[0]);
    let found = cache.get(&KEYS[0]);
    match (&found, entry::decode_for(Kind::Kernels, &bytes, &KEYS[0])) {
        // With a checksum that fits, the name and the code are what the file says.
        (Some(found), Ok(entry)) if what % 10 < 7 => assert_eq!(found, entry.content),
        (Some(_), _) => panic!("a file that is not whole was used"),
        (None, _) => assert!(!is_whole, "a whole file was not used"),
    }
    assert_eq!(
        own.is_some_and(|listed| listed.name.is_ok()),
        found.is_some(),
        "what is listed as whole is used"
    );
    assert_eq!(cache.get(&KEYS[1]).as_deref(), Some(&[*what; 9][..]), "the other file is not concerned");
    // What is compiled instead takes its place, unless that is a folder.
    cache.put(&KEYS[0], "again", b"new code");
    assert_eq!(cache.get(&KEYS[0]).as_deref(), (what % 10 != 8).then_some(&b"new code"[..]));
}

/// A folder of its own, which goes with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("flambeau-fuzz-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).expect("the system's temporary folder takes files");
        Scratch(folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Whole archives. An input that starts with an even byte is a file as it is; one that starts with an odd
/// byte is a recipe, whose pieces become the entries of a valid zip, so that checksums do not stop the
/// fuzzer at the door.
fn archive(data: &[u8]) {
    let Some((mode, rest)) = data.split_first() else { return };
    let bytes = if mode % 2 == 0 { rest.to_vec() } else { assemble(rest) };
    // A budget below the fuzzer's memory limit.
    let limits = Limits { budget_base: 16 << 20, ..Limits::default() };
    if let Ok(archive) = Archive::from_bytes_with(bytes, limits) {
        let _ = exercise(archive);
    }
}

/// A model whose entries are runs of the input, each after its length in two bytes.
fn assemble(mut rest: &[u8]) -> Vec<u8> {
    let mut next = || {
        let (length, tail) = rest.split_first_chunk::<2>().unwrap_or((&[0; 2], rest));
        let (piece, tail) = tail.split_at(usize::from(u16::from_le_bytes(*length)).min(tail.len()));
        rest = tail;
        piece
    };
    let mut writer = write::Writer::new(Vec::new(), "m").expect("a fine name");
    let names = ["data.pkl", "constants.pkl", "code/__torch__.py", "code/__torch__.py.debug_pkl", "data/0"];
    for name in names {
        writer.add(name, next()).expect("a fine entry");
    }
    writer.add("version", b"3\n").expect("a fine entry");
    writer.finish().expect("memory takes all")
}

/// Reads all that there is, writes it again, which must succeed if reading did, and builds the model.
fn exercise(archive: Archive) -> Result<()> {
    let mut writer = write::Writer::new(Vec::new(), archive.root_prefix()).expect("the name was read");
    for name in archive.names().filter(|name| !name.ends_with('/')) {
        writer.add(name, &archive.read(name)?).expect("the entry was read");
    }
    for name in archive.code_files() {
        archive.source(name)?;
        archive.debug_ranges(name)?;
    }
    for stem in ["data", "constants"] {
        let tree = archive.pickle(stem)?;
        for storage in tree.storages().take(100) {
            let bytes = archive.storage_bytes(stem, storage)?;
            assert!(bytes.len() as u64 >= storage.bytes());
        }
        pickle::parse(&pickle::write(&tree), archive.limits()).expect("what was written is read");
    }
    let written = writer.finish().expect("memory takes all");
    Archive::from_bytes(written).expect("what was written is read");
    flambeau::frontend::archive::load(&REGISTRY, archive).map(|_| ())
}

/// The message of an exported program, in an archive with three small tensors. What can be built must be a valid graph, in
/// text too.
fn exported(data: &[u8]) {
    let meta = r#"{"dtype":7,"sizes":[{"as_int":3}],"strides":[{"as_int":1}],"storage_offset":{"as_int":0}}"#;
    let row = |name: &str| format!(r#""{name}":{{"path_name":"weight_0","tensor_meta":{meta}}}"#);
    let table = format!(r#"{{"config":{{{},{},{}}}}}"#, row("n"), row("m.hidden"), row("m.c"));
    let mut writer = write::Writer::new(Vec::new(), "m").expect("a fine name");
    writer.add("version", b"6\n").expect("a fine entry");
    writer.add("models/model.json", data).expect("a fine entry");
    writer.add("data/weights/model_weights_config.json", table.as_bytes()).expect("a fine entry");
    writer.add("data/weights/weight_0", &[0; 12]).expect("a fine entry");
    let archive = Archive::from_bytes(writer.finish().expect("memory takes all")).expect("a fine archive");
    let module = match flambeau::frontend::archive::load(&REGISTRY, archive) {
        Ok(model) => model.module,
        Err(error) => {
            assert!(!is_fault(&error), "{error:?}");
            return;
        }
    };
    let violations = verify_module(&module, &NoLaws, &|_| None);
    assert!(violations.is_empty(), "the reader made an invalid graph: {violations:?}");
}
