//! `flambeau inspect`: what is in an archive, without building any of it: no class is compiled, no tensor is made.

use super::io::Io;
use crate::diag::Result;
use crate::frontend::archive::{Archive, Limits, Method, Node, NodeId, Pickle, TensorRecord};
use crate::frontend::script::outline;
use clap::Args;
use indexmap::IndexSet;
use serde_json::{Value as Json, json};
use std::path::PathBuf;

/// Words of `flambeau inspect`.
#[derive(Args, Debug)]
pub struct Options {
    /// A .pt archive
    file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// List every entry of the archive
    #[arg(long)]
    entries: bool,
    /// Map the file into memory instead of reading it; it must not change meanwhile
    #[arg(long)]
    mmap: bool,
}

/// Runs the command.
pub fn run(options: &Options, io: &mut Io<'_>) -> Result<bool> {
    let path = io.path(&options.file);
    let archive = if options.mmap { Archive::map(&path, Limits::default())? } else { Archive::open(&path)? };
    let about = describe(&archive)?;
    if options.json {
        io.print(&format!("{about:#}\n"));
    } else {
        io.print(&text(&about, options.entries));
    }
    Ok(true)
}

/// Everything, as JSON.
fn describe(archive: &Archive) -> Result<Json> {
    let entries: Vec<Json> =
        archive.names().filter_map(|name| Some((name, archive.entry(name)?))).map(entry).collect();
    let data = archive.data_pickle()?;
    let constants = archive.constants_pickle()?;
    let root = match data.node(data.root()) {
        Node::Object(object) => object.class.to_string(),
        other => other.kind().to_string(),
    };
    let tensors = tensors(&data);
    let mut classes = Vec::new();
    let mut functions = Vec::new();
    for file in archive.code_files() {
        let package = file.trim_start_matches("code/").trim_end_matches(".py").replace('/', ".");
        let outline = outline(&archive.source(file)?)?;
        for class in outline.classes {
            let methods: Vec<Json> =
                class.methods.iter().map(|m| json!({ "name": m.name, "signature": m.signature })).collect();
            let attributes: Vec<Json> =
                class.attributes.iter().map(|(name, ty)| json!({ "name": name, "type": ty })).collect();
            classes.push(json!({
                "name": format!("{package}.{}", class.name),
                "base": class.base,
                "parameters": class.parameters,
                "buffers": class.buffers,
                "attributes": attributes,
                "methods": methods,
            }));
        }
        for function in outline.functions {
            functions.push(
                json!({ "name": format!("{package}.{}", function.name), "signature": function.signature }),
            );
        }
    }
    let extra: Vec<Json> = archive
        .extra_files()
        .map(|name| json!({ "name": name, "bytes": archive.entry(&format!("extra/{name}")).map(|e| e.size) }))
        .collect();
    let total = |key: &str| entries.iter().filter_map(|e| e[key].as_u64()).sum::<u64>();
    let elements = |kind: &str| -> i64 {
        let of_kind = tensors.iter().filter(|t| t["kind"] == kind);
        of_kind.filter_map(|t| t["elements"].as_i64()).sum()
    };
    Ok(json!({
        "root": archive.root_prefix(),
        "version": archive.version(),
        "byte_order": if archive.big_endian() { "big" } else { "little" },
        "producer": producer(archive),
        "model": root,
        "classes": classes,
        "functions": functions,
        "tensors": tensors,
        "constants": constant_rows(&constants),
        "extra": extra,
        "totals": {
            "entries": entries.len(),
            "stored_bytes": total("stored"),
            "bytes": total("bytes"),
            "parameters": elements("parameter"),
            "buffers": elements("buffer"),
            "storage_bytes": storage_bytes(&data),
        },
        "entries": entries,
    }))
}

fn entry((name, entry): (&str, &crate::frontend::archive::Entry)) -> Json {
    json!({
        "name": name,
        "bytes": entry.size,
        "stored": entry.compressed,
        "method": if entry.method == Method::Stored { "stored" } else { "deflated" },
        "offset": entry.start,
        "crc": format!("{:08x}", entry.crc),
    })
}

/// What wrote the archive, as far as its form tells.
fn producer(archive: &Archive) -> &'static str {
    let has = |name: &str| archive.entry(name).is_some();
    match () {
        () if has("bytecode.pkl") => "torch.jit.save for mobile (_save_for_lite_interpreter)",
        () if has("traced_inputs.pkl") => "torch.jit.save of a traced module",
        () if has(".data/serialization_id") => "torch.jit.save, PyTorch 2.1 or later",
        () if has("byteorder") => "torch.jit.save, PyTorch 2.0 or later",
        () => "torch.jit.save, before PyTorch 2.0",
    }
}

