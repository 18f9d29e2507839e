//! Hostile pickles: each is refused, with its reason, at once, and nothing is ever executed.

use super::build::{int, ints, model_with_data, storage, tensor, text, with_attribute};
use super::hostile_zip::{read_all, refused};
use crate::frontend::archive::{Limits, pickle};

/// The pickle `value` as the whole data of a model.
fn bare(case: &str, value: &[u8], reason: &str) {
    refused(case, &model_with_data(&[b"\x80\x02", value].concat()), reason);
}

/// The value as an attribute of the module.
fn attribute(case: &str, value: &[u8], reason: &str) {
    refused(case, &model_with_data(&with_attribute(value)), reason);
}

fn accepted(case: &str, value: &[u8]) {
    if let Err(error) = read_all(&model_with_data(&with_attribute(value))) {
        panic!("{case}: {error}");
    }
}

#[test]
fn plain_values_are_read() {
    accepted("tensor", &tensor(&storage("0", 4), 0, &[2, 2], &[2, 1]));
    accepted("empty tensor", &tensor(&storage("0", 4), 4, &[0, 7], &[7, 1]));
    accepted("expanded tensor", &tensor(&storage("0", 4), 3, &[1000, 1], &[0, 1]));
    accepted("scalar tensor", &tensor(&storage("0", 4), 3, &[], &[]));
    accepted("list", b"ctorch.jit._pickle\nbuild_intlist\n(](K\x01K\x02etR");
    accepted("enum", b"c__torch__\nColor\nK\x02R");
    accepted("complex", &[b"cbuiltins\ncomplex\n", &b"G\0\0\0\0\0\0\0\0".repeat(2)[..], b"\x86R"].concat());
}

#[test]
fn foreign_globals() {
    attribute("os.system", &[b"cos\nsystem\n", &*text("id"), b"\x85R"].concat(), "names `os.system`");
    attribute("eval", &[b"cbuiltins\neval\n", &*text("1"), b"\x85R"].concat(), "names `builtins.eval`");
    attribute("not even called", b"cposix\nsystem\n", "names `posix.system`");
    attribute("getattr", b"c__builtin__\ngetattr\n", "names `__builtin__.getattr`");
    attribute("operator", b"coperator\nattrgetter\n", "names `operator.attrgetter`");
    attribute("torch.load", b"ctorch\nload\n", "names `torch.load`");
    attribute("dotted", b"ctorch\nFloatStorage.from_file\n", "names `torch.FloatStorage.from_file`");
    attribute("hidden characters", b"cos\x1b[2J\nsystem\n", "os\\u{1b}[2J");
    attribute("class with blanks", b"c__torch__\nA B\n", "not the name of a class");
    attribute("class with empty part", b"c__torch__.\nA\n", "not the name of a class");
    attribute("endless name", &[b"c", &[b'a'; 9000][..]].concat(), "does not end within");
    attribute("name in bytes", b"c\xff\n\xff\n", "not UTF-8");
    attribute("rpc", b"ctorch.distributed.rpc\nrref\n", "remote reference");
    attribute("another scheme", b"ctorch\nper_tensor_symmetric\n", "quantization scheme");
    attribute("a scheme as data", b"ctorch\nper_tensor_affine\n", "a class or function where");
    attribute("old tensors", b"ctorch.jit._pickle\nbuild_tensor_from_id\n", "a class or function where");
}

