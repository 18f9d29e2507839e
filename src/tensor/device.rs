//! Where a tensor lives.

use super::DType;
use std::fmt;
use std::str::FromStr;

/// A device: `cpu`, `cuda:0`, or another kind that is only named in types.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Device {
    kind: DeviceKind,
    index: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum DeviceKind {
    Cpu,
    Cuda,
    Meta,
    /// A device type that PyTorch names and Flambeau cannot allocate on.
    Other(&'static str),
}

/// Device types that PyTorch names besides those above.
const OTHERS: &[&str] = &[
    "mkldnn",
    "opengl",
    "opencl",
    "ideep",
    "hip",
    "fpga",
    "maia",
    "xla",
    "vulkan",
    "metal",
    "xpu",
    "mps",
    "hpu",
    "ve",
    "lazy",
    "ipu",
    "mtia",
    "privateuseone",
];

impl Device {
    /// The host.
    pub const CPU: Device = Device { kind: DeviceKind::Cpu, index: None };
    /// No memory at all: sizes only.
    pub const META: Device = Device { kind: DeviceKind::Meta, index: None };

    /// The n-th CUDA device.
    pub fn cuda(index: u32) -> Device {
        Device { kind: DeviceKind::Cuda, index: Some(index) }
    }

    /// The type without the index: `cpu`, `cuda`.
    pub fn kind_name(&self) -> &'static str {
        match self.kind {
            DeviceKind::Cpu => "cpu",
            DeviceKind::Cuda => "cuda",
            DeviceKind::Meta => "meta",
            DeviceKind::Other(name) => name,
        }
    }

    /// The index, where one was given.
    pub fn index(&self) -> Option<u32> {
        self.index
    }

    /// The dtype that PyTorch's autocasting uses on devices of its type by default; None where it has none.
    pub fn autocast_dtype(&self) -> Option<DType> {
        match self.kind_name() {
            "cpu" | "hpu" | "maia" | "xla" => Some(DType::BF16),
            "cuda" | "hip" | "xpu" | "mps" | "mtia" | "ipu" | "privateuseone" => Some(DType::F16),
            _ => None,
        }
    }

    /// Whether it is the host.
    pub fn is_cpu(&self) -> bool {
        self.kind == DeviceKind::Cpu
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind_name())?;
        match self.index {
            Some(index) => write!(f, ":{index}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Device, String> {
        let invalid = || format!("Invalid device string: '{text}'");
        if text.is_empty() {
            return Err("Device string must not be empty".to_string());
        }
        let (name, index) = match text.split_once(':') {
            Some((name, index)) => (name, Some(index)),
            None => (text, None),
        };
        if name.is_empty() || !name.bytes().all(|c| c.is_ascii_alphabetic() || c == b'_') {
            return Err(invalid());
        }
        let kind = match name {
            "cpu" => DeviceKind::Cpu,
            "cuda" => DeviceKind::Cuda,
            "meta" => DeviceKind::Meta,
            _ => match OTHERS.iter().find(|other| **other == name) {
                Some(other) => DeviceKind::Other(other),
                None => {
                    return Err(format!(
                        "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, \
                         lazy, vulkan, mps, meta, hpu, mtia, privateuseone device type at start of device string: {name}"
                    ));
                }
            },
        };
        let Some(index) = index else { return Ok(Device { kind, index: None }) };
        if index.is_empty()
            || !index.bytes().all(|c| c.is_ascii_digit())
            || index.len() > 1 && index.starts_with('0')
        {
            return Err(invalid());
        }
        let number: i32 = index
            .parse()
            .map_err(|_| format!("Could not parse device index '{index}' in device string '{text}'"))?;
        // PyTorch keeps 8 bits of it, of which -1 stands for none.
        match number as i8 {
            -1 => Ok(Device { kind, index: None }),
            number => Ok(Device { kind, index: Some(u32::try_from(number).map_err(|_| invalid())?) }),
        }
    }
}
