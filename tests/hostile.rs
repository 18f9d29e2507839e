//! Bad input: each gets one clear error on the error stream and exit status 1 (2 for wrong usage), without a
//! panic or a hang.

use crate::hostile_archives;
use flambeau::tools::{cli, io::Io};
use libtest_mimic::{Failed, Trial};
use std::ffi::OsString;
use std::fs;

/// What a bad input is: its file (if any), the words, the exit status, and a part of the message.
#[derive(Clone, Copy)]
struct Bad {
    name: &'static str,
    file: Content,
    words: &'static [&'static str],
    status: u64,
    says: &'static str,
}

/// What stands in the file.
#[derive(Clone, Copy)]
enum Content {
    /// No file is made.
    Missing,
    /// These bytes.
    Bytes(fn() -> Vec<u8>),
    /// A folder.
    Folder,
}

use Content::{Bytes, Folder, Missing};

fn text(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

fn sample_archive() -> Vec<u8> {
    fs::read("examples/lstm_cell.pt").unwrap_or_default()
}

fn nested(open: &str, close: &str) -> Vec<u8> {
    let n = 100_000;
    format!("def f(x):\n    return {}x{}\n", open.repeat(n), close.repeat(n)).into_bytes()
}

const RUN: &[&str] = &["run", "FILE"];
const OPT: &[&str] = &["opt", "FILE"];
const INSPECT: &[&str] = &["inspect", "FILE"];

/// At least 40 inputs that nobody should have to think about.
const TABLE: &[Bad] = &[
    Bad { name: "missing_file", file: Missing, words: RUN, status: 1, says: "No such file" },
    Bad { name: "missing_file_opt", file: Missing, words: OPT, status: 1, says: "No such file" },
    Bad { name: "directory", file: Folder, words: RUN, status: 1, says: "is a directory" },
    Bad { name: "directory_opt", file: Folder, words: OPT, status: 1, says: "is a directory" },
    Bad { name: "empty_file", file: Bytes(Vec::new), words: RUN, status: 1, says: "empty" },
    Bad { name: "blank_file", file: Bytes(|| text(" \n\n")), words: RUN, status: 1, says: "empty" },
    Bad { name: "not_text", file: Bytes(|| vec![0xff, 0xfe, 0, 1]), words: RUN, status: 1, says: "neither" },
    Bad {
        name: "truncated_archive",
        file: Bytes(|| {
            let mut b = sample_archive();
            b.truncate(b.len() / 2);
            b
        }),
        words: RUN,
        status: 1,
        says: "archive",
    },
    Bad {
        name: "archive_of_one_byte_less",
        file: Bytes(|| {
            let mut b = sample_archive();
            b.pop();
            b
        }),
        words: RUN,
        status: 1,
        says: "archive",
    },
    Bad {
        name: "zip_signature_alone",
        file: Bytes(|| text("PK\x03\x04")),
        words: RUN,
        status: 1,
        says: "archive",
    },
    Bad {
        name: "empty_zip",
        file: Bytes(|| {
            let mut b = text("PK\x05\x06");
            b.extend([0; 18]);
            b
        }),
        words: RUN,
        status: 1,
        says: "",
    },
    Bad {
        name: "flipped_byte",
        file: Bytes(|| {
            let mut b = sample_archive();
            let n = b.len() / 3;
            b[n] ^= 0xff;
            b
        }),
        words: RUN,
        status: 1,
        says: "",
    },
    Bad {
        name: "no_such_entry",
        file: Bytes(sample_archive),
        words: &["run", "FILE", "--entry", "backward"],
        status: 1,
        says: "there is no function 'backward'",
    },
    Bad { name: "missing_arguments", file: Bytes(sample_archive), words: RUN, status: 1, says: "missing" },
    Bad {
        name: "unknown_op",
        file: Bytes(|| text("graph(%x : Tensor):\n  %1 : Tensor = aten::sigmoyd(%x)\n  return (%1)\n")),
        words: RUN,
        status: 1,
        says: "",
    },
    Bad {
        name: "graph_undefined_value",
        file: Bytes(|| text("graph(%x : Tensor):\n  return (%y)\n")),
        words: OPT,
        status: 1,
        says: "y",
    },
    Bad {
        name: "graph_without_return",
        file: Bytes(|| text("graph(%x : Tensor):\n  %1 : int = prim::Constant[value=1]()\n")),
        words: OPT,
        status: 1,
        says: "return",
    },
    Bad { name: "graph_cut", file: Bytes(|| text("graph(%x : Ten")), words: OPT, status: 1, says: "" },
    Bad {
        name: "graph_bad_type",
        file: Bytes(|| text("graph(%x : Tensr):\n  return (%x)\n")),
        words: OPT,
        status: 1,
        says: "Tensr",
    },
    Bad {
        name: "graph_operand_count",
        file: Bytes(|| text("graph(%x : Tensor):\n  %1 : Tensor = aten::tanh(%x, %x)\n  return (%1)\n")),
        words: RUN,
        status: 1,
        says: "",
    },
    Bad {
        name: "graph_bad_attribute",
        file: Bytes(|| text("graph():\n  %1 : int = prim::Constant[value=]()\n  return (%1)\n")),
        words: OPT,
        status: 1,
        says: "",
    },
    Bad {
        name: "graph_text_after",
        file: Bytes(|| text("graph(%x : int):\n  return (%x)\nand more\n")),
        words: OPT,
        status: 1,
        says: "",
    },
    Bad {
        name: "graph_nested_blocks",
        file: Bytes(|| {
            let mut t = String::from("graph(%c : bool):\n");
            for n in 0..100_000 {
                t.push_str(&format!("%{n} : int = prim::If(%c)\nblock0():\n"));
            }
            t.into_bytes()
        }),
        words: OPT,
        status: 1,
        says: "",
    },
    Bad {
        name: "graph_nested_types",
        file: Bytes(|| {
            format!("graph(%x : {}int{}):\n  return (%x)\n", "Optional(".repeat(100_000), ")".repeat(100_000))
                .into_bytes()
        }),
        words: OPT,
        status: 1,
        says: "",
    },
    Bad {
        name: "graph_huge_number",
        file: Bytes(|| {
            text("graph():\n  %1 : int = prim::Constant[value=99999999999999999999]()\n  return (%1)\n")
        }),
        words: RUN,
        status: 1,
        says: "",
    },
    Bad {
        name: "source_undefined_name",
        file: Bytes(|| text("def f(x):\n    return x + y\n")),
        words: RUN,
        status: 1,
        says: "undefined value y",
    },
    Bad {
        name: "source_bad_indent",
        file: Bytes(|| text("def f(x):\n  return x\n   y\n")),
        words: RUN,
        status: 1,
        says: "",
    },
    Bad {
        name: "source_unclosed_string",
        file: Bytes(|| text("def f(x):\n    return 'abc\n")),
        words: RUN,
        status: 1,
        says: "",
    },
    Bad {
        name: "source_unclosed_bracket",
        file: Bytes(|| text("def f(x):\n    return (x\n")),
        words: RUN,
        status: 1,
        says: "",
    },
    Bad {
        name: "source_nested_parentheses",
        file: Bytes(|| nested("(", ")")),
        words: RUN,
        status: 1,
        says: "",
    },
    Bad { name: "source_nested_lists", file: Bytes(|| nested("[", "]")), words: RUN, status: 1, says: "" },
    Bad {
        name: "source_nested_subscripts",
        file: Bytes(|| nested("x[", "]")),
        words: RUN,
        status: 1,
        says: "",
    },
    Bad { name: "source_many_minus", file: Bytes(|| nested("-", "")), words: RUN, status: 1, says: "" },
    Bad { name: "source_many_not", file: Bytes(|| nested("not ", "")), words: RUN, status: 1, says: "" },
    Bad {
        name: "source_unknown_type",
        file: Bytes(|| text("def f(x: Tensr):\n    return x\n")),
        words: RUN,
        status: 1,
        says: "Tensr",
    },
    Bad {
        name: "source_wrong_argument_count",
        file: Bytes(|| text("def f(x):\n    return torch.relu(x, x, x)\n")),
        words: RUN,
        status: 1,
        says: "relu",
    },
    Bad {
        name: "source_recursion",
        file: Bytes(|| text("def f(x: int) -> int:\n    return f(x)\n")),
        words: RUN,
        status: 1,
        says: "recursive",
    },
    Bad { name: "source_no_function", file: Bytes(|| text("x = 1\n")), words: RUN, status: 1, says: "" },
    Bad {
        name: "source_is_prose",
        file: Bytes(|| text("Dear reader,\nthis is no program.\n")),
        words: RUN,
        status: 1,
        says: "",
    },
    Bad {
        name: "raises",
        file: Bytes(|| text("def f():\n    raise ValueError('no')\n")),
        words: &["run", "FILE", "--entry", "f"],
        status: 1,
        says: "no",
    },
    Bad {
        name: "cases_not_json",
        file: Bytes(|| text("{]\n")),
        words: &["check", "FILE"],
        status: 1,
        says: "line 1",
    },
    Bad {
        name: "cases_empty",
        file: Bytes(Vec::new),
        words: &["check", "FILE"],
        status: 1,
        says: "no cases",
    },
    Bad {
        name: "unknown_pass",
        file: Bytes(|| text("graph():\n  return ()\n")),
        words: &["opt", "FILE", "--passes", "dcee"],
        status: 2,
        says: "did you mean 'dce'?",
    },
    Bad { name: "unknown_command", file: Missing, words: &["fly"], status: 2, says: "fly" },
    Bad { name: "unknown_flag", file: Missing, words: &["run", "--fast", "FILE"], status: 2, says: "--fast" },
    Bad { name: "no_file", file: Missing, words: &["run"], status: 2, says: "FILE" },
    Bad {
        name: "bad_form",
        file: Missing,
        words: &["translate", "--to", "wasm", "FILE"],
        status: 2,
        says: "wasm",
    },
    Bad {
        name: "no_cuda",
        file: Bytes(sample_archive),
        words: &["run", "FILE", "--device", "cuda"],
        status: 1,
        says: "CUDA",
    },
    Bad {
        name: "unknown_device",
        file: Bytes(sample_archive),
        words: &["run", "FILE", "--device", "abacus"],
        status: 2,
        says: "abacus",
    },
];

/// No bad input may take more memory than this, the program itself included.
const MAX_PEAK_KB: u64 = 256 << 10;

/// Set in the process that is to read one bad input, to its name.
const CHILD: &str = "FLAMBEAU_HOSTILE";

/// Everything: the inputs above, and the archives.
fn all() -> impl Iterator<Item = Bad> {
    let archives = hostile_archives::TABLE.iter();
    let archives =
        archives.map(|a| Bad { name: a.name, file: Bytes(a.make), words: RUN, status: 1, says: a.says });
    TABLE.iter().copied().chain(archives)
}

/// One trial an input.
pub fn trials() -> Vec<Trial> {
    // On a machine with a GPU, asking for it is no mistake.
    let gpu = flambeau::backends::by_name("cuda").is_ok();
    let trial = |bad: Bad| {
        let name = format!("hostile::{}", bad.name);
        Trial::test(name, move || run(&bad)).with_ignored_flag(gpu && bad.name == "no_cuda")
    };
    let mut trials: Vec<Trial> = all().map(trial).collect();
    trials.push(Trial::test("hostile::the_plain_archive_is_not_refused", || {
        let bad =
            Bad { name: "plain", file: Bytes(hostile_archives::plain), words: INSPECT, status: 0, says: "" };
        run(&bad)
    }));
    trials
}

/// In the process that reads one bad input: reads it and tells the status, the peak of memory and the message.
pub fn as_child() -> Option<i32> {
    let words = std::env::var(CHILD).ok()?;
    let words: Vec<OsString> = words.split('\n').map(OsString::from).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut io = Io { directory: "".as_ref(), stdin: &mut std::io::empty(), out: &mut out, err: &mut err };
    let status = cli::main_in(words, &mut io);
    println!("{status} {}", peak_kb().unwrap_or(0));
    print!("{}", String::from_utf8_lossy(&err));
    Some(0)
}

/// The most memory that this process had, where the system tells.
fn peak_kb() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// A process of its own for each input, so that one that crashes is seen and the memory is its own.
fn run(bad: &Bad) -> Result<(), Failed> {
    let folder = crate::scratch::folder("hostile").join(bad.name);
    fs::create_dir_all(&folder)?;
    let file = folder.join("input");
    match bad.file {
        Missing => {}
        Folder => fs::create_dir_all(&file)?,
        Bytes(make) => fs::write(&file, make())?,
    }
    let file = file.display().to_string();
    let words: Vec<&str> = bad.words.iter().map(|w| if *w == "FILE" { file.as_str() } else { w }).collect();
    let mut child = std::process::Command::new(std::env::current_exe()?);
    let output = child.env(CHILD, format!("flambeau\n{}", words.join("\n"))).output()?;
    fs::remove_dir_all(&folder)?;
    if !output.status.success() {
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("the process ended with {}: {err}", output.status).into());
    }
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let (first, err) = told.split_once('\n').unwrap_or((&told, ""));
    let mut numbers = first.split(' ').filter_map(|n| n.parse::<u64>().ok());
    let (status, peak) = (numbers.next(), numbers.next().unwrap_or(0));
    if status != Some(bad.status) {
        return Err(format!("exit status {status:?}, not {}; the message is: {err}", bad.status).into());
    }
    if bad.status != 0 && (err.trim().is_empty() || !err.contains(bad.says)) {
        return Err(format!("the message should say '{}', but is: {err}", bad.says).into());
    }
    if peak > MAX_PEAK_KB {
        return Err(format!("it took {peak} KB of memory").into());
    }
    Ok(())
}
