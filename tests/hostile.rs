//! Bad input: each gets one clear error on the error stream and exit status 1 (2 for wrong usage), without a
//! panic or a hang.

use crate::hostile_archives;
use crate::hostile_texts::{self, Text};
use flambeau::toolkit::Toolkit;
use flambeau::tools::cli;
use libtest_mimic::{Failed, Trial};
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

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

/// Sixty tuples, each of the one before it twice, and a last line.
fn doubled(start: &str, last: &str) -> Vec<u8> {
    let lines: String = (1..60).map(|n| format!("    x{n} = (x{0}, x{0})\n", n - 1)).collect();
    format!("def f() -> int:\n    n = 1\n    x0 = {start}\n{lines}    {last}\n    return n\n").into_bytes()
}

const RUN: &[&str] = &["run", "FILE"];
const OPT: &[&str] = &["opt", "FILE"];
const INSPECT: &[&str] = &["inspect", "FILE"];

/// At least 40 malformed inputs.
const TABLE: &[Bad] = &[
    Bad { name: "missing_file", file: Missing, words: RUN, status: 1, says: "No such file" },
    Bad { name: "missing_file_opt", file: Missing, words: OPT, status: 1, says: "No such file" },
    Bad {
        name: "doubled_type_as_text",
        file: Bytes(|| doubled("(n, n)", "n = len([x59, x59])")),
        words: OPT,
        status: 1,
        says: "the text of a type would take more than",
    },
    Bad {
        name: "nested_loops_over_tuples",
        file: Bytes(|| {
            let open: String = (0..7)
                .map(|n| format!("{}for i{n} in (1, 2, 3, 4, 5, 6, 7, 8):\n", " ".repeat(n + 1)))
                .collect();
            format!("def f(x: int) -> int:\n{open}{}x = x + 1\n return x\n", " ".repeat(8)).into_bytes()
        }),
        words: RUN,
        status: 1,
        says: "are unrolled, here to more than 20000 iterations",
    },
    Bad {
        name: "sort_of_more_than_memory",
        file: Bytes(|| text("def f() -> Tensor:\n    return torch.zeros([1]).expand([1 << 44]).sort()[0]\n")),
        words: &["run", "FILE", "--entry", "f"],
        status: 1,
        says: "DefaultCPUAllocator: can't allocate memory",
    },
    Bad {
        name: "factors_of_more_matrices_than_memory",
        file: Bytes(|| {
            text("def f() -> Tensor:\n    return torch.linalg.svd(torch.zeros([1 << 40, 2, 0]))[1]\n")
        }),
        words: &["run", "FILE", "--entry", "f"],
        status: 1,
        says: "can't allocate memory",
    },
    Bad {
        name: "full_factors_of_more_than_memory",
        file: Bytes(|| {
            text("def f() -> Tensor:\n    return torch.linalg.svd(torch.zeros([1 << 40, 0]))[0]\n")
        }),
        words: &["run", "FILE", "--entry", "f"],
        status: 1,
        says: "can't allocate memory",
    },
    Bad {
        name: "fourier_transform_of_more_than_memory",
        file: Bytes(|| {
            text("def f() -> Tensor:\n    return torch.fft.fft(torch.zeros([2]), 1000000000000)\n")
        }),
        words: &["run", "FILE", "--entry", "f"],
        status: 1,
        says: "can't allocate memory",
    },
    Bad {
        name: "interpolation_to_more_than_memory",
        file: Bytes(|| {
            text(
                "def f() -> Tensor:\n    x = torch.zeros([1, 1, 2])\n    return torch.nn.functional.interpolate(x, scale_factor=1e18)\n",
            )
        }),
        words: &["run", "FILE", "--entry", "f"],
        status: 1,
        says: "",
    },
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
    Bad {
        name: "missing_arguments",
        file: Bytes(sample_archive),
        words: RUN,
        status: 1,
        says: "give it with --input",
    },
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
        file: Bytes(|| text("Dear reader,\nthis is not a program.\n")),
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
        says: "is empty",
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

/// What the child process writes before it says how it ended; the program may have printed before.
const END: &str = "\n==== end: ";

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
    // On a machine with a GPU, asking for it is not a mistake.
    let gpu = flambeau::backends::by_name("cuda").is_ok();
    let trial = |bad: Bad| {
        let name = format!("hostile::{}", bad.name);
        Trial::test(name, move || run(&bad)).with_ignored_flag(gpu && bad.name == "no_cuda")
    };
    let mut trials: Vec<Trial> = all().map(trial).collect();
    trials.extend(
        hostile_texts::all()
            .into_iter()
            .map(|text| Trial::test(format!("hostile::{}", text.name), move || run_text(&text))),
    );
    trials.push(Trial::test("hostile::the_plain_archive_is_not_refused", || {
        let bad =
            Bad { name: "plain", file: Bytes(hostile_archives::plain), words: INSPECT, status: 0, says: "" };
        run(&bad)
    }));
    trials
}

