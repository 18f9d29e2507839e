//! Archives that PyTorch wrote (`tests/golden/record_archives.py`), compared with what PyTorch itself
//! reads from them.

use std::path::PathBuf;

use indexmap::IndexMap;
use serde_json::Value;

use crate::frontend::archive::{Archive, Node, NodeId, Pickle, TensorRecord};

pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/archives")
}

/// Compares trees, and maps storages to the recorded groups: equal group, equal storage.
pub struct Comparison<'a> {
    archive: &'a Archive,
    stem: &'a str,
    pickle: &'a Pickle,
    groups: IndexMap<u64, String>,
}

impl<'a> Comparison<'a> {
    pub fn new(archive: &'a Archive, stem: &'a str, pickle: &'a Pickle) -> Self {
        Comparison { archive, stem, pickle, groups: IndexMap::new() }
    }

    pub fn same(&mut self, id: NodeId, expected: &Value, path: &str) {
        let members = expected.as_object().expect("a value is an object").iter();
        let mut kinds = members.filter(|(key, _)| !["type", "attributes"].contains(&key.as_str()));
        let (kind, want) = kinds.next().expect("a kind");
        match (self.pickle.node(id), kind.as_str()) {
            (Node::None, "none") => {}
            (Node::Bool(have), "bool") => assert_eq!(Some(*have), want.as_bool(), "{path}"),
            (Node::Int(have), "int") => assert_eq!(Some(*have), want.as_i64(), "{path}"),
            (Node::Float(have), "float") => {
                let want: f64 = want.as_str().expect("a float is text").parse().expect("a float");
                assert_eq!(have.to_bits(), want.to_bits(), "{path}");
            }
            (Node::Complex(re, im), "complex") => {
                assert_eq!(vec![*re, *im], serde_json::from_value::<Vec<f64>>(want.clone()).expect("parts"));
            }
            (Node::Str(have), "str") => assert_eq!(Some(&**have), want.as_str(), "{path}"),
            (Node::Device(have), "device") => assert_eq!(Some(&**have), want.as_str(), "{path}"),
            (Node::List(have), "list") => {
                same_type(have.type_text.as_deref(), expected, path);
                self.all(&have.items, want, path);
            }
            (Node::Tuple(have), "tuple") => self.all(have, want, path),
            (Node::Dict(have), "dict") => {
                same_type(have.type_text.as_deref(), expected, path);
                let want = want.as_array().expect("pairs");
                assert_eq!(have.pairs.len(), want.len(), "{path}");
                for ((key, value), pair) in have.pairs.iter().zip(want) {
                    self.same(*key, &pair[0], path);
                    self.same(*value, &pair[1], path);
                }
            }
            (Node::Enum(have), "enum") => {
                let class = format!("__torch__.{}", want[0].as_str().expect("a name"));
                assert_eq!(*have.class, class, "{path}");
                self.same(have.value, &want[1], path);
            }
            (Node::Object(have), "object") => {
                assert_eq!(Some(&*have.class), want.as_str(), "{path}");
                let attributes = expected["attributes"].as_object().expect("attributes");
                for (name, value) in attributes {
                    let have = self.pickle.attribute(id, name);
                    self.same(
                        have.unwrap_or_else(|| panic!("{path}.{name}")),
                        value,
                        &format!("{path}.{name}"),
                    );
                }
            }
            (Node::Tensor(have), "tensor") => self.same_tensor(have, want, path),
            (have, want) => panic!("{path}: {} where {want} should be", have.kind()),
        }
    }

    fn all(&mut self, have: &[NodeId], want: &Value, path: &str) {
        let want = want.as_array().expect("items");
        assert_eq!(have.len(), want.len(), "{path}");
        for (index, (have, want)) in have.iter().zip(want).enumerate() {
            self.same(*have, want, &format!("{path}[{index}]"));
        }
    }