#[test]
fn calls() {
    attribute("REDUCE on an int", b"K\x01)R", "calls an int");
    attribute("REDUCE on a str", &[text("f"), b")R".to_vec()].concat(), "calls a str");
    attribute("REDUCE on a storage class", b"ctorch\nFloatStorage\n)R", "not a known constructor");
    attribute("REDUCE without tuple", b"ctorch\ndevice\nNR", "not a tuple");
    attribute("wrong count", b"ctorch\ndevice\n)R", "0 arguments");
    attribute(
        "many arguments",
        &[&b"ctorch\ndevice\n("[..], &b"N".repeat(1000), b"tR"].concat(),
        "1000 arguments",
    );
    attribute("enum of a list", b"c__torch__\nColor\n]R", "a list as value");
    attribute("device name", &[b"ctorch\ndevice\n", &*text("../x"), b"\x85R"].concat(), "name of a device");
    attribute("NEWOBJ of an int", b"K\x01)\x81", "instance of an int");
    attribute("NEWOBJ of a constructor", b"ctorch\ndevice\n)\x81", "only classes of the model");
    attribute("NEWOBJ with arguments", b"c__torch__\nA\nK\x01\x85\x81", "gives arguments");
    attribute("BUILD on a dict", b"}}b", "state of a dict");
    attribute("BUILD on a list", b"]}b", "state of a list");
    attribute("BUILD twice", b"c__torch__\nA\n)\x81}b}b", "second state");
    attribute("quantized from nothing", b"ctorch._utils\n_rebuild_qtensor\n)R", "0 arguments");
    attribute("quantized without a scheme", b"ctorch._utils\n_rebuild_qtensor\n(NNNNNNNtR", "valid scheme");
    attribute("a class as data", b"c__torch__\nA\n", "a class or function where");
    attribute("a storage as data", &storage("0", 4), "a storage where");
    attribute("complex of ints", b"cbuiltins\ncomplex\nK\x01K\x02\x86R", "floats");
}

#[test]
fn containers() {
    attribute("SETITEM on a list", b"]K\x01K\x02s", "sets items of a list");
    attribute("SETITEMS on a tuple", b")(K\x01K\x02u", "sets items of a tuple");
    attribute("SETITEM on an object", b"c__torch__\nA\n)\x81K\x01K\x02s", "sets items of an object");
    attribute("SETITEMS, odd", b"}(K\x01u", "no value");
    attribute("DICT, odd", b"(K\x01d", "no value");
    attribute("APPEND to a dict", b"}K\x01a", "appends to a dict");
    attribute("APPENDS to an int", b"K\x05(K\x01e", "appends to an int");
    attribute("APPENDS to a tuple", b")(K\x01e", "appends to a tuple");
    attribute(
        "intlist of strs",
        &[&b"ctorch.jit._pickle\nbuild_intlist\n]("[..], &text("a"), b"e\x85R"].concat(),
        "contains a str",
    );
    attribute("intlist of a dict", b"ctorch.jit._pickle\nbuild_intlist\n}\x85R", "built from a dict");
    let tagged =
        |value: &[u8], tag: &[u8]| [b"ctorch.jit._pickle\nrestore_type_tag\n", value, tag, b"\x86R"].concat();
    attribute("tag on an int", &tagged(b"K\x01", &text("int")), "tag is on an int");
    attribute("tag that is not a str", &tagged(b"]", b"N"), "not a string");
    attribute("tag that lies", &tagged(b"]Na", &text("List[int]")), "List[int] contains None");
    attribute("long tag", &tagged(b"]", &text(&"x".repeat(70_000))), "70000 bytes");
    let once = tagged(b"]q\x01", &text("List[str]"));
    attribute(
        "two tags",
        &[&once[..], &tagged(b"h\x01", &text("List[int]")), b"\x86"].concat(),
        "second, different type",
    );
    attribute("append after the tag", &[&once[..], b"Na"].concat(), "after its type was set");
    attribute(
        "duplicate key",
        &[b"}(", &*text("k"), b"N", &text("k"), b"Nu"].concat(),
        "two values for the key `k`",
    );
    attribute("duplicate int key", b"}(K\x01NK\x01Nu", "two values for the key 1");
    attribute("list as key", b"}]Ns", "a list as key");
    attribute("list in itself", b"]q\x01h\x01a", "contains itself");
    attribute("dict in itself", &[b"}q\x01", &*text("k"), b"h\x01s"].concat(), "contains itself");
    attribute("object in its state", b"c__torch__\nA\n)\x81q\x01h\x01b", "contains itself");
    attribute("cycle through a tuple", b"]q\x01h\x01\x85a", "contains itself");
}