/// Tensors of the model by their path, each with its kind where the class says it is in doubt.
fn tensors(data: &Pickle) -> Vec<Json> {
    let mut out = Vec::new();
    let mut seen = IndexSet::new();
    let mut work: Vec<(String, NodeId)> = vec![(String::new(), data.root())];
    while let Some((path, id)) = work.pop() {
        let join = |name: &str| if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
        let mut next: Vec<(String, NodeId)> = Vec::new();
        match data.node(id) {
            Node::Tensor(tensor) => out.push(tensor_row(&path, tensor)),
            // A shared object is listed once, under its first path.
            Node::Object(object) if seen.insert(id) => match object.state.map(|s| (s, data.node(s))) {
                Some((_, Node::Dict(dict))) => {
                    next.extend(dict.pairs.iter().filter_map(|(k, v)| Some((join(data.str(*k)?), *v))));
                }
                Some((state, _)) => next.push((join("__state__"), state)),
                None => {}
            },
            Node::List(list) if seen.insert(id) => {
                next.extend(list.items.iter().enumerate().map(|(n, item)| (join(&n.to_string()), *item)));
            }
            Node::Tuple(items) => {
                next.extend(items.iter().enumerate().map(|(n, item)| (join(&n.to_string()), *item)));
            }
            Node::Dict(dict) if seen.insert(id) => {
                let key = |n: usize, k: NodeId| data.str(k).map_or(n.to_string(), str::to_string);
                let pairs = dict.pairs.iter().enumerate();
                next.extend(pairs.map(|(n, (k, v))| (join(&key(n, *k)), *v)));
            }
            _ => {}
        }
        work.extend(next.into_iter().rev());
    }
    out
}

fn tensor_row(path: &str, tensor: &TensorRecord) -> Json {
    let elements = tensor.numel();
    json!({
        "name": path,
        "kind": if tensor.requires_grad || tensor.parameter { "parameter" } else { "buffer" },
        "dtype": tensor.storage.element.dtype,
        "shape": tensor.sizes,
        "strides": tensor.strides,
        "offset": tensor.offset,
        "elements": elements,
        "bytes": elements.saturating_mul(tensor.storage.element.bytes as i64),
        "storage": &*tensor.storage.key,
        "device": &*tensor.storage.device,
    })
}

fn constant_rows(constants: &Pickle) -> Vec<Json> {
    let items = constants.items(constants.root()).unwrap_or_default();
    let row = |(n, id): (usize, &NodeId)| match constants.node(*id) {
        Node::Tensor(tensor) => tensor_row(&format!("CONSTANTS.c{n}"), tensor),
        other => json!({ "name": format!("CONSTANTS.c{n}"), "kind": other.kind() }),
    };
    items.iter().enumerate().map(row).collect()
}

/// Bytes of all storages, each counted once.
fn storage_bytes(data: &Pickle) -> u64 {
    let storages: IndexSet<(&str, u64)> = data.storages().map(|s| (&*s.key, s.bytes())).collect();
    storages.iter().map(|(_, bytes)| bytes).sum()
}

/// The description for people.
fn text(about: &Json, with_entries: bool) -> String {
    let mut out = String::new();
    let word = |json: &Json| json.as_str().map_or_else(|| json.to_string(), str::to_string);
    let totals = &about["totals"];
    out.push_str(&format!("model      {}\n", word(&about["model"])));
    out.push_str(&format!("format     {} ({} endian)\n", about["version"], word(&about["byte_order"])));
    out.push_str(&format!("written by {}\n", word(&about["producer"])));
    out.push_str(&format!("parameters {}\n", totals["parameters"]));
    out.push_str(&format!("buffers    {}\n", totals["buffers"]));
    out.push_str(&format!("storages   {} bytes\n", totals["storage_bytes"]));
    out.push_str(&format!("entries    {} ({} bytes)\n", totals["entries"], totals["bytes"]));
    let rows = |key: &str| about[key].as_array().cloned().unwrap_or_default();
    let mut section = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            out.push_str(&format!("\n{title}\n"));
            lines.iter().for_each(|line| out.push_str(&format!("  {line}\n")));
        }
    };
    let tensor = |t: &Json| {
        let shape = word(&t["shape"]).replace(',', ", ");
        format!(
            "{:<40} {:<9} {:<8} {:<20} {} bytes",
            word(&t["name"]),
            word(&t["kind"]),
            word(&t["dtype"]),
            shape,
            t["bytes"]
        )
    };
    section("tensors", rows("tensors").iter().map(tensor).collect());
    section(
        "constants",
        rows("constants")
            .iter()
            .map(|c| {
                if c["dtype"].is_null() {
                    format!("{} {}", word(&c["name"]), word(&c["kind"]))
                } else {
                    tensor(c)
                }
            })
            .collect(),
    );
    let mut lines = Vec::new();
    for class in rows("classes") {
        lines.push(format!("{} ({})", word(&class["name"]), word(&class["base"])));
        for attribute in class["attributes"].as_array().into_iter().flatten() {
            lines.push(format!("  {} : {}", word(&attribute["name"]), word(&attribute["type"])));
        }
        for method in class["methods"].as_array().into_iter().flatten() {
            lines.push(format!("  def {}{}", word(&method["name"]), word(&method["signature"])));
        }
    }
    section("classes", lines);
    let function = |f: &Json| format!("def {}{}", word(&f["name"]), word(&f["signature"]));
    section("functions", rows("functions").iter().map(function).collect());
    section(
        "extra files",
        rows("extra").iter().map(|e| format!("{:<40} {} bytes", word(&e["name"]), e["bytes"])).collect(),
    );
    if with_entries {
        let line = |e: &Json| {
            format!(
                "{:<60} {:>12} bytes {:>12} {}",
                word(&e["name"]),
                e["bytes"],
                e["stored"],
                word(&e["method"])
            )
        };
        section("entries", rows("entries").iter().map(line).collect());
    }
    out
}
