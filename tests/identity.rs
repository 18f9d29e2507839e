//! Rules speak of values; what is the same object must stay so. Random programs of views, copies, arithmetic and
//! writes run as they are and through pipelines, with rules of users that drop copies too. Answers, and who
//! shares memory with whom among inputs and outputs, must be equal: then no caller can observe a difference, whatever it writes.

use flambeau::dialects::Run;
use flambeau::tensor::Tensor;
use flambeau::toolkit::Toolkit;
use flambeau::value::Value;
use libtest_mimic::{Failed, Trial};
use std::fmt::Write;
use std::fs;

/// Random programs.
const PROGRAMS: u64 = 600;

/// Rules that are right in value and would be wrong in identity.
const RULES: &str = "\
rule drop-contiguous exact aten::contiguous(?x: Tensor) => ?x
rule drop-clone exact aten::clone(?x: Tensor) => ?x
rule same-reshape exact aten::reshape(?x: Tensor, ?s: int[]) => ?x if same_shape(?x, result)
rule drop-neg exact aten::neg(aten::neg(?x: Tensor)) => ?x
rule add-nothing nan-relaxed aten::add(?x: Tensor, 0) => ?x if is_float(?x)
rule copy-twice exact aten::t(aten::t(?x: Tensor)) => aten::clone(aten::t(aten::t(?x)))
rule copy-view exact aten::detach(?x: Tensor) => aten::clone(?x)
rule shared exact aten::abs(aten::neg(?x: Tensor)) => aten::abs(?x) if is_float(?x)
";

/// The one trial.
pub fn trials() -> Vec<Trial> {
    vec![Trial::test("identity::random_programs", random_programs)]
}

fn random_programs() -> Result<(), Failed> {
    let folder = std::env::temp_dir().join(format!("flambeau-identity-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let rules = folder.join("copies.rules");
    fs::write(&rules, RULES)?;
    let file = format!("rules={:?}", rules.display().to_string());
    let pipelines: Vec<String> = [
        "simplify".to_string(),
        "peephole".to_string(),
        "default".to_string(),
        format!("simplify{{{file}}}"),
        format!("simplify{{{file},driver=greedy}}"),
        format!("cse,simplify{{{file},cost=bytes}},simplify{{{file}}},dce"),
    ]
    .into();
    let mut ran = 0;
    let mut changed = vec![0; pipelines.len()];
    for seed in 0..PROGRAMS {
        let text = program(seed);
        let plain = Toolkit::default().load_graph("graph", &text, "forward").map_err(|e| e.to_string())?;
        let Some(wanted) = observe(&plain) else { continue };
        ran += 1;
        for (n, pipeline) in pipelines.iter().enumerate() {
            let passes = Toolkit::default().parse_pipeline(pipeline).map_err(|e| e.to_string())?;
            let mut did = false;
            let better = plain
                .transformed(|module, registry| {
                    did = passes.run(module, registry)?;
                    Ok(())
                })
                .map_err(|e| format!("seed {seed}, {pipeline}: {e}\n{text}"))?;
            changed[n] += usize::from(did);
            let got = observe(&better);
            if got.as_ref() != Some(&wanted) {
                let _ = fs::remove_dir_all(&folder);
                return Err(
                    format!("seed {seed}, {pipeline}:\n{text}\ngives\n{got:?}\nnot\n{wanted:?}").into()
                );
            }
        }
    }
    let _ = fs::remove_dir_all(&folder);
    // Programs may raise (a view of what does not lie so); most must not, and rules must fire, or nothing is tested.
    if ran * 2 < PROGRAMS || changed.iter().any(|n| *n < 20) {
        return Err(format!("only {ran} of {PROGRAMS} programs ran, and {changed:?} were changed").into());
    }
    Ok(())
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n.max(1) as u64) as usize
    }
}

