//! Archives that mean harm: each class of attack that loaders of models have met, and each law of the reader. All are
//! refused with a reason; `hostile.rs` runs them and watches their memory.

use flate2::{Compression, write::DeflateEncoder};
use std::io::Write;

/// One archive: its name, its bytes, and a part of the message.
pub struct Archive {
    pub name: &'static str,
    pub make: fn() -> Vec<u8>,
    pub says: &'static str,
}

const fn case(name: &'static str, make: fn() -> Vec<u8>, says: &'static str) -> Archive {
    Archive { name, make, says }
}

/// A file of the archive, as its two headers describe it.
#[derive(Clone)]
struct Entry {
    name: Vec<u8>,
    local_name: Option<Vec<u8>>,
    data: Vec<u8>,
    size: u32,
    crc: u32,
    method: u16,
    flags: u16,
    /// Says that it starts where this entry starts.
    shares: Option<usize>,
}

fn entry(name: &str, data: impl AsRef<[u8]>) -> Entry {
    let data = data.as_ref().to_vec();
    Entry {
        name: name.as_bytes().to_vec(),
        local_name: None,
        size: data.len() as u32,
        crc: crc32fast::hash(&data),
        data,
        method: 0,
        flags: 0,
        shares: None,
    }
}

fn deflated(name: &str, data: &[u8]) -> Entry {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(data).expect("memory takes all");
    let packed = encoder.finish().expect("memory takes all");
    Entry { data: packed, size: data.len() as u32, crc: crc32fast::hash(data), method: 8, ..entry(name, []) }
}

fn zip(entries: &[Entry]) -> Vec<u8> {
    zip_with(entries, entries.len() as u16, &[])
}

