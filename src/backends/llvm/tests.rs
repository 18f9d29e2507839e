//! Kernels and the cache on disk: the same bits, whatever lies in the folder.

use super::*;
use crate::backends::cache::{CacheReport, Kind, LIMIT};
use crate::backends::{Arg, Buffer, Launch, Memory};
use crate::dialects::loops;
use crate::ir::parse_graph;
use flambeau_files::Temporary;
use std::fs;
use std::path::PathBuf;

/// `out[i] = op(a[i])`
fn unary(op: &str) -> Kernel {
    let text = format!(
        "graph(%out : loop.buffer<loop.f32>, %a : loop.buffer<loop.f32>, %n : loop.i64):
  %zero : loop.i64 = loop::const[value=0]()
  %one : loop.i64 = loop::const[value=1]()
   = loop::for[mark=\"parallel_vector\"](%zero, %n, %one)
    block0(%i : loop.i64):
      %x : loop.f32 = loop::load(%a, %i)
      %y : loop.f32 = {op}(%x)
       = loop::store(%out, %i, %y)
      -> ()
  return ()
"
    );
    loops::decode(&parse_graph(&text).expect("parses")).expect("a kernel")
}

fn run(executable: &dyn Executable, given: &[f32]) -> Vec<u32> {
    let mut out = vec![f32::NAN; given.len()];
    let args = vec![
        Arg::Buffer(Buffer::whole(0, given.len())),
        Arg::Buffer(Buffer::whole(1, given.len())),
        Arg::Int(given.len() as i64),
    ];
    let memory =
        vec![Memory::Write(bytemuck::cast_slice_mut(&mut out)), Memory::Read(bytemuck::cast_slice(given))];
    // SAFETY: the kernel reads and writes as many elements as it is given, each once.
    #[allow(unsafe_code, reason = "runs one kernel without a group")]
    unsafe { executable.run(&mut Launch { memory, args: args.into(), grain: 1 }) }.expect("runs");
    out.into_iter().map(f32::to_bits).collect()
}

/// Odd, so that there is a tail.
fn numbers() -> Vec<f32> {
    (0..1003).map(|n| (n - 500) as f32 / 64.0).collect()
}

fn open(folder: &Temporary) -> (Arc<DiskCache>, Llvm) {
    let cache = Arc::new(DiskCache::new(Kind::Kernels, folder.path().join("kernels"), LIMIT));
    let llvm = Llvm::cached(Arc::clone(&cache)).expect("starts");
    (cache, llvm)
}

/// The one file of the cache.
fn only(cache: &DiskCache) -> PathBuf {
    let mut files = fs::read_dir(cache.folder()).expect("there").map(|file| file.expect("an entry").path());
    let file = files.next().expect("one");
    assert!(files.next().is_none(), "one kernel, one file");
    file
}

#[test]
fn a_second_backend_compiles_nothing_and_gives_the_same_bits() {
    let folder = Temporary::new("llvm").expect("a folder");
    // Calls functions of the C library, has constants in a section of their own, is plain arithmetic.
    for op in ["loop::lgamma", "loop::tanh", "loop::neg"] {
        let (_, first) = open(&folder);
        let compiled = first.compile(&unary(op)).expect("compiles");
        assert!(!compiled.is_cached());
        let (cache, second) = open(&folder);
        let loaded = second.compile(&unary(op)).expect("is there");
        assert!(loaded.is_cached());
        assert_eq!(cache.report(), CacheReport { loaded: 1, ..CacheReport::default() });
        assert_eq!(run(&*loaded, &numbers()), run(&*compiled, &numbers()), "{op}");
    }
}

#[test]
fn one_kernel_may_be_linked_more_than_once() {
    let folder = Temporary::new("llvm").expect("a folder");
    let (_, llvm) = open(&folder);
    let kernel = unary("loop::exp");
    let key = llvm.shared.machine.key(&kernel);
    let new = || Compiled::new(kernel.clone(), &key, Arc::clone(&llvm.shared)).expect("links");
    let (first, second) = (new(), new());
    assert_eq!([first.is_cached(), second.is_cached()], [false, true]);
    let bits = run(&first, &numbers());
    assert_eq!(run(&second, &numbers()), bits);
    drop(first);
    assert_eq!(run(&second, &numbers()), bits);
    assert_eq!(run(&new(), &numbers()), bits);
}

#[test]
fn kernels_that_differ_in_a_sign_of_zero_differ() {
    let folder = Temporary::new("llvm").expect("a folder");
    let (_, llvm) = open(&folder);
    let constant = |number: &str| {
        let text = format!(
            "graph(%out : loop.buffer<loop.f32>, %a : loop.buffer<loop.f32>, %n : loop.i64):
  %zero : loop.i64 = loop::const[value=0]()
  %c : loop.f32 = loop::const[value={number}]()
   = loop::store(%out, %zero, %c)
  return ()
"
        );
        loops::decode(&parse_graph(&text).expect("parses")).expect("a kernel")
    };
    for (number, bits) in [("0.", 0), ("-0.", 1 << 31), ("0.", 0)] {
        let executable = llvm.compile(&constant(number)).expect("compiles");
        assert_eq!(run(&*executable, &[1.0]), [bits], "{number}");
    }
}

#[test]
fn whatever_lies_in_the_folder_the_answer_is_right() {
    let folder = Temporary::new("llvm").expect("a folder");
    let kernel = unary("loop::sin");
    let (cache, llvm) = open(&folder);
    let expected = run(&*llvm.compile(&kernel).expect("compiles"), &numbers());
    let (file, key) = (only(&cache), llvm.shared.machine.key(&kernel));
    let whole = fs::read(&file).expect("written");
    // Magic, version, key, lengths, name, code, checksum; cut in several places.
    for at in [0, 8, 12, 44, 46, 54, whole.len() / 2, whole.len() - 1] {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x41;
        for bytes in [&damaged[..], &whole[..at]] {
            fs::write(&file, bytes).expect("ours");
            let (cache, llvm) = open(&folder);
            let executable = llvm.compile(&kernel).expect("compiles");
            assert_eq!(run(&*executable, &numbers()), expected);
            let report = CacheReport { damaged: 1, written: 1, ..CacheReport::default() };
            assert_eq!(cache.report(), report, "byte {at}");
            assert_eq!(fs::read(&file).expect("written"), whole, "the same code again");
        }
    }
    // Complete files without valid code, with the name that it should have and without.
    let name = symbol::of(&key);
    let header = [&b"\x7fELF\x02\x01\x01"[..], &[0; 60], name.as_bytes()].concat();
    for code in [&b"no object"[..], name.as_bytes(), &header] {
        cache.put(&key, "", code);
        let (cache, llvm) = open(&folder);
        let executable = llvm.compile(&kernel).expect("compiles");
        assert_eq!(run(&*executable, &numbers()), expected);
        assert_eq!((cache.report().damaged, cache.report().loaded), (1, 0));
    }
}

#[test]
fn streaming_stores_are_another_kernel() {
    let folder = Temporary::new("llvm").expect("a folder");
    let (cache, llvm) = open(&folder);
    let kernel = unary("loop::neg");
    for cached in [false, true] {
        assert_eq!(llvm.shared.streaming(&kernel).expect("compiles").cached, cached);
        let plain = llvm.shared.plain(&kernel, &llvm.shared.machine.key(&kernel)).expect("compiles");
        assert_eq!(plain.cached, cached);
    }
    assert_eq!(cache.list().expect("ours").len(), 2);
}

/// Objects name what they need, so that they can be linked in any process: nothing of this one stands in them.
#[test]
fn objects_are_relocatable_and_refer_by_name() {
    let machine = Machine::host();
    for op in ["loop::lgamma", "loop::tanh", "loop::neg"] {
        let kernel = unary(op);
        let key = machine.key(&kernel);
        let of = |kernel: &Kernel| {
            generate(kernel, &machine, &symbol::of(&key), FileType::Object).expect("compiles")
        };
        let object = of(&kernel);
        assert_eq!(object, of(&kernel), "equal kernels are equal objects");
        let names = elf::symbols(&object);
        let undefined: Vec<&str> =
            names.iter().filter(|s| s.1 == elf::UNDEFINED).map(|s| s.0.as_str()).collect();
        let expected: &[&str] = if op == "loop::lgamma" { &["lgammaf"] } else { &[] };
        assert_eq!(undefined, expected, "{op}");
        assert!(names.iter().any(|s| s.0 == symbol::of(&key) && s.1 != elf::UNDEFINED));
        assert!(names.iter().all(|s| s.1 != elf::ABSOLUTE || s.2 == elf::FILE), "{names:?}");
    }
}

/// As much of ELF as the test asks for.
mod elf {
    pub(super) const UNDEFINED: u16 = 0;
    pub(super) const ABSOLUTE: u16 = 0xfff1;
    pub(super) const FILE: u8 = 4;
    const RELOCATABLE: u64 = 1;
    const SYMBOLS: u64 = 2;

    fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
        bytes[at..at + size].iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte))
    }

    /// Name, section and kind of each symbol.
    pub(super) fn symbols(object: &[u8]) -> Vec<(String, u16, u8)> {
        assert_eq!((&object[..6], number(object, 16, 2)), (&b"\x7fELF\x02\x01"[..], RELOCATABLE));
        let sections = number(object, 40, 8) as usize;
        let (size, count) = (number(object, 58, 2) as usize, number(object, 60, 2) as usize);
        let section = |n: usize| sections + n * size;
        let field = |n: usize, at: usize, size: usize| number(object, section(n) + at, size) as usize;
        let table = (0..count).find(|n| field(*n, 4, 4) as u64 == SYMBOLS).expect("symbols");
        let (begin, length) = (field(table, 24, 8), field(table, 32, 8));
        let names = field(field(table, 40, 4), 24, 8);
        (1..length / 24)
            .map(|n| {
                let at = begin + n * 24;
                let text = &object[names + number(object, at, 4) as usize..];
                let text = &text[..text.iter().position(|c| *c == 0).expect("ends")];
                let kind = object[at + 4] & 15;
                (String::from_utf8_lossy(text).into_owned(), number(object, at + 6, 2) as u16, kind)
            })
            .collect()
    }
}
