//! Files of `torch.save`: dictionaries, lists, numbers, text and tensors, without code. `torch.load` reads what is written here,
//! and what it writes of such values is read here; as everywhere, nothing in a file is executed.

use super::content::Bytes;
use super::limits::Limits;
use super::objects::Builder;
use super::opened::Archive;
use super::save::Tree;
use super::write::Writer;
use crate::diag::{Diagnostic, Result};
use crate::dialects::Registry;
use crate::ir::Module;
use crate::value::Value;
use std::io::Write;
use std::sync::Arc;

/// Writes a value as `torch.save` does. Fails for objects, functions and dtypes that PyTorch has no storage for.
pub fn save_values<W: Write>(registry: &Registry, value: &Value, out: W) -> Result<W> {
    let module = Module::default();
    let mut tree = Tree::untyped(registry, &module);
    let root = tree.node(value, 0)?;
    let mut writer = Writer::new(out, "archive")?;
    tree.write(&mut writer, "data", root)?;
    writer.add("version", b"3\n")?;
    writer.add("byteorder", b"little")?;
    let id = writer.serialization_id();
    writer.add(".data/serialization_id", id.as_bytes())?;
    writer.finish()
}

/// Reads what `torch.save` wrote. Fails for models, for values of classes, and for damaged files.
pub fn load_values(registry: &Registry, bytes: impl Into<Vec<u8>>) -> Result<Value> {
    // A file of data lacks what a model must have; what else is wrong with it is an error.
    let (archive, _) = Archive::from_parts_leniently(Bytes::Owned(bytes.into()), Limits::default())?;
    if archive.entry("data.pkl").is_none() || archive.entry("constants.pkl").is_some() {
        let error = Diagnostic::input("the file was not written by torch.save");
        return Err(
            error.hint("a model of torch.jit.save has code; this place wants a dictionary of tensors")
        );
    }
    let archive = Arc::new(archive);
    let module = Module::default();
    let pickle = archive.data_pickle()?;
    Ok(Builder::new(registry, &archive, "data", &module).build(&pickle)?.root)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Type;
    use crate::tensor::Tensor;
    use crate::value::Dict;

    #[test]
    fn values_come_back_and_models_are_refused() {
        let registry = Registry::builtin();
        let dict = Dict::new(Type::any(), Type::any());
        let tensor = Tensor::from_vec(&[1.0f32, 2.0], &[2]).expect("fits");
        dict.insert(&Value::str("w"), Value::Tensor(tensor)).expect("set");
        dict.insert(&Value::Int(0), Value::list(Type::any(), vec![Value::Int(3), Value::None])).expect("set");
        let bytes = save_values(&registry, &Value::Dict(dict), Vec::new()).expect("written");
        let Value::Dict(again) = load_values(&registry, bytes.clone()).expect("read") else {
            panic!("no dictionary")
        };
        let Ok(Some(Value::Tensor(w))) = again.get(&Value::str("w")) else { panic!("no tensor") };
        assert_eq!(w.to_vec::<f32>().expect("floats"), [1.0, 2.0]);
        let Ok(Some(Value::List(list))) = again.get(&Value::Int(0)) else { panic!("no list") };
        assert_eq!(list.len(), 2);
        for cut in (0..bytes.len()).step_by(7) {
            assert!(load_values(&registry, &bytes[..cut]).is_err());
        }
        let model = std::fs::read("../../examples/small.pt").expect("a model");
        assert!(load_values(&registry, model).is_err());
    }
}
