//! Programs whose groups run on a backend of the caller's.

use super::Program;
use crate::backends::{Backend, Executable, by_name};
use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::Kernel;
use crate::dialects::{Registry, Run};
use crate::lowering::Target;
use crate::passes;
use crate::tensor::Tensor;
use std::sync::Arc;

/// Fails as a GPU does whose driver reports an error.
struct Broken;

impl Backend for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn target(&self) -> Target {
        Target::Gpu
    }

    fn compile(&self, _: &Kernel) -> Result<Arc<dyn Executable>> {
        Err(Diagnostic::device("out of memory"))
    }
}

fn fused() -> Program {
    let source = crate::diag::Source::new(
        "test.py",
        "def f(x: Tensor) -> Tensor:\n    return (x + x).mul(x).relu()\n",
    );
    let registry = Registry::builtin();
    let module = crate::frontend::script::compile_source(&registry, &source).expect("compiles");
    let pipeline = passes::parse("default").expect("is there");
    Program::new(module).transformed(|m, r| pipeline.run(m, r).map(|_| ())).expect("fuses")
}

#[test]
fn groups_run_on_the_backend_that_was_asked_for() {
    let x = Tensor::from_vec(&[1.0f32, -2.0, 3.0], &[3]).expect("fits");
    let answer = fused().on(by_name("interp").expect("there")).run("f", vec![x.into()], &Run::default());
    assert_eq!(answer.expect("runs").to_text(), "  2\n  8\n 18\n[ CPUFloatType{3} ]");
}

#[test]
fn a_device_that_fails_is_reported() {
    let x = Tensor::from_vec(&[1.0f32], &[1]).expect("fits");
    let error = fused().on(Arc::new(Broken)).run("f", vec![x.into()], &Run::default());
    assert!(error.expect_err("fails").message().contains("out of memory"));
}
