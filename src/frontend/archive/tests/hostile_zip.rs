//! Hostile and damaged containers: each is refused, with its reason, at once.

use super::build::{Built, Item, build, deflate, item, model};
use crate::frontend::archive::{Archive, Limits};

/// Opens an archive and reads everything in it.
pub fn read_all(bytes: &[u8]) -> crate::diag::Result<()> {
    let archive = Archive::from_bytes(bytes)?;
    for name in archive.names() {
        archive.read(name)?;
    }
    for name in archive.code_files() {
        archive.source(name)?;
        archive.debug_ranges(name)?;
    }
    for stem in ["data", "constants"] {
        let pickle = archive.pickle(stem)?;
        for storage in pickle.storages() {
            archive.storage_bytes(stem, storage)?;
        }
    }
    Ok(())
}

/// Checks that an archive is refused with a message that contains `reason`.
pub fn refused(case: &str, bytes: &[u8], reason: &str) {
    let error = read_all(bytes).expect_err(case);
    assert!(error.message().contains(reason), "{case}: expected `{reason}` in `{}`", error.message());
    assert!(error.message().len() < 1000, "{case}: a message of {} bytes", error.message().len());
}

fn deflated(name: &str, data: impl Into<Vec<u8>>) -> Item {
    Item { deflate: true, ..item(name, data) }
}

fn named(name: &[u8]) -> Built {
    let mut odd = item("m/x", "");
    odd.name = name.to_vec();
    model(vec![odd])
}

fn extra() -> Built {
    model(vec![item("m/extra/x", "hello"), item("m/extra/y", "world")])
}

const VERSION: &str = "m/version";

#[test]
fn a_plain_model_is_read() {
    read_all(&model(vec![]).bytes).expect("the base case of all hostile ones");
    read_all(&model(vec![deflated("m/extra/x", "a".repeat(90))]).bytes).expect("deflated entries are normal");
    let mut seekable = item("m/extra/x", "hello");
    seekable.descriptor = false;
    read_all(&model(vec![seekable]).bytes).expect("sizes in the local header are normal");
    read_all(&model(vec![item("m/extra/", "")]).bytes).expect("folders are normal");
}

#[test]
fn truncation_anywhere_is_an_error() {
    let whole = extra().bytes;
    for length in 0..whole.len() {
        assert!(read_all(&whole[..length]).is_err(), "the first {length} bytes were taken for an archive");
    }
}

#[test]
fn a_changed_byte_is_seen_or_harmless() {
    // Times, versions and attributes mean nothing to the reader; everything else must be noticed.
    let built = extra();
    let ignored = |at: usize| {
        let central = built.places.iter().any(|p| matches!(at.wrapping_sub(p.3), 4..8 | 12..16 | 36..42));
        let local = built.places.iter().any(|p| matches!(at.wrapping_sub(p.1), 4..6 | 10..14));
        // Bits that describe the deflate level, in both headers at once only.
        central || local
    };
    for at in 0..built.bytes.len() {
        let mut bytes = built.bytes.clone();
        bytes[at] ^= 0x10;
        assert!(ignored(at) || read_all(&bytes).is_err(), "a change of byte {at} went unseen");
    }
}

