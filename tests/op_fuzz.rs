//! Random calls of every overload with extreme arguments: none may crash, panic, end in an internal error or run long.
//!
//! Calls run in a process of their own, whose memory is limited where the system can, one process for each part of the
//! overloads. A call is found again by its number. By hand, many more:
//!
//!     FLAMBEAU_FUZZ_CALLS=200 FLAMBEAU_FUZZ_SEED=7 cargo test --test root op_fuzz
//!     FLAMBEAU_FUZZ_OP=aten::topk ...   only overloads whose schema begins so

use flambeau::diag::{ErrorKind, panics};
use flambeau::dialects::{Family, Node, Op, Registry, Run};
use flambeau::eval;
use flambeau::ir::{Attr, Symbol, Type, TypeKind};
use flambeau::resources::{Budget, Limits};
use flambeau::runtime::ScriptComposites;
use flambeau::tensor::{DType, Scalar, Tensor};
use flambeau::value::{Dict, Value};
use libtest_mimic::{Failed, Trial};
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Names the part of the overloads that a process calls.
const CHILD: &str = "FLAMBEAU_FUZZ_PART";
/// Processes.
const PARTS: usize = 4;
/// Bytes that tensors of a call may take.
const BYTES: u64 = 256 << 20;
/// Kilobytes of addresses of a process.
const ADDRESSES: u64 = 4_000_000;
/// How long a call may take.
const LONG: Duration = Duration::from_secs(5);

