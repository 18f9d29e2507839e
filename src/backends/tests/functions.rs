//! Kernels that are called with tensors: what they reach is checked, on every engine alike.

use crate::backends::{Backend, KernelFunction, by_name};
use crate::ir::parse_graph;
use crate::tensor::{DType, Layout, Tensor};
use crate::value::Value;
use std::sync::Arc;

const GATHER: &str =
    "graph(%out : loop.buffer<loop.f32>, %a : loop.buffer<loop.f32>, %p : loop.buffer<loop.i64>, %n : loop.i64):
  %zero : loop.i64 = loop::const[value=0]()
  %one : loop.i64 = loop::const[value=1]()
   = loop::for[mark=\"parallel_vector\"](%zero, %n, %one)
    block0(%i : loop.i64):
      %at : loop.i64 = loop::load(%p, %i)
      %x : loop.f32 = loop::load(%a, %at)
       = loop::store(%out, %i, %x)
      -> ()
  return ()
";

fn engines() -> Vec<Arc<dyn Backend>> {
    let interp = by_name("interp").expect("is built in");
    std::iter::once(interp).chain(by_name("llvm").ok()).collect()
}

fn gather(backend: &Arc<dyn Backend>, arguments: &[Value]) -> Result<(), String> {
    let graph = parse_graph(GATHER).expect("parses");
    let kernel = KernelFunction::new(&graph, Arc::clone(backend)).expect("is well formed");
    assert_eq!(kernel.written().collect::<Vec<_>>(), [0]);
    kernel.run(arguments).map_err(|error| error.message().to_string())
}

fn floats(values: &[f32]) -> Tensor {
    Tensor::from_vec(values, &[values.len() as i64]).expect("fits")
}

#[test]
fn an_index_outside_is_an_error_wherever_it_stands() {
    let a = floats(&[1.0, 2.0, 3.0]);
    for engine in engines() {
        // Whole vectors, tails and nothing at all.
        for n in [0usize, 1, 7, 32, 33, 77] {
            let good: Vec<i64> = (0..n as i64).map(|i| i % 3).collect();
            let call = |places: &[i64]| {
                let out = floats(&vec![0.0; n]);
                let places = Tensor::from_vec(places, &[n as i64]).expect("fits");
                let arguments = [out.clone(), a.clone(), places].map(Value::Tensor);
                let arguments = [&arguments[..], &[Value::Int(n as i64)]].concat();
                gather(&engine, &arguments).map(|()| out.to_vec::<f32>().expect("floats"))
            };
            let expected: Vec<f32> = good.iter().map(|i| *i as f32 + 1.0).collect();
            assert_eq!(call(&good), Ok(expected), "{} of {n}", engine.name());
            for bad in 0..n {
                for index in [-1, 3, i64::MIN, i64::MAX] {
                    let mut places = good.clone();
                    places[bad] = index;
                    let error = call(&places).expect_err("reaches outside");
                    assert!(error.ends_with("outside of its buffer %a"), "{}: {error}", engine.name());
                }
            }
        }
    }
}

#[test]
fn a_view_is_a_buffer_of_its_own() {
    let whole = floats(&[1.0, 2.0, 3.0, 4.0]);
    let part = whole.with_layout(Layout::strided(&[2], &[1], 1).expect("fits")).expect("lies within");
    for engine in engines() {
        let call = |places: &[i64]| {
            let out = floats(&[0.0, 0.0]);
            let places = Tensor::from_vec(places, &[2]).expect("fits");
            let tensors = [out.clone(), part.clone(), places].map(Value::Tensor);
            let done = gather(&engine, &[&tensors[..], &[Value::Int(2)]].concat());
            done.map(|()| out.to_vec::<f32>().expect("floats"))
        };
        assert_eq!(call(&[1, 0]), Ok(vec![3.0, 2.0]));
        assert!(call(&[2, 0]).is_err(), "{}: element 3 of the whole is not of the part", engine.name());
    }
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    let (out, a) = (floats(&[0.0, 0.0]), floats(&[1.0, 2.0]));
    let places = Tensor::from_vec(&[0i64, 1], &[2]).expect("fits");
    let learns = floats(&[0.0, 0.0]);
    learns.set_requires_grad(true).expect("a leaf");
    let doubles = Tensor::zeros(DType::F64, &[2]).expect("fits");
    let number = || Value::Int(2);
    let tensor = |t: &Tensor| Value::Tensor(t.clone());
    let strided = Tensor::zeros(DType::F32, &[2, 2]).expect("fits");
    let strided = strided.with_layout(Layout::strided(&[2], &[2], 0).expect("fits")).expect("lies within");
    let cases = [
        (vec![tensor(&out), tensor(&a)], "takes 4 arguments, not 2"),
        (vec![tensor(&out), tensor(&out), tensor(&places), number()], "shares its memory"),
        (
            vec![tensor(&out), tensor(&doubles), tensor(&places), number()],
            "%a holds f32, and is given a tensor of float64",
        ),
        (vec![tensor(&out), tensor(&strided), tensor(&places), number()], "%a takes a contiguous tensor"),
        (vec![tensor(&learns), tensor(&a), tensor(&places), number()], "%out is stored to"),
        (vec![tensor(&out), tensor(&a), number(), number()], "%p takes a tensor, not int"),
        (vec![tensor(&out), tensor(&a), tensor(&places), Value::Bool(true)], "%n takes i64, not bool"),
    ];
    for engine in engines() {
        for (arguments, message) in &cases {
            let error = gather(&engine, arguments).expect_err(message);
            assert!(error.contains(message), "{error}");
        }
    }
}
