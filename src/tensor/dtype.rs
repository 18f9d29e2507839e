//! Dtypes and their names in Python, in type text and as PyTorch's integer codes.

use bytemuck::{Pod, Zeroable};

/// The element type of a tensor. The discriminant is PyTorch's `ScalarType` code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum DType {
    /// uint8
    U8 = 0,
    /// int8
    I8 = 1,
    /// int16
    I16 = 2,
    /// int32
    I32 = 3,
    /// int64
    I64 = 4,
    /// float16
    F16 = 5,
    /// float32
    F32 = 6,
    /// float64
    F64 = 7,
    /// complex32, named in types only
    C32 = 8,
    /// complex64: two float32
    C64 = 9,
    /// complex128: two float64
    C128 = 10,
    /// bool, one byte, 0 or 1
    Bool = 11,
    /// quantized int8
    QI8 = 12,
    /// quantized uint8
    QU8 = 13,
    /// quantized int32
    QI32 = 14,
    /// bfloat16
    BF16 = 15,
    /// quint4x2: two elements a byte
    QU4x2 = 16,
    /// quint2x4: four elements a byte
    QU2x4 = 17,
    /// bits1x8, named in types only
    Bits1x8 = 18,
    /// bits2x4, named in types only
    Bits2x4 = 19,
    /// bits4x2, named in types only
    Bits4x2 = 20,
    /// bits8, named in types only
    Bits8 = 21,
    /// bits16, named in types only
    Bits16 = 22,
    /// float8_e5m2
    F8E5m2 = 23,
    /// float8_e4m3fn
    F8E4m3fn = 24,
    /// float8_e5m2fnuz
    F8E5m2fnuz = 25,
    /// float8_e4m3fnuz
    F8E4m3fnuz = 26,
    /// uint16
    U16 = 27,
    /// uint32
    U32 = 28,
    /// uint64
    U64 = 29,
    /// uint1, named in types only
    U1 = 30,
    /// uint2, named in types only
    U2 = 31,
    /// uint3, named in types only
    U3 = 32,
    /// uint4, named in types only
    U4 = 33,
    /// uint5, named in types only
    U5 = 34,
    /// uint6, named in types only
    U6 = 35,
    /// uint7, named in types only
    U7 = 36,
    /// int1, named in types only
    I1 = 37,
    /// int2, named in types only
    I2 = 38,
    /// int3, named in types only
    I3 = 39,
    /// int4, named in types only
    I4 = 40,
    /// int5, named in types only
    I5 = 41,
    /// int6, named in types only
    I6 = 42,
    /// int7, named in types only
    I7 = 43,
    /// float8_e8m0fnu
    F8E8m0fnu = 44,
    /// float4_e2m1fn_x2, named in types only
    F4E2m1fnX2 = 45,
}

/// How many of the first rows programs can name; of the others some, the rest stands in types alone.
const KNOWN: usize = 18;