    fn same_tensor(&mut self, have: &TensorRecord, want: &Value, path: &str) {
        assert_eq!(Some(have.storage.element.dtype), want["dtype"].as_str(), "{path}");
        assert_eq!(serde_json::json!(have.sizes), want["sizes"], "{path}");
        assert_eq!(serde_json::json!(have.strides), want["strides"], "{path}");
        assert_eq!(serde_json::json!(have.offset), want["offset"], "{path}");
        assert_eq!(Some(have.requires_grad), want["requires_grad"].as_bool(), "{path}");
        assert_eq!(Some(have.conj), want["conj"].as_bool(), "{path}");
        let bytes = self.archive.storage_bytes(self.stem, &have.storage).expect("a storage");
        let data: String = gather(have, &bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(Some(&*data), want["data"].as_str(), "{path}");
        if let Some(group) = want["group"].as_u64() {
            let key = have.storage.key.to_string();
            if let Some((other, _)) = self.groups.iter().find(|(_, k)| **k == key) {
                assert_eq!(*other, group, "{path} shares a storage that it should not");
            }
            assert_eq!(*self.groups.entry(group).or_insert(key.clone()), key, "{path} shares no storage");
        }
    }
}

/// Types of inner lists are not recorded, because PyTorch's own objects do not record them.
fn same_type(have: Option<&str>, expected: &Value, path: &str) {
    assert!(have.is_some(), "{path} states no type");
    assert!(expected["type"].is_null() || expected["type"].as_str() == have, "{path} is a {have:?}");
}

/// The elements of a view in row-major order.
fn gather(tensor: &TensorRecord, storage: &[u8]) -> Vec<u8> {
    let width = tensor.storage.element.bytes as usize;
    let mut out = Vec::new();
    for index in 0..tensor.numel() {
        let mut rest = index;
        let mut at = tensor.offset;
        for (size, stride) in tensor.sizes.iter().zip(&tensor.strides).rev() {
            at += rest % size * stride;
            rest /= size;
        }
        out.extend(&storage[at as usize * width..][..width]);
    }
    out
}

/// Opens a recorded archive with its description.
pub fn recorded(name: &str) -> (Archive, Value) {
    let archive = Archive::open(folder().join(format!("{name}.pt"))).expect("a recorded archive");
    let text = std::fs::read_to_string(folder().join(format!("{name}.json"))).expect("its description");
    (archive, serde_json::from_str(&text).expect("a description is JSON"))
}

/// Checks an archive against a description.
pub fn check(archive: &Archive, want: &Value, name: &str) {
    assert_eq!(Some(archive.version()), want["version"].as_u64());
    let code = want["code"].as_object().expect("code");
    let mut files: Vec<&str> = archive.code_files().collect();
    files.sort_unstable();
    assert_eq!(files, code.keys().map(|key| &**key).collect::<Vec<_>>());
    for (file, text) in code {
        assert_eq!(Some(archive.source(file).expect("a source").text()), text.as_str());
    }
    let extra = want["extra"].as_object().expect("extra files");
    assert_eq!(archive.extra_files().count(), extra.len());
    for (file, text) in extra {
        let bytes = archive.read(&format!("extra/{file}")).expect("an extra file");
        assert_eq!(Some(&*bytes), text.as_str().map(str::as_bytes));
    }
    let data = archive.data_pickle().expect("the data");
    Comparison::new(archive, "data", &data).same(data.root(), &want["data"], name);
    let constants = archive.constants_pickle().expect("the constants");
    let want = serde_json::json!({ "tuple": want["constants"] });
    Comparison::new(archive, "constants", &constants).same(constants.root(), &want, "constants");
}

pub const NAMES: [&str; 9] = [
    "shared_parameter",
    "attributes",
    "lists",
    "dtypes",
    "views",
    "empty",
    "constants",
    "deflated_code",
    "script_class",
];

#[test]
fn recorded_archives_read_as_pytorch_reads_them() {
    for name in NAMES {
        let (archive, want) = recorded(name);
        assert_eq!(Some(archive.root_prefix()), want["root"].as_str());
        check(&archive, &want, name);
    }
}

#[test]
fn shared_values_are_shared_nodes() {
    let (archive, _) = recorded("script_class");
    let data = archive.data_pickle().expect("the data");
    let pair = data.attribute(data.root(), "a").expect("the pair");
    assert!(matches!(data.node(pair), Node::Object(_)));
    assert_eq!(data.attribute(pair, "first"), data.attribute(pair, "second"));
    assert_eq!(data.attribute(data.root(), "b"), Some(pair));
}

#[test]
fn code_is_traced_back_to_its_python_line() {
    let (archive, _) = recorded("deflated_code");
    let name = archive.code_files().next().expect("a source").to_string();
    let code = archive.source(&name).expect("a source");
    let ranges = archive.debug_ranges(&name).expect("debug ranges").expect("debug ranges");
    let place = ranges.lookup(code.text().find("torch.relu(").expect("a call of relu")).expect("its place");
    assert_eq!(place.text(), "torch.relu");
    assert_eq!(place.source().name(), "record_archives.py");
    let script = include_str!("../../../../tests/golden/record_archives.py");
    let line = 1 + script.lines().position(|line| line.contains("torch.relu(x) + i")).expect("the line");
    assert_eq!(place.line_column().0, line);
    assert_eq!(ranges.lookup(0), None);
}

#[test]
fn big_endian_storages_are_turned_around_once() {
    use super::build::{base, build, item, storage, tensor, with_attribute};
    let mut items = base(&with_attribute(&tensor(&storage("0", 2), 0, &[2], &[1])));
    items[4] = item("m/byteorder", "big");
    items.push(item("m/data/0", [1.5f32.to_be_bytes(), (-2.0f32).to_be_bytes()].concat()));
    let archive = Archive::from_bytes(build(&items).bytes).expect("an archive");
    let data = archive.data_pickle().expect("the data");
    let storage = data.storages().next().expect("a storage");
    let bytes = archive.storage_bytes("data", storage).expect("its bytes");
    assert_eq!(&*bytes, [1.5f32.to_le_bytes(), (-2.0f32).to_le_bytes()].concat());
}
