//! `flambeau run`: loads a file, calls a function of it, prints the answer.

use super::case::decode;
use super::io::Io;
use super::load::{load_file_with, load_mapped, registry};
use super::numerics::Numerics;
use super::prepare;
use crate::backends;
use crate::diag::{Diagnostic, ErrorKind, Result, files};
use crate::dialects::Run;
use crate::passes::PassSet;
use crate::passes::manager::Settings;
use crate::resources::pool;
use crate::tensor::{DType, Tensor};
use crate::tools::limits::LimitOptions;
use crate::value::Value;
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Most bytes of a file of arguments.
const ARGUMENT_BYTES: u64 = 64 << 30;

/// Words of `flambeau run`.
#[derive(Args, Debug)]
pub struct Options {
    /// A .pt archive, TorchScript source or graph text
    file: PathBuf,
    /// The function or method to call
    #[arg(long, value_name = "NAME", default_value = "forward")]
    entry: String,
    /// Arguments: .json (a list of encoded values), .npy, .npz or .safetensors, in order
    #[arg(long, value_name = "FILE", num_args = 1..)]
    args: Vec<PathBuf>,
    /// What runs fusion groups: cpu, or cuda (the first GPU); other ops run on the CPU
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
    /// Know the ops of a dialect file
    #[arg(long, value_name = "FILE")]
    dialect: Vec<PathBuf>,
    /// Passes to run first
    #[arg(long, value_name = "PIPELINE", default_value = "default")]
    passes: String,
    #[command(flatten)]
    numerics: Numerics,
    /// Map the archive into memory instead of reading it: its tensors lie in the file, which nobody may change meanwhile
    #[arg(long)]
    mmap: bool,
    /// Threads that share loops [default: FLAMBEAU_NUM_THREADS, else one for each core]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    threads: usize,
    /// Also print how long loading and the call took, what became of fusion groups, and the seed of the random
    /// generator where it was drawn from
    #[arg(long)]
    time: bool,
    /// Log passes, and under `fusion` what becomes of fusion groups: 'fuse:>fusion' [default: FLAMBEAU_LOG]
    #[arg(long, value_name = "SPEC")]
    log: Option<String>,
    /// Seed of the random generator [default: from the system's entropy]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Record gradients; without it the program runs as under torch.no_grad()
    #[arg(long)]
    grad: bool,
    #[command(flatten)]
    pub(in crate::tools) limits: LimitOptions,
}

/// Runs the command.
pub fn run(options: &Options, io: &mut Io<'_>) -> Result<()> {
    let device = match options.device.as_str() {
        "cpu" => None,
        "cuda" => Some(backends::by_name("cuda")?),
        other => {
            return Err(Diagnostic::new(ErrorKind::Usage, format!("there is no device '{other}'"))
                .hint("devices are cpu and cuda"));
        }
    };
    pool::set_threads(options.threads);
    let run = Run::default();
    run.set_grad_enabled(options.grad);
    if let Some(seed) = options.seed {
        run.seed(seed);
    }
    let start = Instant::now();
    let pipeline = options.numerics.checked_pipeline(&options.passes, &PassSet::builtin(), io)?;
    let registry = registry(&options.dialect, Path::new(""))?;
    let log = prepare::log_spec(options.log.as_deref(), &PassSet::builtin())?;
    let program = match options.mmap {
        // SAFETY: the user asks for it with --mmap, whose help says that nobody may change the file.
        #[allow(unsafe_code, reason = "maps a file where the user says that it stays as it is")]
        true => unsafe { load_mapped(&options.file, &run, &registry)? },
        false => load_file_with(&options.file, &run, &registry)?,
    };
    let settings = Settings { log: log.clone(), ..Settings::default() };
    let name = options.file.display().to_string();
    let program = prepare::transformed(&program, &pipeline, settings, &name, &mut std::io::stderr())?;
    let program = program.logging(&log);
    let program = match device {
        Some(backend) => program.on(backend),
        None => program,
    };
    let loaded = start.elapsed();
    let mut arguments = Vec::new();
    for file in &options.args {
        arguments.extend(read_arguments(file)?);
    }
    let start = Instant::now();
    let value = program.run(entry(options, &program), arguments, &run);
    let called = start.elapsed();
    eprint!("{}", program.take_log());
    let value = value?;
    // A closed pipe is nothing to complain about.
    let mut answer = String::new();
    value.write_text(&mut answer)?;
    let _ = writeln!(std::io::stdout(), "{answer}");
    for warning in run.take_warnings() {
        eprintln!("warning: {warning}");
    }
    if options.time {
        eprintln!(
            "loaded in {:.1} ms, called in {:.3} ms",
            loaded.as_secs_f64() * 1e3,
            called.as_secs_f64() * 1e3
        );
        eprint!("{}", program.fusion_report().to_text());
        if let Some(seed) = run.random_seed() {
            eprintln!("random seed {seed}");
        }
    }
    Ok(())
}

