//! The observable behaviour of a program in each engine: results, final values of the arguments, what is printed and raised. The
//! interpreter without passes is the reference; the default pipeline, with plans and without, and loops over numbers as
//! kernels, on the interpreter of kernels and compiled, must agree.

use flambeau::backends;
use flambeau::diag::{Diagnostic, ErrorKind};
use flambeau::dialects::{Limits, Registry, Run, Strictness};
use flambeau::passes::manager::Settings;
use flambeau::runtime::Program;
use flambeau::tensor::Tensor;
use flambeau::toolkit::Toolkit;
use flambeau::tools::load::load_source_with;
use flambeau::tools::prepare::transformed;
use flambeau::value::Value;
use std::sync::{Arc, Mutex};

/// What stands in messages of `raise` and `assert`.
const OWN: &str = "own ";

/// What was compared of a program.
#[derive(Clone, Copy, Default)]
pub struct Tally {
    /// Programs that compile.
    pub compiled: u64,
    /// Programs that give an answer.
    pub answered: u64,
    /// Programs that raise by themselves, with `raise` or `assert`.
    pub raised: u64,
    /// Calls of fusion groups that ran as kernels.
    pub fused: u64,
    /// Loops over numbers that ran as compiled kernels.
    pub loops: u64,
}

impl Tally {
    /// Adds another.
    pub fn add(&mut self, other: Tally) {
        self.compiled += other.compiled;
        self.answered += other.answered;
        self.raised += other.raised;
        self.fused += other.fused;
        self.loops += other.loops;
    }
}

/// What a run gives.
#[derive(Debug, PartialEq)]
enum Seen {
    /// Results, arguments and what was printed.
    Answer(String),
    /// What the program itself raises, and what was printed before.
    Raised(String),
    /// What an op raises. An unused one does not run where passes are on, so that all after it may differ.
    Op(String),
    /// A limit, which engines reach at different places.
    Limit,
}

/// Runs a program by each engine.
///
/// # Errors
/// If one of them fails internally or disagrees; with the program.
pub fn compare(text: &str) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let registry = Registry::builtin();
    let program = match load_source_with("<fuzz>", text, &registry) {
        Ok(program) => program,
        Err(error) if is_fault(&error) => return Err(format!("{error:?}\n{text}")),
        Err(_) => return Ok(tally),
    };
    tally.compiled = 1;
    // No loop is compiled on the interpreter of kernels, unless it is made one by a pass.
    let slow = backends::by_name("interp").map_err(|e| e.to_string())?;
    let plain = program.on(Arc::clone(&slow));
    let expected = observe(&plain).map_err(|e| format!("without passes: {e}\n{text}"))?;
    match &expected {
        Seen::Answer(_) => tally.answered = 1,
        Seen::Raised(_) => tally.raised = 1,
        Seen::Op(_) => {}
        Seen::Limit => return Ok(tally),
    }
    let mut check = |engine: &str, program: &Program, exact: bool| {
        let found = observe(program).map_err(|e| format!("{engine}: {e}\n{text}"))?;
        let report = program.fusion_report();
        tally.fused += report.fused_calls;
        if engine.contains("compiled") {
            tally.loops += report.loops.done;
        }
        if same(&expected, &found, exact) {
            return Ok(());
        }
        Err(format!("{engine}: {found:?}\nnot {expected:?}\n{text}"))
    };
    let lowered = passes(&plain, "inline,lower-scalars", text)?;
    let optimized = passes(&plain, "default", text)?;
    check("loops as kernels, interpreted", &lowered, true)?;
    check("the default pipeline", &optimized, false)?;
    if let Ok(llvm) = backends::by_name("llvm") {
        check("loops as kernels, compiled", &lowered.on(Arc::clone(&llvm)), true)?;
        check("the default pipeline with plans", &optimized.on(Arc::clone(&llvm)).planned(), false)?;
        let both = passes(&optimized, "lower-scalars", text)?;
        check("the default pipeline and loops as kernels, compiled", &both.on(llvm), false)?;
    }
    Ok(tally)
}

fn passes(program: &Program, pipeline: &str, text: &str) -> Result<Program, String> {
    let pipeline = Toolkit::default().parse_pipeline(pipeline).map_err(|e| e.to_string())?;
    let settings = Settings { threads: 1, verify: Some(Strictness::Dialects), ..Settings::default() };
    transformed(program, &pipeline, settings, "<fuzz>", &mut std::io::sink())
        .map_err(|error| format!("{error:?}\n{text}"))
}

fn same(expected: &Seen, found: &Seen, exact: bool) -> bool {
    match (expected, found) {
        (_, Seen::Limit) => true,
        (Seen::Op(_), _) if !exact => true,
        _ => expected == found,
    }
}

fn is_fault(error: &Diagnostic) -> bool {
    matches!(error.kind(), ErrorKind::Panic | ErrorKind::Internal | ErrorKind::Verify)
}

/// Runs `f` on two matrices and a number.
fn observe(program: &Program) -> Result<Seen, String> {
    let printed = Printed::default();
    let limits = Limits { steps: Some(100_000), bytes: Some(64 << 20), ..Limits::default() };
    let run = Run::with_limits(Box::new(printed.clone()), limits);
    let matrix = |from: f32| Tensor::from_vec(&[from, -1.5, 0.0, 2.25, f32::INFINITY, from - 3.0], &[2, 3]);
    let arguments = [1.0, -0.5].map(|from| Value::Tensor(matrix(from).expect("a small tensor")));
    let mut all = arguments.to_vec();
    all.push(Value::Int(3));
    let result = program.run("f", all, &run);
    let mut out = String::new();
    let rest = |out: &mut String| {
        arguments.iter().for_each(|argument| bits(argument, out));
        *out += &String::from_utf8_lossy(&printed.0.lock().expect("no panic while it is held"));
    };
    Ok(match result {
        Ok(value) => {
            bits(&value, &mut out);
            rest(&mut out);
            Seen::Answer(out)
        }
        Err(error) if is_fault(&error) => return Err(format!("{error:?}")),
        Err(error) if error.kind() == ErrorKind::Limit => Seen::Limit,
        Err(error) => {
            out += &format!("{:?}: {}\n", error.report().class, error.message());
            rest(&mut out);
            if error.message().contains(OWN) { Seen::Raised(out) } else { Seen::Op(out) }
        }
    })
}

/// A value with the bits of its numbers; any NaN is any other.
fn bits(value: &Value, out: &mut String) {
    let number = |x: f64| if x.is_nan() { " nan".to_string() } else { format!(" {:x}", x.to_bits()) };
    match value {
        Value::Tensor(tensor) => {
            *out += &format!("{:?}{:?}", tensor.dtype(), tensor.sizes());
            for scalar in tensor.to_scalars().expect("a small tensor") {
                *out += &number(scalar.to_f64());
            }
            out.push('\n');
        }
        Value::Float(x) => *out += &format!("float{}\n", number(*x)),
        Value::List(list) => {
            out.push('[');
            list.to_vec().iter().for_each(|item| bits(item, out));
            out.push(']');
        }
        Value::Tuple(tuple) => tuple.items().iter().for_each(|item| bits(item, out)),
        other => *out += &format!("{}\n", other.to_text()),
    }
}

/// What a program prints.
#[derive(Clone, Default)]
struct Printed(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic while it is held").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