/// One row a dtype: code, Python name, name in type text, legacy storage class, bytes.
const TABLE: &[(DType, &str, &str, &str, usize)] = &[
    (DType::U8, "uint8", "Byte", "ByteStorage", 1),
    (DType::I8, "int8", "Char", "CharStorage", 1),
    (DType::I16, "int16", "Short", "ShortStorage", 2),
    (DType::I32, "int32", "Int", "IntStorage", 4),
    (DType::I64, "int64", "Long", "LongStorage", 8),
    (DType::F16, "float16", "Half", "HalfStorage", 2),
    (DType::F32, "float32", "Float", "FloatStorage", 4),
    (DType::F64, "float64", "Double", "DoubleStorage", 8),
    (DType::C32, "complex32", "ComplexHalf", "ComplexHalfStorage", 4),
    (DType::C64, "complex64", "ComplexFloat", "ComplexFloatStorage", 8),
    (DType::C128, "complex128", "ComplexDouble", "ComplexDoubleStorage", 16),
    (DType::Bool, "bool", "Bool", "BoolStorage", 1),
    (DType::QI8, "qint8", "QInt8", "QInt8Storage", 1),
    (DType::QU8, "quint8", "QUInt8", "QUInt8Storage", 1),
    (DType::QI32, "qint32", "QInt32", "QInt32Storage", 4),
    (DType::BF16, "bfloat16", "BFloat16", "BFloat16Storage", 2),
    (DType::QU4x2, "quint4x2", "QUInt4x2", "QUInt4x2Storage", 1),
    (DType::QU2x4, "quint2x4", "QUInt2x4", "QUInt2x4Storage", 1),
    (DType::Bits1x8, "bits1x8", "Bits1x8", "", 1),
    (DType::Bits2x4, "bits2x4", "Bits2x4", "", 1),
    (DType::Bits4x2, "bits4x2", "Bits4x2", "", 1),
    (DType::Bits8, "bits8", "Bits8", "", 1),
    (DType::Bits16, "bits16", "Bits16", "", 2),
    (DType::F8E5m2, "float8_e5m2", "Float8_e5m2", "", 1),
    (DType::F8E4m3fn, "float8_e4m3fn", "Float8_e4m3fn", "", 1),
    (DType::F8E5m2fnuz, "float8_e5m2fnuz", "Float8_e5m2fnuz", "", 1),
    (DType::F8E4m3fnuz, "float8_e4m3fnuz", "Float8_e4m3fnuz", "", 1),
    (DType::U16, "uint16", "UInt16", "", 2),
    (DType::U32, "uint32", "UInt32", "", 4),
    (DType::U64, "uint64", "UInt64", "", 8),
    (DType::U1, "uint1", "UInt1", "", 1),
    (DType::U2, "uint2", "UInt2", "", 1),
    (DType::U3, "uint3", "UInt3", "", 1),
    (DType::U4, "uint4", "UInt4", "", 1),
    (DType::U5, "uint5", "UInt5", "", 1),
    (DType::U6, "uint6", "UInt6", "", 1),
    (DType::U7, "uint7", "UInt7", "", 1),
    (DType::I1, "int1", "Int1", "", 1),
    (DType::I2, "int2", "Int2", "", 1),
    (DType::I3, "int3", "Int3", "", 1),
    (DType::I4, "int4", "Int4", "", 1),
    (DType::I5, "int5", "Int5", "", 1),
    (DType::I6, "int6", "Int6", "", 1),
    (DType::I7, "int7", "Int7", "", 1),
    (DType::F8E8m0fnu, "float8_e8m0fnu", "Float8_e8m0fnu", "", 1),
    (DType::F4E2m1fnX2, "float4_e2m1fn_x2", "Float4_e2m1fn_x2", "", 1),
];