#[test]
fn sizes_and_lengths() {
    attribute("str of 4 GiB", b"X\xff\xff\xff\xff", "4294967295 bytes are announced");
    attribute("str of 2^64 bytes", &[b"\x8d", &[0xff; 8][..]].concat(), "18446744073709551615 bytes");
    attribute("long int", &[b"\x8a\x09", &[1; 9][..]].concat(), "64 bits");
    attribute("cut off", b"G\0\0", "cut off");
    let deep: Vec<u8> = [b")".to_vec(), b"\x85".repeat(2000)].concat();
    attribute("deep nesting", &deep, "nested more than 1000 deep");
    let deep: Vec<u8> = [b"(".repeat(300_000), b"t".repeat(300_000)].concat();
    attribute("deeper nesting", &deep, "nested more than 1000 deep");
    attribute("marks", &b"(".repeat((1 << 20) + 1), "1048576 open marks");
    attribute("stack", &b"N".repeat((1 << 20) + 1), "1048576 values on its stack");
    attribute("memo slot", b"r\xff\xff\xff\xff", "memo slots");
    attribute("memo slot at the cap", b"r\0\0\x10\0", "memo slots");
    attribute("empty memo", b"h\x07", "memo slot 7, which is empty");
    attribute("far memo", b"j\xff\xff\xff\x7f", "which is empty");
}

#[test]
fn shared_values_do_not_multiply() {
    // Thirty levels of "twice the last one": a tree of a billion leaves, thirty nodes.
    let mut doubling = b")q\x01".to_vec();
    for _ in 0..30 {
        doubling.extend(b"h\x01h\x01\x86q\x01");
    }
    // TorchScript has no POP, so everything that was left on the stack goes into one tuple.
    let value = [b"(", &*doubling, b"t"].concat();
    let data = with_attribute(&value);
    let tree = pickle::parse(&data, &Limits::default()).expect("shared tuples are data");
    assert!(tree.len() < 40, "{} nodes", tree.len());
}

#[test]
fn repeated_checks_are_counted() {
    // A list of 100 000 ints whose type is checked again and again.
    let mut value = b"](".to_vec();
    value.extend(b"K\x01".repeat(100_000));
    value.extend(b"eq\x01(");
    value.extend(b"ctorch.jit._pickle\nbuild_intlist\nq\x02h\x01\x85R");
    value.extend(b"h\x02h\x01\x85R".repeat(2000));
    value.extend(b"t\x86");
    let limits = Limits { pickle_ops: 10_000_000, ..Limits::default() };
    let error = pickle::parse(&with_attribute(&value), &limits).expect_err("two hundred million checks");
    assert!(error.message().contains("more than 10000000 steps"), "{error}");
}

#[test]
fn memory_is_counted() {
    let limits = Limits { budget_factor: 0, budget_base: 10_000, ..Limits::default() };
    let many = with_attribute(&[b"(", &b"G\0\0\0\0\0\0\0\0".repeat(1000)[..], b"t"].concat());
    let error = pickle::parse(&many, &limits).expect_err("floats");
    assert!(error.message().contains("10000 bytes of memory"), "{error}");
}

#[test]
fn frames() {
    bare("no protocol in the middle", b"\x80\x02N.", "middle");
    refused("no protocol", &model_with_data(b"N."), "start with its protocol");
    refused("empty", &model_with_data(b""), "cut off");
    refused("protocol 5", &model_with_data(b"\x80\x05N."), "protocol 5");
    refused("protocol 1", &model_with_data(b"\x80\x01N."), "protocol 1");
    bare("no STOP", b"N", "cut off");
    bare("nothing", b".", "0 values");
    bare("two values", b"NN.", "2 values");
    bare("open mark", b"(N.", "open mark");
    bare("more behind", b"N.cos\nsystem\n", "follow the end");
    bare("close without mark", b"t.", "did not open");
    bare("pop below the mark", b"N(\x85.", "empty stack");
    bare("memoize below the mark", b"N(q\0.", "empty stack");
    for op in [b'0', b'2', b'i', b'o', b'P', b'\x82', b'\x8c', b'\x92', b'\x93', b'\x94', b'\x95', b'B', b'V']
    {
        bare("opcode", &[op, b'.'], "not one that TorchScript writes");
    }
    bare("no opcode", b"\xfe.", "not a pickle opcode");
}

