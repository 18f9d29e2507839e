//! Builders of small archives and pickles for the tests, with every header field within reach.

/// An entry to be built.
#[derive(Clone)]
pub struct Item {
    pub name: Vec<u8>,
    pub data: Vec<u8>,
    pub deflate: bool,
    /// Write sizes and checksum after the payload, as PyTorch does.
    pub descriptor: bool,
}

pub fn item(name: &str, data: impl Into<Vec<u8>>) -> Item {
    Item { name: name.as_bytes().to_vec(), data: data.into(), deflate: false, descriptor: true }
}

/// A built archive with the places of its headers.
pub struct Built {
    pub bytes: Vec<u8>,
    /// Name, start of the local header, start of the payload, start of the central record.
    pub places: Vec<(String, usize, usize, usize)>,
    pub directory: usize,
    /// Start of the end record.
    pub end: usize,
}

impl Built {
    fn place(&self, name: &str) -> (usize, usize, usize) {
        let found = self.places.iter().find(|p| p.0 == name).expect("no such entry");
        (found.1, found.2, found.3)
    }

    /// Overwrites bytes of an entry's local header.
    pub fn local(mut self, name: &str, at: usize, bytes: &[u8]) -> Self {
        let start = self.place(name).0 + at;
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// Overwrites bytes of an entry's payload, or of what follows it.
    pub fn payload(mut self, name: &str, at: usize, bytes: &[u8]) -> Self {
        let start = self.place(name).1 + at;
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// Overwrites bytes of an entry's central record.
    pub fn central(mut self, name: &str, at: usize, bytes: &[u8]) -> Self {
        let start = self.place(name).2 + at;
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// Overwrites bytes of the end record.
    pub fn end(mut self, at: usize, bytes: &[u8]) -> Self {
        let start = self.end + at;
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// Where an entry's local header starts.
    pub fn offset(&self, name: &str) -> u32 {
        self.place(name).0 as u32
    }
}

/// A minimal model: an empty module, plus the given entries.
pub fn model(more: Vec<Item>) -> Built {
    let mut items = base(b"\x80\x02c__torch__\nM\n)\x81}b.");
    items.extend(more);
    build(&items)
}

/// A minimal model with a data pickle of the caller's choice and a storage of 16 bytes.
pub fn model_with_data(pickle: &[u8]) -> Vec<u8> {
    let mut items = base(pickle);
    items.push(item("m/data/0", [0u8; 16]));
    build(&items).bytes
}

pub fn base(pickle: &[u8]) -> Vec<Item> {
    vec![
        item("m/data.pkl", pickle),
        item("m/code/__torch__.py", "class M(Module):\n  __parameters__ = []\n"),
        item("m/constants.pkl", *b"\x80\x02)."),
        item("m/version", "3\n"),
        item("m/byteorder", "little"),
    ]
}

pub fn build(items: &[Item]) -> Built {
    let mut bytes = Vec::new();
    let mut table = Vec::new();
    let mut places = Vec::new();
    for item in items {
        let start = bytes.len();
        let crc = crc32fast::hash(&item.data);
        let packed = if item.deflate { deflate(&item.data) } else { item.data.clone() };
        let method = if item.deflate { 8u16 } else { 0 };
        let flags = if item.descriptor { 0x0808u16 } else { 0x0800 };
        let sizes = [crc, packed.len() as u32, item.data.len() as u32].map(u32::to_le_bytes).concat();
        let now = if item.descriptor { vec![0; 12] } else { sizes.clone() };
        let name = (item.name.len() as u16).to_le_bytes();
        let common = |sizes: &[u8]| {
            [&[0; 2], &flags.to_le_bytes()[..], &method.to_le_bytes(), &[0; 4], sizes, &name, &[0; 2]]
                .concat()
        };
        bytes.extend([b"PK\x03\x04", &*common(&now), &item.name].concat());
        let payload = bytes.len();
        bytes.extend(&packed);
        if item.descriptor {
            bytes.extend([b"PK\x07\x08", &*sizes].concat());
        }
        let record = table.len();
        table.extend([b"PK\x01\x02\x00\x00", &*common(&sizes), &[0; 10]].concat());
        table.extend((start as u32).to_le_bytes());
        table.extend(&item.name);
        places.push((String::from_utf8_lossy(&item.name).into_owned(), start, payload, record));
    }
    let directory = bytes.len();
    places.iter_mut().for_each(|place| place.3 += directory);
    bytes.extend(&table);
    let end = bytes.len();
    let count = (items.len() as u16).to_le_bytes();
    let size = (table.len() as u32).to_le_bytes();
    let offset = (directory as u32).to_le_bytes();
    bytes.extend([b"PK\x05\x06\0\0\0\0", &count[..], &count, &size, &offset, &[0; 2]].concat());
    Built { bytes, places, directory, end }
}

pub fn deflate(data: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(data).expect("writing to memory");
    encoder.finish().expect("writing to memory")
}

/// A pickle of a module with the one attribute `a`, whose value the given opcodes push.
pub fn with_attribute(value: &[u8]) -> Vec<u8> {
    [b"\x80\x02c__torch__\nM\n)\x81}X\x01\0\0\0a", value, b"sb."].concat()
}

/// Opcodes that push a `str`.
pub fn text(text: &str) -> Vec<u8> {
    [b"X", &(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}

/// Opcodes that push an `int`.
pub fn int(value: i64) -> Vec<u8> {
    [b"\x8a\x08", &value.to_le_bytes()[..]].concat()
}

/// Opcodes that push a tuple of ints.
pub fn ints(values: &[i64]) -> Vec<u8> {
    let items: Vec<u8> = values.iter().flat_map(|value| int(*value)).collect();
    [b"(", &*items, b"t"].concat()
}

/// Opcodes that push a float32 storage.
pub fn storage(key: &str, numel: i64) -> Vec<u8> {
    let (tag, key, device) = (text("storage"), text(key), text("cpu"));
    [b"(", &*tag, b"ctorch\nFloatStorage\n", &key, &device, &int(numel), b"tQ"].concat()
}

/// Opcodes that push a tensor over a given storage.
pub fn tensor(storage: &[u8], offset: i64, sizes: &[i64], strides: &[i64]) -> Vec<u8> {
    let start = b"ctorch._utils\n_rebuild_tensor_v2\n(";
    [start, storage, &int(offset), &ints(sizes), &ints(strides), b"\x89ccollections\nOrderedDict\n)RtR"]
        .concat()
}