fn zip_with(entries: &[Entry], count: u16, comment: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut starts = Vec::new();
    let fields = |e: &Entry, name: &[u8]| {
        let mut f = Vec::new();
        for x in [20, e.flags, e.method, 0, 0] {
            f.extend(u16::to_le_bytes(x));
        }
        for x in [e.crc, e.data.len() as u32, e.size] {
            f.extend(x.to_le_bytes());
        }
        f.extend((name.len() as u16).to_le_bytes());
        f.extend(0u16.to_le_bytes());
        f
    };
    for e in entries {
        starts.push(out.len() as u32);
        let name = e.local_name.as_ref().unwrap_or(&e.name);
        out.extend(b"PK\x03\x04");
        out.extend(fields(e, name));
        out.extend(name);
        out.extend(&e.data);
    }
    let directory = out.len() as u32;
    for (n, e) in entries.iter().enumerate() {
        out.extend(b"PK\x01\x02\x14\0");
        out.extend(fields(e, &e.name));
        out.extend([0; 10]);
        out.extend(starts[e.shares.unwrap_or(n)].to_le_bytes());
        out.extend(&e.name);
    }
    let size = out.len() as u32 - directory;
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(count.to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend(size.to_le_bytes());
    out.extend(directory.to_le_bytes());
    out.extend((comment.len() as u16).to_le_bytes());
    out.extend(comment);
    out
}

const CODE: &str = "class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n  def forward(self: __torch__.M,\n    x: Tensor) -> Tensor:\n    return torch.relu(x)\n";

/// A text as the pickle machine reads it.
fn text(text: &str) -> Vec<u8> {
    [b"X", &(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}

/// A model whose attribute `a` is the value of some opcodes.
fn with_value(value: &[u8]) -> Vec<u8> {
    let data = [b"\x80\x02c__torch__\nM\n)\x81}(", &text("training")[..], b"\x88", &text("a"), value, b"ub."]
        .concat();
    zip(&with(&[("m/data.pkl", data)]))
}

/// The entries of the plain model, some of them replaced or added.
fn with(changes: &[(&str, Vec<u8>)]) -> Vec<Entry> {
    let data = [b"\x80\x02c__torch__\nM\n)\x81}(", &text("training")[..], b"\x88ub."].concat();
    let mut all = vec![
        entry("m/data.pkl", data),
        entry("m/code/__torch__.py", CODE),
        entry("m/constants.pkl", b"\x80\x02)."),
        entry("m/version", "3\n"),
    ];
    for (name, bytes) in changes {
        match all.iter_mut().find(|e| e.name == name.as_bytes()) {
            Some(old) => *old = entry(name, bytes),
            None => all.push(entry(name, bytes)),
        }
    }
    all
}

fn without(name: &str) -> Vec<u8> {
    let all: Vec<Entry> = with(&[]).into_iter().filter(|e| e.name != name.as_bytes()).collect();
    zip(&all)
}

fn plus(extra: Entry) -> Vec<u8> {
    let mut all = with(&[]);
    all.push(extra);
    zip(&all)
}

fn code(text: &str) -> Vec<u8> {
    zip(&with(&[("m/code/__torch__.py", text.as_bytes().to_vec())]))
}

/// A method with a body.
fn body(lines: &str) -> Vec<u8> {
    code(&CODE.replace("    return torch.relu(x)\n", lines))
}

/// The same for a method without arguments, so that a call reaches its lines.
fn called(lines: &str) -> Vec<u8> {
    let without = CODE.replace("self: __torch__.M,\n    x: Tensor)", "self: __torch__.M)");
    code(&without.replace("    return torch.relu(x)\n", lines))
}

/// A tensor as a view of a storage of `numel` floats; the archive has four of them.
fn tensor(numel: &str, offset: &str, sizes: &str, strides: &str) -> Vec<u8> {
    let op = |ints: &str| -> Vec<u8> {
        let ints = ints.split_whitespace().map(|n| n.parse::<i64>().expect("an int"));
        ints.flat_map(|n| [b"\x8a\x08".to_vec(), n.to_le_bytes().to_vec()].concat()).collect()
    };
    let value = [
        b"ctorch._utils\n_rebuild_tensor_v2\n((".to_vec(),
        text("storage"),
        b"ctorch\nFloatStorage\n".to_vec(),
        text("0"),
        text("cpu"),
        op(numel),
        b"tQ".to_vec(),
        op(offset),
        b"(".to_vec(),
        op(sizes),
        b"t(".to_vec(),
        op(strides),
        b"t\x89ccollections\nOrderedDict\n)RtR".to_vec(),
    ];
    let data = [
        b"\x80\x02c__torch__\nM\n)\x81}(",
        &text("training")[..],
        b"\x88",
        &text("a"),
        &value.concat(),
        b"ub.",
    ]
    .concat();
    zip(&with(&[("m/data.pkl", data), ("m/data/0", vec![0; 16])]))
}

/// The plain model, which is not an attack.
pub fn plain() -> Vec<u8> {
    zip(&with(&[]))
}

/// All of them.
pub const TABLE: &[Archive] = &[
    // The container.
    case("cut_in_half", || plain()[..200].to_vec(), "archive"),
    case("bytes_behind_the_end", || [plain(), b"PK".to_vec()].concat(), "archive"),
    case("comment", || zip_with(&with(&[]), 4, b"hello"), "archive"),
    case("fewer_entries_than_listed", || zip_with(&with(&[]), 3, b""), "after its last entry"),
    case("more_entries_than_listed", || zip_with(&with(&[]), 5, b""), "central directory"),
    case("sixty_thousand_entries_claimed", || zip_with(&with(&[]), 60_000, b""), "cannot hold"),
    case("path_traversal", || plus(entry("m/../../etc/passwd", "x")), "`..`"),
    case("absolute_path", || plus(entry("/etc/passwd", "x")), "absolute"),
    case("backslash_path", || plus(entry("m\\x", "x")), "backslash"),
    case("drive_path", || plus(entry("C:/x", "x")), "colon"),
    case("control_character_in_name", || plus(entry("m/x\n", "x")), "control character"),
    case("name_not_utf8", || plus(Entry { name: b"m/\xff".to_vec(), ..entry("", "x") }), "UTF-8"),
    case("two_roots", || plus(entry("n/x", "x")), "n/x"),
    case("duplicate_entry", || plus(entry("m/version", "4\n")), "version"),
    case(
        "local_name_differs",
        || plus(Entry { local_name: Some(b"m/b".to_vec()), ..entry("m/a", "x") }),
        "m/a",
    ),
    case("overlapping_entries", || plus(Entry { shares: Some(0), ..entry("m/x", "x") }), "archive"),
    case("encrypted", || plus(Entry { flags: 1, ..entry("m/x", "x") }), "encrypted"),
    case("unknown_method", || plus(Entry { method: 14, ..entry("m/x", "x") }), "compression method 14"),
    case("unknown_flags", || plus(Entry { flags: 0x1000, ..entry("m/x", "x") }), "flags"),
    case("sizes_differ", || plus(Entry { size: 9, ..entry("m/x", "x") }), "sizes differ"),
    case(
        "wrong_checksum",
        || {
            let mut all = with(&[]);
            all[1].crc ^= 1;
            zip(&all)
        },
        "checksum",
    ),
    case("decompression_bomb", || plus(deflated("m/x", &vec![0; 8 << 20])), "inflate"),
    case(
        "deflate_is_noise",
        || {
            let mut all = with(&[]);
            all[1] = Entry { data: vec![0xff; 40], ..deflated("m/code/__torch__.py", CODE.as_bytes()) };
            zip(&all)
        },
        "__torch__.py",
    ),
    // The format.
    case("no_version", || without("m/version"), "version"),
    case("version_of_the_future", || zip(&with(&[("m/version", b"99\n".to_vec())])), "99"),
    case("version_is_prose", || zip(&with(&[("m/version", b"three".to_vec())])), "version"),
    case("version_is_huge", || zip(&with(&[("m/version", vec![b'1'; 1 << 20])])), "version"),
    case("byte_order_is_prose", || zip(&with(&[("m/byteorder", b"middle".to_vec())])), "byteorder"),
    case("no_data", || without("m/data.pkl"), "data.pkl"),
    case("saved_by_torch_save", || without("m/constants.pkl"), "torch.save"),
    case("legacy_model_json", || plus(entry("m/model.json", "{}")), "main module"),
    case(
        "legacy_model_json_deep",
        || plus(entry("m/model.json", "{\"mainModule\":".repeat(1 << 16))),
        "JSON",
    ),
    case(
        "legacy_tensor_elsewhere",
        || {
            let tensor = r#"{"mainModule":{"name":"m"},"tensors":[{"dims":["4"],"strides":["1"],"dataType":"FLOAT","data":{"key":"tensors/9"}}]}"#;
            plus(entry("m/model.json", tensor))
        },
        "does not have",
    ),
    case("package", || plus(entry("m/.data/ts_code/0/x", "")), "torch.package"),
    // The pickle machine: what would run, reach out of bounds or grow.
    case("os_system", || with_value(b"cos\nsystem\n(X\x02\0\0\0ls\x85R"), "os"),
    case("builtins_eval", || with_value(b"cbuiltins\neval\nX\x01\x00\x00\x001\x85R"), "eval"),
    case("nt_popen", || with_value(b"cnt\npopen\n)R"), "nt"),
    case("pickle_inside_pickle", || with_value(b"c_pickle\nloads\n)R"), "_pickle"),
    case("inst_opcode", || with_value(b"(ios\nsystem\n"), "opcode"),
    case("obj_opcode", || with_value(b"(cos\nsystem\no"), ""),
    case("extension_registry", || with_value(b"\x82\x01"), "opcode"),
    case("call_of_a_text", || with_value(b"X\x01\0\0\0f)R"), ""),
    case("build_on_a_list", || with_value(b"]}b"), ""),
    case("set_items_on_a_list", || with_value(b"](K\x01K\x02u"), ""),
    case("append_to_a_dict", || with_value(b"}K\x01a"), ""),
    case("list_as_a_key", || with_value(b"}(]K\x01u"), ""),
    case("memo_that_is_empty", || with_value(b"h\x63"), ""),
    case("memo_of_four_billion", || with_value(b"Nr\xff\xff\xff\xff"), ""),
    case("stack_underflow", || with_value(b"\x86\x86\x86\x86\x86\x86"), ""),
    case("text_of_four_gigabytes", || with_value(b"X\xff\xff\xff\xffab"), ""),
    case("text_of_an_exabyte", || with_value(b"\x8d\xff\xff\xff\xff\xff\xff\xff\x0fab"), ""),
    case("long_of_200_bytes", || with_value(&[&b"\x8a\xc8"[..], &[1; 200]].concat()), ""),
    case("list_that_holds_itself", || with_value(b"]q\x05h\x05a"), ""),
    case("tuples_100000_deep", || with_value(&[&b"N"[..], &vec![0x85; 100_000]].concat()), ""),
    case("no_stop", || zip(&with(&[("m/data.pkl", b"\x80\x02N".to_vec())])), "data.pkl"),
    case("empty_pickle", || zip(&with(&[("m/data.pkl", Vec::new())])), "data.pkl"),
    case("protocol_5", || zip(&with(&[("m/data.pkl", b"\x80\x05N.".to_vec())])), "data.pkl"),
    case("root_is_an_int", || zip(&with(&[("m/data.pkl", b"\x80\x02K\x07.".to_vec())])), "not a module"),
    case("constants_are_no_tuple", || zip(&with(&[("m/constants.pkl", b"\x80\x02N.".to_vec())])), "tuple"),
    // Tensors that lie about their storage.
    case("storage_longer_than_its_bytes", || tensor("1000", "0", "4", "1"), "data/0"),
    case("view_past_the_end", || tensor("4", "0", "5", "1"), ""),
    case("offset_past_the_end", || tensor("4", "4", "1", "1"), ""),
    case("negative_offset", || tensor("4", "-1", "4", "1"), ""),
    case("negative_size", || tensor("4", "0", "-4", "1"), ""),
    case("negative_stride", || tensor("4", "3", "4", "-1"), ""),
    case("sizes_overflow", || tensor("4", "0", "4611686018427387904 4611686018427387904", "0 0"), ""),
    case("stride_overflows", || tensor("4", "0", "3", "9223372036854775807"), ""),
    case("sizes_and_strides_differ", || tensor("4", "0", "2 2", "1"), ""),
    case("storage_numel_overflows", || tensor("9223372036854775807", "0", "4", "1"), ""),
    case("expanded_to_an_exabyte", || tensor("4", "0", "1152921504606846976", "0"), ""),
    case(
        "storage_missing",
        || {
            let data = tensor("4", "0", "4", "1");
            // The same pickle, with the storage under another name.
            let at = data.windows(8).position(|w| w == b"m/data/0").expect("its name");
            let mut data = data;
            data[at + 7] = b'1';
            let last = data.windows(8).rposition(|w| w == b"m/data/0").expect("its name");
            data[last + 7] = b'1';
            data
        },
        "data/0",
    ),
    // The code.
    case(
        "op_that_reads_files",
        // Known by its schema, so that it is refused only where it would run.
        || called("    return torch.from_file(\"/etc/passwd\", False, 10)\n"),
        "from_file",
    ),
    case(
        "op_that_writes_files",
        || called("    x = torch.zeros([1])\n    ops.aten.save(x, \"/tmp/x\")\n    return x\n"),
        "save",
    ),
    case("import", || body("    import os\n    return x\n"), ""),
    case(
        "type_that_would_be_evaluated",
        || code(&CODE.replace("x: Tensor", "x: __import__('os').system('ls')")),
        "",
    ),
    case("call_of_an_unknown_function", || body("    return __torch__.gone(x, )\n"), "gone"),
    case("constant_that_does_not_exist", || body("    return CONSTANTS.c99999\n"), "c99999"),
    case("class_without_code", || code("class N(Module):\n  training : bool\n"), "M"),
    case("code_is_not_utf8", || zip(&with(&[("m/code/__torch__.py", vec![0xff; 9])])), "UTF-8"),
    case("code_is_noise", || code("@@@@\n"), "__torch__.py"),
    case(
        "code_nested_100000_deep",
        || body(&format!("    return {}x{}\n", "(".repeat(100_000), ")".repeat(100_000))),
        "",
    ),
    case(
        "code_with_100000_ifs",
        || {
            let ifs: String =
                (0..100_000).map(|n| format!("{}if True:\n", " ".repeat(4 + n.min(100)))).collect();
            body(&ifs)
        },
        "",
    ),
    case("recursion", || body("    return (self).forward(x, )\n"), ""),
    case(
        "debug_table_is_noise",
        || {
            zip(&with(&[
                ("m/code/__torch__.py.debug_pkl", b"\x80\x02(I\n".to_vec()),
                ("m/code/__torch__.py", b"x\n".to_vec()),
            ]))
        },
        "",
    ),
];