#[test]
fn other_files_are_named() {
    refused("empty", b"", "not a zip file");
    refused("text", &b"def f(x):\n".repeat(20), "not a zip file");
    refused("flatbuffer", &[b"\x10\0\0\0PTMF", &[0; 100][..]].concat(), "a mobile model as a flatbuffer");
    refused("bare pickle", &[b"\x80\x02", &[0; 100][..]].concat(), "torch.save");
    refused("lfs", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS");
}

#[test]
fn other_formats_are_named() {
    let plain = |names: &[&str]| build(&names.iter().map(|name| item(name, "3\n")).collect::<Vec<_>>()).bytes;
    refused("torch.save", &plain(&["m/data.pkl", VERSION]), "torch.save");
    refused("a zip", &plain(&["m/readme"]), "no `data.pkl`");
    refused("tensors.pkl", &plain(&["m/tensors.pkl", "m/data.pkl"]), "PyTorch 1.3");
    refused("package", &plain(&["m/.data/ts_code/0/data.pkl", "m/data.pkl"]), "torch.package");
    refused("no version", &plain(&["m/data.pkl", "m/constants.pkl"]), "no entry `version`");
}

#[test]
fn versions() {
    let version = |text: &str| {
        let mut items = super::build::base(b"\x80\x02).");
        items[3] = item(VERSION, text);
        build(&items).bytes
    };
    refused("too new", &version("11\n"), "file format 11");
    refused("zero", &version("0\n"), "file format 0");
    refused("negative", &version("-1\n"), "version number");
    refused("words", &version("three\n"), "version number");
    refused("long", &version(&"3".repeat(100_000)), "version number");
    read_all(&version("10\n")).expect("the newest");
    let mut items = super::build::base(b"\x80\x02).");
    items[4] = item("m/byteorder", "middle");
    refused("byte order", &build(&items).bytes, "byteorder");
}

#[test]
fn end_records() {
    refused("trailing bytes", &[&model(vec![]).bytes[..], b"PK\x05\x06"].concat(), "something follows");
    refused("comment", &model(vec![]).end(20, &[5, 0]).bytes, "comment");
    let twice = [model(vec![]).bytes, model(vec![]).bytes].concat();
    refused("two archives", &twice, "does not end where the end record starts");
    refused("prefix", &[b"#!/bin/sh\n", &model(vec![]).bytes[..]].concat(), "does not end where");
    refused("other disk", &model(vec![]).end(4, &[1, 0]).bytes, "another file");
    refused("counts differ", &model(vec![]).end(8, &[4, 0]).bytes, "another file");
    refused("fewer entries", &model(vec![]).end(8, &[4, 0, 4, 0]).bytes, "after its last entry");
    refused("more entries", &model(vec![]).end(8, &[6, 0, 6, 0]).bytes, "record 5 of its central directory");
    refused("impossible count", &model(vec![]).end(8, &[0, 9, 0, 9]).bytes, "cannot hold 2304 entries");
    refused("needs zip64", &model(vec![]).end(8, &[0xff; 12]).bytes, "64-bit end record and has none");
    refused("no entries", &build(&[]).bytes, "are not in a folder");
}

/// Puts a 64-bit end record with the given values before the end record.
fn wide_end(built: Built, count: u64, size: u64, offset: u64) -> Vec<u8> {
    let end = built.end as u64;
    let mut bytes = built.bytes[..built.end].to_vec();
    bytes.extend(b"PK\x06\x06");
    bytes.extend(44u64.to_le_bytes());
    bytes.extend([0; 12]);
    bytes.extend([count, count, size, offset].map(u64::to_le_bytes).concat());
    bytes.extend([b"PK\x06\x07\0\0\0\0", &end.to_le_bytes()[..], &[1, 0, 0, 0]].concat());
    bytes.extend(&built.bytes[built.end..]);
    bytes
}

#[test]
fn wide_end_records() {
    let sizes = |b: &Built| ((b.end - b.directory) as u64, b.directory as u64);
    let (size, offset) = sizes(&model(vec![]));
    read_all(&wide_end(model(vec![]), 5, size, offset)).expect("PyTorch always writes one");
    let full = model(vec![]).end(8, &[0xff; 12]);
    read_all(&wide_end(full, 5, size, offset)).expect("all fields in the wide record");
    refused("disagreement", &wide_end(model(vec![]), 4, size, offset), "disagree");
    let full = || model(vec![]).end(8, &[0xff; 12]);
    refused("many entries", &wide_end(full(), 65_537, size, offset), "cannot hold");
    refused("huge count", &wide_end(full(), u64::MAX, size, offset), "cannot hold");
    refused("overflow", &wide_end(full(), 5, u64::MAX, offset), "does not end where");
    let mut bytes = wide_end(model(vec![]), 5, size, offset);
    let locator = bytes.len() - 42;
    bytes[locator + 8..locator + 16].copy_from_slice(&u64::MAX.to_le_bytes());
    refused("locator points away", &bytes, "not where it should be");
    let mut bytes = wide_end(model(vec![]), 5, size, offset);
    let record = bytes.len() - 98;
    bytes[record + 4] = 45;
    refused("wrong length", &bytes, "wrong length");
}

#[test]
fn sixty_five_thousand_entries() {
    let many = |count: usize| {
        let mut items = super::build::base(b"\x80\x02).");
        items.extend((items.len()..count).map(|i| item(&format!("m/extra/{i}"), "")));
        let built = build(&items);
        let (size, offset) = ((built.end - built.directory) as u64, built.directory as u64);
        wide_end(built.end(8, &[0xff; 4]), count as u64, size, offset)
    };
    refused("one too many", &many(65_537), "65537 entries, and the limit is 65536");
    Archive::from_bytes(many(65_536)).expect("as many as allowed");
}

#[test]
fn names() {
    refused("parent", &named(b"m/../x").bytes, "`..`");
    refused("here", &named(b"m/./x").bytes, "`.`");
    refused("absolute", &named(b"/m/x").bytes, "absolute");
    refused("empty part", &named(b"m//x").bytes, "empty part");
    refused("empty", &named(b"").bytes, "empty part");
    refused("drive", &named(b"C:/x").bytes, "colon");
    refused("backslash", &named(b"m\\x").bytes, "backslash");
    refused("zero byte", &named(b"m/x\0.pkl").bytes, "control character");
    refused("not UTF-8", &named(b"m/\xff").bytes, "UTF-8");
    refused("long", &named(&[b'm'; 5000]).bytes, "of 5000 bytes");
    refused("second root", &named(b"other/data.pkl").bytes, "outside the folder `m`");
    refused("folder with bytes", &model(vec![item("m/extra/", "x")]).bytes, "contents of its own");
    refused("duplicate", &model(vec![item("m/data.pkl", "x")]).bytes, "occurs twice");
}

#[test]
fn flags_and_methods() {
    let patched = |at: usize, value: u16| {
        let bytes = value.to_le_bytes();
        extra().central("m/extra/x", at, &bytes).local("m/extra/x", at - 2, &bytes).bytes
    };
    refused("encrypted", &patched(8, 0x0809), "encrypted");
    refused("strong encryption", &patched(8, 0x0848), "encrypted");
    refused("masked headers", &patched(8, 0x2808), "encrypted");
    refused("patch data", &patched(8, 0x0828), "unknown flags");
    refused("bzip2", &patched(10, 12), "compression method 12");
    refused("lzma", &patched(10, 14), "compression method 14");
    refused("stored as deflated", &patched(10, 8), "damaged");
}

#[test]
fn headers_that_disagree() {
    let x = "m/extra/x";
    refused("local name", &extra().local(x, 30, b"n").bytes, "different name");
    refused("local method", &extra().local(x, 8, &[8, 0]).bytes, "different compression method");
    refused("local flags", &extra().local(x, 6, &[0, 8]).bytes, "different set of flags");
    refused("local size", &extra().local(x, 22, &[9]).bytes, "different size or checksum");
    refused("local checksum", &extra().local(x, 14, &[9]).bytes, "different size or checksum");
    refused("local wide size", &extra().local(x, 18, &[0xff; 8]).bytes, "needs a zip64 field");
    refused("descriptor", &extra().payload(x, 5 + 4, &[0]).bytes, "data descriptor");
    refused("descriptor signature", &extra().payload(x, 5, &[0]).bytes, "data descriptor");
    refused("checksum", &extra().payload(x, 0, b"j").bytes, "checksum");
    refused("local signature", &extra().local(x, 0, &[0]).bytes, "no local header");
    refused("central signature", &extra().central(x, 0, &[0]).bytes, "wrong signature");
    refused("other disk", &extra().central(x, 34, &[1]).bytes, "another file");
    refused("central extra", &extra().central(x, 30, &[4, 0]).bytes, "malformed");
}

#[test]
fn overlaps_and_hidden_bytes() {
    let at = extra().offset("m/extra/x").to_le_bytes();
    refused("same header", &extra().central("m/extra/y", 42, &at).bytes, "overlap");
    refused("far away", &extra().central("m/extra/y", 42, &[0, 0, 0, 0x70]).bytes, "overlap");
    // An entry that announces the following headers as its payload.
    let long = 60u32.to_le_bytes();
    let sizes = [long, long].concat();
    refused("swallows", &extra().central("m/extra/x", 20, &sizes).bytes, "overlaps what follows");
    let short = 2u32.to_le_bytes();
    let sizes = [short, short].concat();
    refused("hides", &extra().central("m/extra/x", 20, &sizes).bytes, "data descriptor");
    let mut plain = item("m/extra/z", "hello");
    plain.descriptor = false;
    let hidden = model(vec![plain]).central("m/extra/z", 20, &sizes).local("m/extra/z", 18, &sizes);
    refused("hides in plain sight", &hidden.bytes, "hidden bytes");
    let name = 9000u16.to_le_bytes();
    refused("long name", &extra().central("m/extra/y", 28, &name).bytes, "cut off");
    refused("long local extra", &extra().local("m/extra/y", 28, &name).bytes, "cut off");
}

#[test]
fn wide_fields() {
    // A zip64 field that is asked for and missing, and one that comes twice.
    refused("missing", &extra().central("m/extra/x", 24, &[0xff; 4]).bytes, "needs a zip64 field");
    let mut items = super::build::base(b"\x80\x02).");
    let field = [&[1, 0, 8, 0][..], &[5, 0, 0, 0, 0, 0, 0, 0]].concat();
    let mut odd = item("m/extra/x", "hello");
    // The builder knows no extra fields: they are smuggled in as a tail of the name.
    odd.name.extend([&field[..], &field].concat());
    items.push(odd);
    let built = build(&items);
    let name = built.places[5].0.clone();
    let lengths = [&9u16.to_le_bytes()[..], &24u16.to_le_bytes()].concat();
    let built = built.local(&name, 26, &lengths).central(&name, 28, &lengths);
    refused("twice", &built.bytes, "two zip64 fields");
}

#[test]
fn bombs() {
    let zeros = vec![0u8; 1 << 20];
    refused(
        "ratio",
        &model(vec![deflated("m/extra/x", zeros)]).bytes,
        "1048576 bytes, and the limit is 100 times",
    );
    // A stream that goes on after its declared end, and one that ends before.
    let packed = deflate(&[7u8; 1000]).len() as u32;
    let entry = || model(vec![deflated("m/extra/x", [7u8; 1000])]);
    let sizes = |size: u32| [packed.to_le_bytes(), size.to_le_bytes()].concat();
    let lie = |size: u32| {
        let built = entry().central("m/extra/x", 20, &sizes(size));
        built.payload("m/extra/x", packed as usize + 8, &sizes(size)).bytes
    };
    refused("longer than declared", &lie(500), "do not end after the declared 500 bytes");
    refused("shorter than declared", &lie(1001), "inflates to 1000 bytes");
    refused("ratio of a lie", &lie(2_000_000_000), "limit is 100 times");
    let built = entry().payload("m/extra/x", 0, &[0xff]);
    refused("no deflate stream", &built.bytes, "damaged");
    let limits = Limits { inflated_bytes: 500, ..Limits::default() };
    let error = Archive::from_bytes_with(entry().bytes, limits).expect_err("the cap on one entry");
    assert!(error.message().contains("limit is 500"), "{error}");
    let limits = Limits { budget_factor: 0, budget_base: 900, ..Limits::default() };
    let error = Archive::from_bytes_with(entry().bytes, limits).expect_err("the budget");
    assert!(error.message().contains("budget"), "{error}");
}

#[test]
fn sources() {
    let code = |bytes: &[u8]| {
        let mut items = super::build::base(b"\x80\x02).");
        items[1] = item("m/code/__torch__.py", bytes);
        build(&items).bytes
    };
    refused("not UTF-8", &code(b"class \xff"), "not UTF-8 at byte 6");
    refused("huge", &code(&vec![b' '; (16 << 20) + 1]), "limit is 16777216");
    let debug = |pickle: &[u8]| model(vec![item("m/code/__torch__.py.debug_pkl", pickle)]).bytes;
    refused("debug ranges", &debug(b"\x80\x02N."), "debug ranges are malformed");
    refused("debug row", &debug(b"\x80\x02N\x85."), "debug ranges are malformed");
    let head = "\x02X\x18\0\0\0FORMAT_WITH_STRING_TABLE)".as_bytes();
    let index = [b"\x80", head, b"(K\x00K\x07K\x00K\x01\x87K\x00K\x01\x87K\x00\x87t\x87."].concat();
    refused("debug index", &debug(&index), "outside the table of strings");
}

#[test]
fn debug_text_bomb() {
    // A table with one string of 64 KiB, and a source that joins it 2000 times.
    let mut pickle = b"\x80\x02X\x18\0\0\0FORMAT_WITH_STRING_TABLE".to_vec();
    pickle.extend(super::build::text(&"x".repeat(65_536)));
    pickle.extend(b"\x85(K\x00(");
    pickle.extend(b"K\x00".repeat(2000));
    pickle.extend(b"tK\x00K\x01\x87K\x00K\x01\x87K\x00\x87t\x87.");
    let bytes = model(vec![item("m/code/__torch__.py.debug_pkl", pickle)]).bytes;
    refused("debug text", &bytes, "rebuild more source text");
}
