//! What a file is that is not a TorchScript model, by what is in it and not by its name, and what its owner can do. It looks
//! at the first bytes, or at the names of a zip file's entries, and reads nothing else.

use crate::diag::Diagnostic;

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// As text: "a safetensors file, which has weights and no program".
    pub what: &'static str,
    /// What to do.
    pub hint: &'static str,
    /// What writes such files, where that is known.
    pub writer: Option<&'static str>,
}

const WEIGHTS: &str = "build the model in Python, load the weights, and save it with torch.jit.save";
const EXPORTED: &str =
    "export the model with torch.jit.script or torch.jit.trace, and save it with torch.jit.save";
const UNPACK: &str = "unpack it and give the model that is in it";
const NO_MODEL: &str = "give a .pt archive of torch.jit.save";

/// Starts of files: where they stand, the bytes, the kind.
static STARTS: &[(usize, &[u8], Kind)] = &[
    (
        0,
        b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.",
        kind("a file of torch.save before PyTorch 1.6: pickled data without a program", WEIGHTS),
    ),
    (4, b"ET12", kind("an ExecuTorch program", EXPORTED)),
    (4, b"TFL3", kind("a TensorFlow Lite model", NO_MODEL)),
    (0, b"GGUF", kind("a GGUF file, which has weights for llama.cpp and no program", WEIGHTS)),
    (0, b"\x89HDF\r\n\x1a\n", kind("an HDF5 file, as Keras writes its models", NO_MODEL)),
    (0, b"\x93NUMPY", kind("a NumPy array", "arrays are arguments: give them with --input @FILE")),
    (0, b"\x89PNG", kind("a PNG image", NO_MODEL)),
    (0, b"\xff\xd8\xff", kind("a JPEG image", NO_MODEL)),
    (0, b"GIF8", kind("a GIF image", NO_MODEL)),
    (0, b"BM", kind("a BMP image", NO_MODEL)),
    (0, b"%PDF", kind("a PDF document", NO_MODEL)),
    (0, b"\x1f\x8b", kind("a gzip file", UNPACK)),
    (0, b"BZh", kind("a bzip2 file", UNPACK)),
    (0, b"\xfd7zXZ\0", kind("an xz file", UNPACK)),
    (0, b"(\xb5/\xfd", kind("a zstd file", UNPACK)),
    (0, b"7z\xbc\xaf\x27\x1c", kind("a 7z archive", UNPACK)),
    (0, b"Rar!", kind("a RAR archive", UNPACK)),
    (0, b"\x7fELF", kind("a program or library of Linux", NO_MODEL)),
    (
        0,
        b"version https://git-lfs",
        kind("a pointer of Git LFS, not the file itself", "fetch the file with git lfs pull"),
    ),
    (
        0,
        b"<!DOCTYPE html",
        kind("a web page, which a download gave in place of the file", "download the file again"),
    ),
    (0, b"<html", kind("a web page, which a download gave in place of the file", "download the file again")),
];

const fn kind(what: &'static str, hint: &'static str) -> Kind {
    Kind { what, hint, writer: None }
}

impl Kind {
    const fn by(mut self, writer: &'static str) -> Kind {
        self.writer = Some(writer);
        self
    }
}

/// The kind of a file that is not a zip file, by its first bytes; 512 are enough.
pub fn recognize(start: &[u8]) -> Option<Kind> {
    let known =
        STARTS.iter().find(|(at, bytes, _)| start.get(*at..).is_some_and(|rest| rest.starts_with(bytes)));
    if let Some((_, _, kind)) = known {
        return Some(*kind);
    }
    if start.get(257..262) == Some(b"ustar") {
        let old = [&b"sys_info"[..], b"pickle", b"tensors", b"storages"];
        return Some(match old.iter().any(|name| start.starts_with(name)) {
            true => kind(
                "a file of torch.save before PyTorch 0.2 (a tar archive): data without a program",
                WEIGHTS,
            ),
            false => kind("a tar archive", UNPACK),
        });
    }
    // A length of 64 bits and then an object of JSON.
    let header = start.get(..8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap_or_default()));
    if header.is_some_and(|n| n < 100 << 20)
        && start.get(8..10).is_some_and(|text| text == b"{\"" || text == b"{}")
    {
        return Some(kind("a safetensors file, which has weights and no program", WEIGHTS));
    }
    // A message of protocol buffers: the version of the format, then the name of the producer or domain.
    if let [0x08, 1..=20, 0x12 | 0x3a | 0x1a, ..] = start {
        return Some(kind("a message of protocol buffers, as ONNX models are", EXPORTED));
    }
    if let [0x80, 2..=5, ..] = start {
        return Some(kind(
            "a Python pickle, as torch.save wrote before PyTorch 1.6, and no program",
            WEIGHTS,
        ));
    }
    None
}