/// In the process that reads one bad input: reads it and reports the status, the peak of memory and the message.
pub fn as_child() -> Option<i32> {
    let words = std::env::var(CHILD).ok()?;
    let words: Vec<OsString> = words.split('\n').map(OsString::from).collect();
    // The process is the command's own, as that of the program is.
    let status = cli::main(words, &Toolkit::default());
    println!("\n{END}{status} {}", peak_kb().unwrap_or(0));
    Some(0)
}

/// The most memory that this process had, where the system reports it.
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
    let End { status, peak, err } = in_process(&words)?;
    fs::remove_dir_all(&folder)?;
    if status != bad.status {
        return Err(format!("exit status {status}, not {}; the message is: {err}", bad.status).into());
    }
    if bad.status != 0 && (err.trim().is_empty() || !err.contains(bad.says)) {
        return Err(format!("the message should say '{}', but is: {err}", bad.says).into());
    }
    if peak > MAX_PEAK_KB {
        return Err(format!("it took {peak} KB of memory").into());
    }
    Ok(())
}

/// How a process ended that read a bad input.
struct End {
    status: u64,
    /// The most memory that it had, in KB.
    peak: u64,
    /// What it wrote to the error stream.
    err: String,
}

/// Runs a command in a process of its own, which must end by itself.
fn in_process(words: &[&str]) -> Result<End, Failed> {
    let mut command = std::process::Command::new(std::env::current_exe()?);
    command.env(CHILD, format!("flambeau\n{}", words.join("\n")));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let read = |stream: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            // What was read before the process died is all there is.
            let _ = stream.map(|mut stream| stream.read_to_end(&mut text));
            String::from_utf8_lossy(&text).into_owned()
        })
    };
    let out = read(child.stdout.take().map(|s| Box::new(s) as Box<dyn Read + Send>));
    let err = read(child.stderr.take().map(|s| Box::new(s) as Box<dyn Read + Send>));
    let start = Instant::now();
    let status = loop {
        match child.try_wait()? {
            Some(status) => break Some(status),
            None if start.elapsed() > HANGS => {
                child.kill()?;
                child.wait()?;
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let out = out.join().map_err(|_| "the output could not be read")?;
    let err = err.join().map_err(|_| "the errors could not be read")?;
    match status {
        None => return Err(format!("the process did not end within {} s", HANGS.as_secs()).into()),
        // Where the limits are watched from outside of the work, the process itself ends with status 1.
        Some(status) if status.code() == Some(1) && err.contains("so the process was ended") => {
            return Ok(End { status: 1, peak: 0, err });
        }
        Some(status) if !status.success() => {
            return Err(format!("the process ended with {status}: {err}").into());
        }
        Some(_) => {}
    }
    let reported = out.rsplit_once(END).map_or("", |(_, reported)| reported.trim_end());
    let mut numbers = reported.split(' ').filter_map(|n| n.parse::<u64>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(status), Some(peak)) => Ok(End { status, peak, err }),
        _ => Err(format!("the process did not say how it ended: {out}").into()),
    }
}

/// A process that runs longer does not end by itself: the limits of the commands are far below.
const HANGS: Duration = Duration::from_secs(120);

/// No text may take more memory than this, under a limit of 400 MB.
const MAX_TEXT_PEAK_KB: u64 = 1 << 20;

fn run_text(text: &Text) -> Result<(), Failed> {
    let folder = crate::scratch::folder("hostile").join(&text.name);
    fs::create_dir_all(&folder)?;
    let file = folder.join("input");
    fs::write(&file, &text.text)?;
    let file = file.display().to_string();
    let words: Vec<&str> = text.words.iter().map(|w| if w == "FILE" { file.as_str() } else { w }).collect();
    let End { status, peak, err } = in_process(&words)?;
    fs::remove_dir_all(&folder)?;
    if peak > MAX_TEXT_PEAK_KB {
        return Err(format!("it took {peak} KB of memory").into());
    }
    if ["panicked", "bug in Flambeau", "internal error"].iter().any(|word| err.contains(word)) {
        return Err(format!("an error of the program itself: {err}").into());
    }
    let fails = !text.says.is_empty();
    if status > 2 || (fails && (status == 0 || !err.contains(&text.says))) {
        return Err(
            format!("exit status {status}; the message should say '{}', but is: {err}", text.says).into()
        );
    }
    Ok(())
}