impl DType {
    fn row(self) -> &'static (DType, &'static str, &'static str, &'static str, usize) {
        &TABLE[self as usize]
    }

    /// Python's name: `float32`.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The name in type text: `Float`.
    pub fn type_name(self) -> &'static str {
        self.row().2
    }

    /// What errors call a tensor of the dtype: `torch.FloatTensor`; dtypes that came after Lua have no class of their own
    /// in Python (`CPUBoolType`).
    pub fn tensor_class(self) -> String {
        let is_old = !matches!(self, DType::Bool | DType::BF16) && !self.is_complex() && !self.is_rare();
        let name = self.type_name();
        if is_old { format!("torch.{name}Tensor") } else { format!("CPU{name}Type") }
    }

    /// The C++ type of an element, as PyTorch's refusals spell it: `long int`, `c10::Half`.
    pub fn cpp_name(self) -> &'static str {
        match self {
            DType::U8 => "unsigned char",
            DType::I8 => "signed char",
            DType::I16 => "short int",
            DType::I32 => "int",
            DType::I64 => "long int",
            DType::F16 => "c10::Half",
            DType::BF16 => "c10::BFloat16",
            DType::F32 => "float",
            DType::F64 => "double",
            DType::U16 => "short unsigned int",
            DType::U32 => "unsigned int",
            DType::U64 => "long unsigned int",
            DType::C64 => "c10::complex<float>",
            DType::C128 => "c10::complex<double>",
            other => other.name(),
        }
    }

    /// The storage class named in pickles: `FloatStorage`.
    pub fn storage_name(self) -> &'static str {
        self.row().3
    }

    /// Bytes an element.
    pub fn size(self) -> usize {
        self.row().4
    }

    /// PyTorch's integer code, which is what TorchScript programs see of a dtype.
    pub fn code(self) -> i64 {
        self as i64
    }

    /// The dtype of an integer code.
    pub fn from_code(code: i64) -> Option<DType> {
        let row = usize::try_from(code).ok().and_then(|i| TABLE.get(i))?;
        Some(row.0).filter(|dtype| dtype.is_nameable())
    }

    /// The dtype of a Python name, aliases (`float`, `half`, `long`) included.
    pub fn from_name(name: &str) -> Option<DType> {
        let name = match name {
            "half" => "float16",
            "float" => "float32",
            "double" => "float64",
            "short" => "int16",
            "int" => "int32",
            "long" => "int64",
            "cfloat" => "complex64",
            "cdouble" => "complex128",
            "chalf" => "complex32",
            other => other,
        };
        TABLE.iter().find(|row| row.1 == name).map(|row| row.0).filter(|dtype| dtype.is_nameable())
    }

    /// The dtype of a name in type text.
    pub fn from_type_name(name: &str) -> Option<DType> {
        TABLE.iter().find(|row| row.2 == name).map(|row| row.0)
    }

    /// The dtype of a storage class (with or without its module).
    pub fn from_storage_name(name: &str) -> Option<DType> {
        let name = name.rsplit('.').next().unwrap_or(name);
        TABLE[..KNOWN].iter().find(|row| row.3 == name).map(|row| row.0)
    }

    /// float16, bfloat16, float32, float64.
    pub fn is_floating(self) -> bool {
        matches!(self, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
    }

    /// complex32, complex64, complex128.
    pub fn is_complex(self) -> bool {
        matches!(self, DType::C32 | DType::C64 | DType::C128)
    }

    /// The integers, bool left out.
    pub fn is_integral(self) -> bool {
        matches!(self, DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64)
            || self.is_wide_unsigned()
    }

    /// uint16, uint32, uint64, with which few ops compute.
    pub fn is_wide_unsigned(self) -> bool {
        matches!(self, DType::U16 | DType::U32 | DType::U64)
    }

    /// The floats of 8 bits, with which few ops compute. [`DType::is_floating`] leaves them out.
    pub fn is_float8(self) -> bool {
        use DType::*;
        matches!(self, F8E4m3fn | F8E5m2 | F8E4m3fnuz | F8E5m2fnuz | F8E8m0fnu)
    }

    /// Whether few ops take it.
    pub fn is_rare(self) -> bool {
        self.is_wide_unsigned() || self.is_float8()
    }

    /// Whether programs can name it.
    fn is_nameable(self) -> bool {
        (self as usize) < KNOWN || self.is_rare()
    }

    /// Types whose elements can be negative.
    pub fn is_signed(self) -> bool {
        !matches!(self, DType::U8 | DType::Bool | DType::QU8 | DType::U16 | DType::U32 | DType::U64)
    }

    /// Whether tensors of it can be computed with, and not only named.
    pub fn is_computable(self) -> bool {
        self.is_nameable() && !self.is_quantized() && self != DType::C32
    }

    /// The real dtype of a complex one (complex64 → float32); itself otherwise.
    pub fn to_real(self) -> DType {
        match self {
            DType::C32 => DType::F16,
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            other => other,
        }
    }

    /// The complex dtype of a floating one (float32 → complex64); itself if complex.
    pub fn to_complex(self) -> DType {
        match self {
            DType::F16 => DType::C32,
            DType::F64 => DType::C128,
            other if other.is_complex() => other,
            _ => DType::C64,
        }
    }
}

/// A bool as stored: one byte, 0 or 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(transparent)]
pub struct Bool(u8);

impl Bool {
    /// From Rust's bool.
    pub fn new(value: bool) -> Bool {
        Bool(value as u8)
    }

    /// To Rust's bool; any non-zero byte is true.
    pub fn get(self) -> bool {
        self.0 != 0
    }
}