/// The named entry; a file with a single function needs no name.
fn entry<'a>(options: &'a Options, program: &'a crate::runtime::Program) -> &'a str {
    let functions = &program.module().functions;
    match functions.keys().next() {
        Some(only) if options.entry == "forward" && program.instance().is_none() && functions.len() == 1 => {
            only.as_str()
        }
        _ => &options.entry,
    }
}

/// Values from a file, in order.
pub(super) fn read_arguments(file: &Path) -> Result<Vec<Value>> {
    let named = |e: String| Diagnostic::input(format!("{}: {e}", file.display()));
    let bytes = files::read(file, ARGUMENT_BYTES).map_err(|e| named(e.to_string()))?;
    match file.extension().and_then(|e| e.to_str()) {
        Some("json") => {
            let json: serde_json::Value = serde_json::from_slice(&bytes).map_err(|e| named(e.to_string()))?;
            let items = json.as_array().cloned().unwrap_or_else(|| vec![json.clone()]);
            items.iter().map(|v| decode(v).map_err(|d| named(d.message().to_string()))).collect()
        }
        Some("npy") => {
            Ok(vec![super::numpy::read_npy(&bytes).map_err(|d| named(d.message().to_string()))?.into()])
        }
        Some("npz") => {
            let tensors = super::numpy::read_npz(&bytes).map_err(|d| named(d.message().to_string()))?;
            Ok(tensors.into_iter().map(|(_, t)| Value::Tensor(t)).collect())
        }
        Some("safetensors") => read_safetensors(&bytes).map_err(|d| named(d.message().to_string())),
        _ => Err(named("arguments are .json, .npy, .npz or .safetensors files".to_string())),
    }
}

/// The tensors of a file in order of their names.
fn read_safetensors(bytes: &[u8]) -> Result<Vec<Value>> {
    let file = safetensors::SafeTensors::deserialize(bytes).map_err(|e| Diagnostic::input(e.to_string()))?;
    let mut tensors = file.tensors();
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    let tensor = |(name, view): (String, safetensors::tensor::TensorView<'_>)| {
        use safetensors::Dtype as D;
        let dtype = match view.dtype() {
            D::BOOL => DType::Bool,
            D::U8 => DType::U8,
            D::I8 => DType::I8,
            D::I16 => DType::I16,
            D::I32 => DType::I32,
            D::I64 => DType::I64,
            D::F16 => DType::F16,
            D::BF16 => DType::BF16,
            D::F32 => DType::F32,
            D::F64 => DType::F64,
            other => return Err(Diagnostic::unsupported(format!("tensor '{name}' of dtype {other:?}"))),
        };
        let sizes: Vec<i64> = view.shape().iter().map(|n| *n as i64).collect();
        Tensor::from_bytes(dtype, &sizes, view.data()).map(Value::Tensor)
    };
    tensors.into_iter().map(tensor).collect()
}
