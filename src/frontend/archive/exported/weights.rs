//! The tensors of an exported program: raw elements, with sizes and strides in a table of their own. Tensors that share an
//! entry share their storage.

use super::codes;
use super::schema::{Payload, PayloadConfig, parse};
use crate::diag::{Diagnostic, Result};
use crate::frontend::archive::opened::Archive;
use crate::tensor::{DType, Dims, Layout, Storage, Tensor};
use hashbrown::HashMap;
use std::sync::Arc;

/// Folders of tensors: parameters and buffers that are saved with the model, and all others.
const FOLDERS: [&str; 2] = ["weights", "constants"];

/// A tensor of an exported program.
#[derive(Debug)]
pub struct OutlinedTensor {
    /// Qualified name.
    pub name: String,
    /// Whether it is a parameter, and no buffer or constant.
    pub is_parameter: bool,
    /// Element type.
    pub dtype: DType,
    /// Sizes.
    pub sizes: Vec<i64>,
    /// Strides, in elements.
    pub strides: Vec<i64>,
    /// Name of the archive's entry.
    pub entry: String,
}

/// The tensors of a model by qualified name.
pub(super) struct Weights<'a> {
    archive: &'a Arc<Archive>,
    tables: Vec<(&'static str, PayloadConfig)>,
    storages: HashMap<String, Storage>,
}

impl<'a> Weights<'a> {
    /// Reads the tables, and no tensor yet.
    pub(super) fn open(archive: &'a Arc<Archive>, model: &str) -> Result<Weights<'a>> {
        Ok(Weights { archive, tables: tables(archive, model)?, storages: HashMap::new() })
    }

    /// The tensor with a name.
    pub(super) fn tensor(&mut self, name: &str) -> Result<Tensor> {
        let found = self.tables.iter().find_map(|(folder, table)| Some((*folder, table.config.get(name)?)));
        let Some((folder, payload)) = found else {
            return Err(Diagnostic::input(format!(
                "the archive does not say where the tensor `{name}` is stored"
            )));
        };
        let entry = format!("data/{folder}/{}", payload.path_name);
        let (dtype, layout, requires_grad) = about(name, payload)?;
        let storage = match self.storages.get(&entry) {
            Some(storage) => storage.clone(),
            None => {
                let storage = self.archive.raw_storage(&entry)?;
                self.storages.insert(entry.clone(), storage.clone());
                storage
            }
        };
        let tensor = Tensor::from_storage(storage, dtype, layout).map_err(|mut error| {
            let report = error.report_mut();
            report.message = format!("tensor `{name}` in {entry}: {}", report.message);
            error
        })?;
        tensor.set_requires_grad(requires_grad)?;
        Ok(tensor)
    }
}

/// The tables of a model, by folder.
fn tables(archive: &Archive, model: &str) -> Result<Vec<(&'static str, PayloadConfig)>> {
    let mut tables = Vec::new();
    for folder in FOLDERS {
        let name = format!("data/{folder}/{model}_{folder}_config.json");
        if archive.entry(&name).is_some() {
            tables.push((folder, parse(&name, &archive.read(&name)?)?));
        }
    }
    Ok(tables)
}

/// What the tables say of a model's tensors.
pub(super) fn outline(archive: &Archive, model: &str) -> Result<Vec<OutlinedTensor>> {
    let mut tensors = Vec::new();
    for (folder, table) in tables(archive, model)? {
        for (name, payload) in table.config {
            let (dtype, layout, _) = about(&name, &payload)?;
            let entry = format!("data/{folder}/{}", payload.path_name);
            let (sizes, strides) = (layout.sizes.to_vec(), layout.strides.to_vec());
            tensors.push(OutlinedTensor {
                is_parameter: payload.is_param,
                name,
                dtype,
                sizes,
                strides,
                entry,
            });
        }
    }
    Ok(tensors)
}

/// Dtype, layout, and whether gradients are recorded.
fn about(name: &str, payload: &Payload) -> Result<(DType, Layout, bool)> {
    let meta = match &payload.tensor_meta {
        Some(meta) if !payload.use_pickle => meta,
        _ => {
            return Err(Diagnostic::unsupported(format!(
                "`{name}` is stored as a Python pickle: a custom object or a subclass of Tensor"
            ))
            .hint("export the model with plain tensors"));
        }
    };
    codes::layout(meta.layout)?;
    let offset = usize::try_from(codes::known(&meta.storage_offset)?)
        .map_err(|_| Diagnostic::input(format!("tensor `{name}` has a negative offset")))?;
    let sizes = meta.sizes.iter().map(codes::known).collect::<Result<Dims>>()?;
    let strides = meta.strides.iter().map(codes::known).collect::<Result<Dims>>()?;
    Ok((codes::dtype(meta.dtype)?, Layout { sizes, strides, offset }, meta.requires_grad))
}