pub fn trials() -> Vec<Trial> {
    (0..PARTS).map(|part| Trial::test(format!("op_fuzz::part_{part}"), move || parent(part))).collect()
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn parent(part: usize) -> Result<(), Failed> {
    let script = format!("ulimit -c 0; ulimit -v {ADDRESSES} 2>/dev/null; exec \"$0\"");
    let mut child = std::process::Command::new("sh");
    child.arg("-c").arg(script).arg(std::env::current_exe()?).env(CHILD, part.to_string());
    // Each thread takes addresses for its stack and heap.
    let output = child.env("RAYON_NUM_THREADS", "2").output()?;
    let told = String::from_utf8_lossy(&output.stdout);
    let faults: Vec<&str> = told.lines().filter(|line| line.starts_with("fault: ")).collect();
    if !output.status.success() {
        let last = told.lines().rfind(|line| line.starts_with("call: ")).unwrap_or("before the first call");
        let err = String::from_utf8_lossy(&output.stderr);
        return Err(format!("the process ended with {} in {last}\n{err}", output.status).into());
    }
    if !told.lines().any(|line| line.starts_with("done: ")) {
        return Err("the process did not come to its end".into());
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n").into()) }
}

/// In the process that calls: calls, and says what went wrong.
pub fn as_child() -> Option<i32> {
    let part: usize = std::env::var(CHILD).ok()?.parse().ok()?;
    let (calls, seed) = (number("FLAMBEAU_FUZZ_CALLS", 3), number("FLAMBEAU_FUZZ_SEED", 1));
    let skip = number("FLAMBEAU_FUZZ_FROM", 0);
    let wanted = std::env::var("FLAMBEAU_FUZZ_OP").unwrap_or_default();
    let registry = Registry::builtin();
    let mut out = std::io::stdout().lock();
    let mut made = 0u64;
    // Panics are faults that are reported once, not printed as they happen.
    std::panic::set_hook(Box::new(|_| {}));
    for (n, op) in registry.iter().enumerate() {
        if n % PARTS != part || !op.schema_text().starts_with(&wanted) || !is_called(op) {
            continue;
        }
        for call in 0..calls {
            let id = n as u64 * 1_000_000 + call;
            if id < skip {
                continue;
            }
            let _ = writeln!(out, "call: {id} {}", op.schema_text());
            let _ = out.flush();
            if let Some(fault) = one(op, seed ^ id.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
                let _ = writeln!(out, "fault: {id} {}: {fault}", op.schema_text());
            }
            made += 1;
        }
    }
    let _ = writeln!(out, "done: {made}");
    Some(0)
}

/// Ops that a call alone means something for: not control flow, and none that reads or ends the world.
fn is_called(op: &Op) -> bool {
    let outside =
        ["aten::save", "aten::manual_seed", "prim::", "fusion::", "loop::", "aten::wait", "aten::breakpoint"];
    op.is_built()
        && !matches!(op.def().family, Family::Control)
        && !outside.iter().any(|name| op.schema_text().starts_with(name))
}

fn one(op: &Op, seed: u64) -> Option<String> {
    let schema = op.schema().ok()?.clone();
    let mut random = Random(seed | 1);
    let values: Vec<Value> = schema
        .arguments
        .iter()
        .map(|argument| match &argument.default {
            Some(default) if random.below(2) == 0 => simple(default).unwrap_or(Value::None),
            _ => random.value(&argument.ty, 0),
        })
        .collect();
    let limits = Limits { bytes: Some(BYTES), time: Some(Duration::from_secs(20)), ..Limits::default() };
    let budget = Arc::new(Budget::new(limits));
    let _installed = budget.install();
    let run = Run::silent().with_composites(ScriptComposites::of(&Registry::builtin()));
    let start = Instant::now();
    let answer = panics::catch("the op", || eval::call(op, &values, Node::default(), &run));
    let took = start.elapsed();
    let shown = || {
        let texts: Vec<String> = values.iter().map(show).collect();
        texts.join(", ")
    };
    match answer.and_then(|result| result) {
        Err(error) if matches!(error.kind(), ErrorKind::Internal | ErrorKind::Panic) => {
            let notes = error.report().notes.join("; ");
            Some(format!("({}) {:?}: {} {notes}", shown(), error.kind(), error.message()))
        }
        _ if took > LONG => Some(format!("({}) took {:.1} s", shown(), took.as_secs_f64())),
        _ => None,
    }
}

/// A default as a value.
fn simple(attr: &Attr) -> Option<Value> {
    Some(match attr {
        Attr::Int(x) => Value::Int(*x),
        Attr::Float(x) => Value::Float(*x),
        Attr::Bool(x) => Value::Bool(*x),
        Attr::Str(x) => Value::str(x.to_string()),
        Attr::Ints(x) => Value::ints(x.iter().copied()),
        _ => return None,
    })
}

fn show(value: &Value) -> String {
    match value {
        Value::Tensor(t) => format!("{t:?} strides {:?}", t.strides().as_slice()),
        Value::List(list) => {
            let items: Vec<String> = list.items().iter().take(6).map(show).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_text(),
    }
}

/// Numbers by splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    fn int(&mut self) -> i64 {
        const EXTREME: &[i64] = &[
            i64::MAX,
            i64::MIN,
            i64::MIN + 1,
            1 << 62,
            1 << 40,
            1_000_000_000_000,
            1 << 31,
            -(1 << 31),
            65_536,
            100_000,
            -1_000_000,
        ];
        match self.below(4) {
            0 => self.of(EXTREME),
            _ => self.of(&[-2, -1, 0, 0, 1, 1, 1, 2, 2, 3, 4, 5, 7, 8, 16, 100]),
        }
    }

    fn float(&mut self) -> f64 {
        self.of(&[
            0.0,
            -0.0,
            1.0,
            0.5,
            -1.0,
            2.0,
            1e-300,
            1e18,
            1e300,
            -1e300,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
        ])
    }

    fn tensor(&mut self) -> Tensor {
        const DTYPES: &[DType] = &[
            DType::F32,
            DType::F32,
            DType::F32,
            DType::F64,
            DType::I64,
            DType::I64,
            DType::Bool,
            DType::F16,
            DType::BF16,
            DType::I32,
            DType::U8,
            DType::C64,
            DType::C128,
            DType::I8,
            DType::I16,
        ];
        const SIZES: &[&[i64]] = &[
            &[],
            &[0],
            &[1],
            &[3],
            &[2, 3],
            &[4, 4],
            &[1, 1, 4],
            &[2, 3, 4],
            &[1, 2, 5, 5],
            &[2, 0, 3],
            &[1, 1, 3, 4, 4],
            &[1, 1, 1, 1, 1, 1, 1],
            &[3, 3],
            &[5, 2],
        ];
        let (dtype, sizes) = (self.of(DTYPES), self.of(SIZES));
        let count: i64 = sizes.iter().product();
        let numbers: Vec<f64> = (0..count)
            .map(|_| if self.below(8) == 0 { self.float() } else { self.below(5) as f64 - 1.0 })
            .collect();
        let plain = Tensor::from_vec(&numbers, sizes).and_then(|t| t.to_dtype(dtype));
        let plain = plain.unwrap_or_else(|_| panic!("a small tensor of {dtype:?}"));
        let looked = match self.below(8) {
            // Far more elements than memory.
            0 => plain.broadcast_to(&[&[1 << 40][..], sizes].concat()),
            1 => plain.broadcast_to(&[&[5][..], sizes].concat()),
            2 => plain.look(|layout| {
                let mut turned = layout.clone();
                turned.sizes.reverse();
                turned.strides.reverse();
                Ok(turned)
            }),
            _ => Ok(plain.clone()),
        };
        looked.unwrap_or(plain)
    }

    fn value(&mut self, ty: &Type, depth: usize) -> Value {
        match ty.kind() {
            TypeKind::Tensor(_) => Value::Tensor(self.tensor()),
            TypeKind::Int | TypeKind::SymInt => Value::Int(self.int()),
            TypeKind::Float | TypeKind::SymFloat => Value::Float(self.float()),
            TypeKind::Bool | TypeKind::SymBool => Value::Bool(self.below(2) == 0),
            TypeKind::Number => match self.below(3) {
                0 => Value::Int(self.int()),
                1 => Value::Float(self.float()),
                _ => Value::from(Scalar::Int(self.below(4) as i64)),
            },
            TypeKind::Complex => Value::Complex(num_complex::Complex64::new(self.float(), self.float())),
            TypeKind::ScalarType => Value::Int(self.of(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 15, -1, 99])),
            TypeKind::Layout | TypeKind::MemoryFormat => Value::Int(self.of(&[0, 0, 1, 2, 3])),
            TypeKind::Str => Value::str(self.of(&[
                "",
                "mean",
                "sum",
                "none",
                "max",
                "reflect",
                "constant",
                "same",
                "valid",
                "nearest",
                "bilinear",
                "ij",
                "linear",
                "fro",
                "nuc",
                "a",
                "ortho",
                "forward",
                "backward",
                "ij,jk->ik",
                "reduced",
                "complete",
                "é",
                "%s %d",
                "{}",
            ])),
            TypeKind::None => Value::None,
            TypeKind::Optional(inner) if self.below(2) == 0 || depth > 4 => {
                let _ = inner;
                Value::None
            }
            TypeKind::Optional(inner) => self.value(inner, depth + 1),
            TypeKind::List(inner) => {
                let n = self.of(&[0, 1, 1, 2, 2, 3, 4, 6]);
                let items = (0..n).map(|_| self.value(inner, depth + 1)).collect();
                Value::list(inner.clone(), items)
            }
            TypeKind::Tuple(elements, _) => {
                Value::tuple(elements.iter().map(|t| self.value(t, depth + 1)).collect())
            }
            TypeKind::Dict(key, value) => Value::Dict(Dict::new(key.clone(), value.clone())),
            TypeKind::Device => Value::Device(Arc::new(flambeau::tensor::Device::CPU)),
            TypeKind::Union(members) if !members.is_empty() => {
                let at = self.below(members.len());
                self.value(&members[at], depth + 1)
            }
            TypeKind::Var(_) | TypeKind::Any if depth < 4 => match self.below(5) {
                0 => Value::Int(self.int()),
                1 => Value::Tensor(self.tensor()),
                2 => Value::str("x"),
                3 => Value::tuple(vec![Value::Int(1), Value::Float(2.0)]),
                _ => Value::ints([self.int(), 1]),
            },
            TypeKind::Function(_) => Value::Function(Symbol::new("none")),
            _ => Value::None,
        }
    }
}