#[test]
fn storages() {
    let wrong = "a persistent id is not";
    attribute("persistent str", &[text("os.system"), b"Q".to_vec()].concat(), wrong);
    attribute("persistent tuple", b")Q", wrong);
    attribute(
        "no storage class",
        &[b"(", &*text("storage"), b"N", &text("0"), &text("cpu"), b"K\x01tQ"].concat(),
        wrong,
    );
    let tagged =
        [b"(", &*text("module"), b"ctorch\nFloatStorage\n", &text("0"), &text("cpu"), b"K\x01tQ"].concat();
    attribute("another tag", &tagged, wrong);
    attribute("path as key", &storage("../code/x", 1), "not a plain name");
    attribute("empty key", &storage("", 1), "not a plain name");
    attribute("negative size", &storage("0", -1), "impossible size");
    attribute("size in bytes overflows", &storage("0", i64::MAX), "impossible size");
    attribute(
        "missing entry",
        &tensor(&storage("9", 1), 0, &[1], &[1]),
        "data/9`, which the archive does not have",
    );
    attribute("short entry", &tensor(&storage("0", 5), 0, &[5], &[1]), "has 16 bytes, and 5 elements");
    let giant = tensor(&storage("0", 1 << 60), 0, &[1 << 60], &[1]);
    attribute("giant entry", &giant, "has 16 bytes");
}

#[test]
fn tensors() {
    let four = storage("0", 4);
    let case = |name: &str, offset, sizes: &[i64], strides: &[i64], reason| {
        attribute(name, &tensor(&four, offset, sizes, strides), reason);
    };
    case("too many elements", 0, &[5], &[1], "to 5 of storage `0`, which has 4");
    case("offset past the end", 4, &[1], &[1], "from element 4 to 5");
    case("empty past the end", 5, &[0], &[1], "from element 5");
    case("negative offset", -1, &[1], &[1], "from element -1");
    case("stride past the end", 0, &[2], &[4], "to 5 of");
    case("negative size", 0, &[-1], &[1], "-1 among its sizes");
    case("negative stride", 3, &[4], &[-1], "-1 among its strides");
    case("sizes overflow", 0, &[1 << 40, 1 << 40], &[0, 0], "beyond 64 bits");
    case("bytes overflow", 0, &[i64::MAX], &[0], "beyond 64 bits");
    case("strides overflow", 0, &[3], &[i64::MAX], "beyond 64 bits");
    case("offset overflows", i64::MAX, &[2], &[1], "beyond 64 bits");
    case("counts differ", 0, &[1, 1], &[1], "2 sizes and 1 strides");
    case("65 dimensions", 0, &[1; 65], &[1; 65], "65 dimensions");
    attribute("no storage", &tensor(b"N", 0, &[1], &[1]), "not a storage");
    let call = |middle: &[u8]| [b"ctorch._utils\n_rebuild_tensor_v2\n(", &*four, middle, b"tR"].concat();
    let one = ints(&[1]);
    attribute("sizes as a list", &call(&[&int(0)[..], b"]", &one, b"\x89N"].concat()), "not a tuple");
    attribute(
        "sizes as strs",
        &call(&[&int(0)[..], &text("a"), b"\x85", &one, b"\x89N"].concat()),
        "among its",
    );
    attribute("offset as a str", &call(&[&text("0")[..], &one, &one, b"\x89N"].concat()), "wrong type");
    let hooks = [&int(0)[..], &one, &one, b"\x89}K\x01Ns"].concat();
    attribute("hooks", &call(&hooks), "backward hooks");
    let metadata = [&int(0)[..], &one, &one, b"\x89N}", &text("evil"), b"\x88s"].concat();
    attribute("metadata", &call(&metadata), "metadata other than");
    attribute(
        "parameter of a str",
        &[b"ctorch._utils\n_rebuild_parameter\n", &*text("x"), b"\x88N\x87R"].concat(),
        "not a tensor",
    );
}
