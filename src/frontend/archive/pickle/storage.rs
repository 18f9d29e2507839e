//! The storage classes that tensors in a pickle name, with their element types. It knows nothing of the
//! machine that reads them.

/// A storage class of PyTorch.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct StorageType {
    /// Its name in module `torch` (`FloatStorage`).
    pub class: &'static str,
    /// Its element type as torch names it (`float32`).
    pub dtype: &'static str,
    /// Bytes of an element.
    pub bytes: u64,
    /// Bytes of a unit that byte order turns around: a part of a complex number, else an element.
    pub swap: usize,
}

const fn row(class: &'static str, dtype: &'static str, bytes: u64) -> StorageType {
    StorageType { class, dtype, bytes, swap: bytes as usize }
}

const fn complex(class: &'static str, dtype: &'static str, bytes: u64) -> StorageType {
    StorageType { class, dtype, bytes, swap: bytes as usize / 2 }
}

static ROWS: &[StorageType] = &[
    row("FloatStorage", "float32", 4),
    row("DoubleStorage", "float64", 8),
    row("HalfStorage", "float16", 2),
    row("BFloat16Storage", "bfloat16", 2),
    row("BoolStorage", "bool", 1),
    row("ByteStorage", "uint8", 1),
    row("CharStorage", "int8", 1),
    row("ShortStorage", "int16", 2),
    row("IntStorage", "int32", 4),
    row("LongStorage", "int64", 8),
    complex("ComplexHalfStorage", "complex32", 4),
    complex("ComplexFloatStorage", "complex64", 8),
    complex("ComplexDoubleStorage", "complex128", 16),
    row("UInt16Storage", "uint16", 2),
    row("UInt32Storage", "uint32", 4),
    row("UInt64Storage", "uint64", 8),
    row("Float8_e5m2Storage", "float8_e5m2", 1),
    row("Float8_e4m3fnStorage", "float8_e4m3fn", 1),
    row("Float8_e5m2fnuzStorage", "float8_e5m2fnuz", 1),
    row("Float8_e4m3fnuzStorage", "float8_e4m3fnuz", 1),
    row("Float8_e8m0fnuStorage", "float8_e8m0fnu", 1),
    row("QInt8Storage", "qint8", 1),
    row("QUInt8Storage", "quint8", 1),
    row("QInt32Storage", "qint32", 4),
    row("QUInt4x2Storage", "quint4x2", 1),
    row("QUInt2x4Storage", "quint2x4", 1),
];

/// The storage class of a name in module `torch`, or of a dtype.
pub fn storage_type(name: &str) -> Option<&'static StorageType> {
    ROWS.iter().find(|row| row.class == name || row.dtype == name)
}
