//! `flambeau inspect`: what is in an archive, without building any of it: no class is compiled, no tensor is made.

mod exported;
mod problems;

use super::io::Io;
use crate::diag::Result;
use crate::dialects::{Registry, is_custom_class};
use crate::frontend::archive::recognize::recognize_zip;
use crate::frontend::archive::{Archive, Limits, Method, Node, NodeId, Pickle, TensorRecord, is_exported};
use crate::frontend::script::outline;
use crate::ir::Symbol;
use crate::tools::limits::LimitOptions;
use clap::Args;
use indexmap::IndexSet;
use problems::Problems;
use serde_json::{Value as Json, json};
use std::path::PathBuf;

/// Options of `flambeau inspect`.
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
    /// Map the file into memory instead of reading it; it must not change during that time
    #[arg(long)]
    mmap: bool,
    /// Load a dialect definition file
    #[arg(long, value_name = "FILE")]
    dialect: Vec<PathBuf>,
    #[command(flatten)]
    pub(in crate::tools) limits: LimitOptions,
}

/// Maximum number of rows of a list that are shown, and of bytes of a path.
const MAX_ROWS: usize = 100_000;
const MAX_PATH: usize = 1000;

/// Runs the command. Whatever can be shown of a damaged or foreign archive is shown, and then it fails.
pub fn run(options: &Options, io: &mut Io<'_>) -> Result<bool> {
    let (path, toolkit) = (io.path(&options.file), io.toolkit_with(&options.dialect)?);
    let (archive, problems) = match options.mmap {
        // SAFETY: the user asks for it with --mmap, whose help says that the file must not change meanwhile.
        #[allow(unsafe_code, reason = "maps a file where the user says that it stays unchanged")]
        true => (unsafe { Archive::map(&path, Limits::default())? }, Vec::new()),
        false => Archive::open_leniently(&path)?,
    };
    let mut problems = Problems(problems);
    let about = describe(&archive, toolkit.registry(), &mut problems);
    if options.json {
        io.print(&format!("{about:#}\n"));
    } else {
        io.print(&text(&about, options.entries));
    }
    problems.0.into_iter().next().map_or(Ok(true), Err)
}

/// Everything, as JSON.
fn describe(archive: &Archive, registry: &Registry, problems: &mut Problems) -> Json {
    let entries: Vec<Json> =
        archive.names().filter_map(|name| Some((name, archive.entry(name)?))).map(entry).collect();
    let mut pickle = |stem: &str| {
        let present = archive.has_pickle(&format!("{stem}.pkl"));
        present.then(|| {
            // Where storages are missing or short, the tree can be shown all the same.
            let whole = archive.pickle(stem);
            let tree = match &whole {
                Ok(_) => None,
                Err(_) => archive.parse(&format!("{stem}.pkl")).ok(),
            };
            problems.keep(whole).or(tree)
        })?
    };
    let data = pickle("data");
    let constants = pickle("constants");
    let root = data.as_ref().map(|data| match data.node(data.root()) {
        Node::Object(object) => object.class.to_string(),
        other => other.kind().to_string(),
    });
    let mut tensors = data.as_ref().map(tensors).unwrap_or_default();
    let (classes, mut functions) = code(archive, problems);
    let programs = exported::programs(archive, problems);
    tensors.extend(programs.iter().flat_map(|program| exported::tensors(program).take(MAX_ROWS)));
    functions.extend(programs.iter().map(exported::function));
    let root = root.or_else(|| programs.first().map(|program| program.name.clone()));
    let extra: Vec<Json> = archive
        .extra_files()
        .map(|name| json!({ "name": name, "bytes": archive.entry(&format!("extra/{name}")).map(|e| e.size) }))
        .collect();
    let total = |key: &str| entries.iter().filter_map(|e| e[key].as_u64()).fold(0u64, u64::saturating_add);
    let elements = |kind: &str| -> i64 {
        let of_kind = tensors.iter().filter(|t| t["kind"] == kind);
        of_kind.filter_map(|t| t["elements"].as_i64()).fold(0i64, i64::saturating_add)
    };
    json!({
        "root": archive.root_prefix(),
        "version": archive.version(),
        "byte_order": if archive.big_endian() { "big" } else { "little" },
        "producer": producer(archive),
        "model": root.unwrap_or_else(|| "unknown".into()),
        "custom_classes": data.as_ref().map(|data| custom_classes(data, registry)).unwrap_or_default(),
        "classes": classes,
        "functions": functions,
        "operators": exported::operators(&programs),
        "tensors": tensors,
        "constants": constants.as_ref().map(constant_rows).unwrap_or_default(),
        "extra": extra,
        "totals": {
            "entries": entries.len(),
            "stored_bytes": total("stored"),
            "bytes": total("bytes"),
            "parameters": elements("parameter"),
            "buffers": elements("buffer"),
            "storage_bytes": data.as_ref().map_or(0, storage_bytes) + exported::storage_bytes(archive, &programs),
        },
        "problems": problems.rows(),
        "entries": entries,
    })
}