/// The kind of a zip file that is not a TorchScript model, by the names of its entries, with or without its root folder.
pub fn recognize_zip<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Option<Kind> {
    let has =
        |wanted: &str| names.clone().any(|name| name == wanted || name.ends_with(&format!("/{wanted}")));
    let under = |folder: &str| {
        let inner = format!("/{folder}");
        names.clone().any(|name| name.starts_with(folder) || name.contains(&inner))
    };
    if names.clone().any(is_exported_program) {
        return None;
    }
    if has("serialized_exported_program.json") {
        let hint = "export the model again with PyTorch 2.8 or later";
        return Some(kind("a program of torch.export before PyTorch 2.8", hint).by("torch.export.save"));
    }
    if under("data/aotinductor/") {
        let hint = "save the program itself with torch.export.save";
        return Some(
            kind("a package of AOTInductor, which holds machine code", hint)
                .by("torch._inductor.aoti_compile_and_package"),
        );
    }
    if has("archive_format") {
        return Some(kind("an archive of torch.export without a program", EXPORTED).by("torch.export"));
    }
    if under(".data/extern_modules") || under(".data/ts_code/") {
        let hint = "load the model from the package and save it with torch.jit.save";
        return Some(kind("a torch.package archive", hint).by("torch.package.PackageExporter"));
    }
    if has("data.pkl") && !has("constants.pkl") && !has("bytecode.pkl") {
        let hint = "script or trace the model and save it with torch.jit.save";
        return Some(kind("written by torch.save: it holds data and no program", hint).by("torch.save"));
    }
    if has("[Content_Types].xml") {
        return Some(kind("an office document", NO_MODEL));
    }
    if has("META-INF/MANIFEST.MF") {
        return Some(kind("a Java archive", NO_MODEL));
    }
    if has("AndroidManifest.xml") {
        return Some(kind("an Android package", UNPACK));
    }
    let mut all = names.clone().peekable();
    if all.peek().is_some() && all.all(|name| name.ends_with(".npy")) {
        return Some(
            kind("a file of NumPy arrays (.npz)", "arrays are arguments: give them with --input @FILE")
                .by("numpy.savez"),
        );
    }
    let holds =
        names.clone().any(|name| name.ends_with(".pt") || name.ends_with(".pth") || name.ends_with(".ptl"));
    holds.then(|| kind("a zip file with models in it", UNPACK))
}

/// Whether an entry is a program of `torch.export`, with or without the archive's root folder.
fn is_exported_program(name: &str) -> bool {
    name.ends_with(".json") && (name.starts_with("models/") || name.contains("/models/"))
}

/// The error for a file that is not a zip file.
pub(super) fn no_archive(start: &[u8], error: Diagnostic) -> Diagnostic {
    match recognize(start) {
        Some(kind) => Diagnostic::input(format!("this is {}", kind.what)).hint(kind.hint),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_content() {
        let what = |start: &[u8]| recognize(start).map(|kind| kind.what).unwrap_or_default();
        assert!(what(b"\x10\0\0\0\0\0\0\0{\"a\":{\"dtype\"").contains("safetensors"));
        assert!(what(b"\x08\x07\x12\x07pytorch").contains("ONNX"));
        assert!(what(b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80").contains("torch.save before"));
        let mut tar = vec![0u8; 512];
        tar[..8].copy_from_slice(b"sys_info");
        tar[257..262].copy_from_slice(b"ustar");
        assert!(what(&tar).contains("before PyTorch 0.2"));
        assert_eq!(recognize(b""), None);
        assert_eq!(recognize(b"def f(x):"), None);
    }

    #[test]
    fn zip_files_are_known_by_their_entries() {
        let what = |names: &[&str]| recognize_zip(names.iter().copied()).map(|k| k.what).unwrap_or_default();
        assert!(what(&["m/archive_format", "m/data/weights/0"]).contains("without a program"));
        assert!(what(&["m/archive_format", "m/data/aotinductor/model/x.so"]).contains("machine code"));
        assert!(what(&["p/serialized_exported_program.json"]).contains("before PyTorch 2.8"));
        assert_eq!(what(&["m/archive_format", "m/models/model.json"]), "");
        assert!(what(&["m/data.pkl", "m/data/0"]).contains("torch.save"));
        assert!(what(&["a.npy", "b.npy"]).contains("NumPy"));
        assert_eq!(what(&["m/data.pkl", "m/constants.pkl", "m/code/__torch__.py"]), "");
        assert_eq!(what(&[]), "");
        let writer = |names: &[&str]| recognize_zip(names.iter().copied()).and_then(|k| k.writer);
        assert_eq!(writer(&["serialized_exported_program.json"]), Some("torch.export.save"));
        assert_eq!(writer(&["data.pkl", "data/0"]), Some("torch.save"));
    }
}