/// A program over square matrices, of which the dtype is known and, for half of the programs, the strides of inputs.
fn program(seed: u64) -> String {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9));
    let input = if seed.is_multiple_of(2) {
        "Float(3, 3, strides=[3, 1], requires_grad=0, device=cpu)"
    } else {
        SQUARE
    };
    let mut body = String::new();
    let mut tensors: Vec<String> = vec!["x".into(), "y".into()];
    for n in 0..3 + random.below(7) {
        // What was made last is used more often.
        let last = tensors.len() - 1;
        let a = tensors[if random.below(3) == 0 { random.below(last + 1) } else { last }].clone();
        let b = tensors[random.below(last + 1)].clone();
        let right = match random.below(18) {
            0 | 1 => format!("aten::neg(%{a})"),
            2 | 3 => format!("aten::t(%{a})"),
            4 => format!("aten::add(%{a}, %zero, %one)"),
            5 => format!("aten::mul(%{a}, %one)"),
            6 => format!("aten::contiguous(%{a}, %zero)"),
            7 => format!("aten::clone(%{a}, %none)"),
            8 => format!("aten::reshape(%{a}, %square)"),
            9 => format!("aten::reshape(%{a}, %square)"),
            10 => format!("aten::relu(%{a})"),
            11 => format!("aten::detach(%{a})"),
            12 => format!("aten::abs(%{a})"),
            13 => format!("aten::add(%{a}, %{b}, %one)"),
            14 => format!("aten::add_(%{a}, %{b}, %one)"),
            15 => format!("aten::neg_(%{a})"),
            16 => format!("aten::transpose(%{a}, %zero, %one)"),
            _ => format!("aten::expand(%{a}, %square, %no)"),
        };
        let _ = writeln!(body, "  %v{n} : {SQUARE} = {right}");
        tensors.push(format!("v{n}"));
    }
    let pick =
        |random: &mut Random| format!("%{}", tensors[tensors.len() - 1 - random.below(4.min(tensors.len()))]);
    let outputs: Vec<String> = (0..2).map(|_| pick(&mut random)).collect();
    let outputs = outputs.join(", ");
    format!(
        "graph(%x : {input},
      %y : {input}):
  %none : NoneType = prim::Constant()
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %three : int = prim::Constant[value=3]()
  %no : bool = prim::Constant[value=0]()
  %square : int[] = prim::ListConstruct(%three, %three)
{body}  %r : (Tensor, Tensor) = prim::TupleConstruct({outputs})
  return (%r)
"
    )
}

const SQUARE: &str = "Float(3, 3, device=cpu)";

/// What a caller can see: answers and how they lie in memory, who shares memory, and what is left of the inputs.
#[derive(Debug, PartialEq)]
pub struct Seen {
    answers: Vec<String>,
    shared: Vec<(usize, usize)>,
}

/// Runs `forward` on two square matrices. None if it raises, or gives anything but tensors.
pub fn observe(program: &flambeau::runtime::Program) -> Option<Seen> {
    let run = Run::silent();
    run.set_grad_enabled(false);
    let numbers = |first: f32| -> Vec<f32> { (0..9u8).map(|n| f32::from(n) * 0.75 - first).collect() };
    let x = Tensor::from_vec::<f32>(&numbers(2.0), &[3, 3]).ok()?;
    let y = Tensor::from_vec::<f32>(&numbers(-1.0), &[3, 3]).ok()?;
    let arguments = vec![Value::Tensor(x.clone()), Value::Tensor(y.clone())];
    let Ok(Value::Tuple(outputs)) = program.run("forward", arguments, &run) else { return None };
    let mut tensors = vec![x, y];
    let mut seen = Seen { answers: Vec::new(), shared: Vec::new() };
    for output in outputs.items() {
        match output {
            Value::Tensor(t) => tensors.push(t.clone()),
            _ => return None,
        }
    }
    for (n, a) in tensors.iter().enumerate() {
        let numbers: Vec<f64> = a.to_scalars().ok()?.iter().map(|x| x.to_complex().re).collect();
        let layout = a.layout();
        seen.answers.push(format!(
            "{numbers:?}, strides {:?} from {}",
            layout.strides.as_slice(),
            layout.offset
        ));
        for (m, b) in tensors.iter().enumerate().skip(n + 1) {
            if a.storage().same(&b.storage()) {
                seen.shared.push((n, m));
            }
        }
    }
    Some(seen)
}