/// Classes and functions of the code, as their texts say.
fn code(archive: &Archive, problems: &mut Problems) -> (Vec<Json>, Vec<Json>) {
    let (mut classes, mut functions) = (Vec::new(), Vec::new());
    for file in archive.code_files() {
        let package = file.trim_start_matches("code/").trim_end_matches(".py").replace('/', ".");
        let read = archive.source(file).and_then(|source| outline(&source));
        let Some(outline) = problems.keep(read) else { continue };
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
    (classes, functions)
}

/// Classes of objects that are written in C++, and whether they are known here.
fn custom_classes(data: &Pickle, registry: &Registry) -> Vec<Json> {
    let objects = data.iter().filter_map(|(_, node)| match node {
        Node::Object(object) if is_custom_class(&object.class) => Some(&*object.class),
        _ => None,
    });
    let names: IndexSet<&str> = objects.collect();
    let known = |name: &str| registry.custom_class(Symbol::new(name)).is_some();
    names.into_iter().map(|name| json!({ "name": name, "supported": known(name) })).collect()
}

fn entry((name, entry): (&str, &crate::frontend::archive::Entry)) -> Json {
    json!({
        "name": name,
        "bytes": entry.size,
        "stored": entry.compressed,
        "method": if entry.method == Method::Stored { "stored" } else { "deflated" },
        "offset": entry.start,
        "crc": entry.crc.map(|crc| format!("{crc:08x}")),
    })
}

/// What wrote the archive, as far as its form shows.
fn producer(archive: &Archive) -> &'static str {
    let has = |name: &str| archive.entry(name).is_some();
    if let Some(kind) = recognize_zip(archive.names()) {
        return kind.writer.unwrap_or("another program than torch.jit.save");
    }
    match () {
        () if is_exported(archive) => "torch.export.save",
        () if archive.is_flat() && archive.code_files().next().is_some() => {
            "torch.jit.save_jit_module_to_flatbuffer"
        }
        () if archive.is_flat() => {
            "torch.jit.save for mobile, a flatbuffer (_save_for_lite_interpreter with _use_flatbuffer)"
        }
        () if has("model.json") => "torch.jit.save of PyTorch 1.0 to 1.3",
        () if has("bytecode.pkl") && archive.code_files().next().is_none() => {
            "torch.jit.save for mobile, bytecode without code (_save_for_lite_interpreter)"
        }
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
        if out.len() >= MAX_ROWS {
            break;
        }
        let join = |name: &str| match path.is_empty() {
            true => name.chars().take(MAX_PATH).collect(),
            false if path.len() + name.len() > MAX_PATH => format!("{}...", path.trim_end_matches("...")),
            false => format!("{path}.{name}"),
        };
        let mut next: Vec<(String, NodeId)> = Vec::new();
        match data.node(id) {
            Node::Tensor(tensor) => out.push(tensor_row(&path, tensor)),
            // What is shared is listed once, under its first path.
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
            Node::Tuple(items) if seen.insert(id) => {
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
    items.iter().enumerate().take(MAX_ROWS).map(row).collect()
}

/// Bytes of all storages, each counted once.
fn storage_bytes(data: &Pickle) -> u64 {
    let storages: IndexSet<(&str, u64)> = data.storages().map(|s| (&*s.key, s.bytes())).collect();
    storages.iter().fold(0u64, |sum, (_, bytes)| sum.saturating_add(*bytes))
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
    let custom = |c: &Json| {
        let known = if c["supported"] == true { "" } else { " (not supported)" };
        format!("{}{known}", word(&c["name"]))
    };
    section("custom classes", rows("custom_classes").iter().map(custom).collect());
    let function = |f: &Json| format!("def {}{}", word(&f["name"]), word(&f["signature"]));
    section("functions", rows("functions").iter().map(function).collect());
    section(
        "operators",
        rows("operators").iter().map(|o| format!("{:<60} {}", word(&o["target"]), o["calls"])).collect(),
    );
    section(
        "extra files",
        rows("extra").iter().map(|e| format!("{:<40} {} bytes", word(&e["name"]), e["bytes"])).collect(),
    );
    let problem = |p: &Json| {
        let hints: Vec<String> = p["hints"].as_array().into_iter().flatten().map(word).collect();
        if hints.is_empty() {
            word(&p["message"])
        } else {
            format!("{} ({})", word(&p["message"]), hints.join("; "))
        }
    };
    section("problems", rows("problems").iter().map(problem).collect());
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
