//! The devices of one engine, as users write them: one, or several GPUs among which the model's
//! layers are split.

use std::fmt;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Device;

/// Most devices of one engine, as in llama.cpp.
pub(crate) const DEVICES_MAX: usize = 16;

/// One device, or several GPUs. Written as a string, or as a list of strings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Devices(Vec<Device>);

/// The devices cannot serve one engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DevicesError {
    /// The list is empty.
    #[error("an engine needs a device: name one, or a list of 1 to {DEVICES_MAX} GPUs")]
    None,
    /// The list is too long; has its length.
    #[error("an engine has at most {DEVICES_MAX} devices, not {0}: name fewer")]
    TooMany(usize),
    /// The CPU is listed beside GPUs.
    #[error("`cpu` cannot share a model with GPUs: name the GPUs alone, or `cpu` alone")]
    Mixed,
    /// A device is listed twice.
    #[error("device {0} is named twice: name each GPU once")]
    Twice(Device),
    /// A slice is listed beside other devices.
    #[error("{0} is a MIG slice, of which a process can use only one: name it alone")]
    Slice(Device),
}

impl Devices {
    /// Checks that these devices can serve one engine.
    ///
    /// # Errors
    /// See [`DevicesError`].
    pub fn new(devices: Vec<Device>) -> Result<Self, DevicesError> {
        if devices.is_empty() {
            return Err(DevicesError::None);
        }
        if devices.len() > DEVICES_MAX {
            return Err(DevicesError::TooMany(devices.len()));
        }
        if devices.len() > 1 {
            if devices.contains(&Device::Cpu) {
                return Err(DevicesError::Mixed);
            }
            if let Some(slice) = devices.iter().find(|device| device.is_slice()) {
                return Err(DevicesError::Slice(slice.clone()));
            }
        }

        // The list is short, so comparing all pairs is cheap.
        let twice = devices.iter().enumerate().find(|(at, device)| devices[..*at].contains(device));
        match twice {
            Some((_, device)) => Err(DevicesError::Twice(device.clone())),
            None => Ok(Self(devices)),
        }
    }

    /// The devices, at least one.
    pub fn all(&self) -> &[Device] {
        &self.0
    }

    /// Returns whether this is the CPU.
    pub fn is_cpu(&self) -> bool {
        self.0 == [Device::Cpu]
    }
}

impl From<Device> for Devices {
    fn from(device: Device) -> Self {
        Self(vec![device])
    }
}

impl fmt::Display for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(Device::to_string).collect();
        f.write_str(&names.join(" + "))
    }
}

impl Serialize for Devices {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            // A binary format does not distinguish a string from a list.
            [device] if serializer.is_human_readable() => device.serialize(serializer),
            devices => devices.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Devices {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMore;

        impl<'de> Visitor<'de> for OneOrMore {
            type Value = Devices;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a device, or a list of GPUs")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Devices, E> {
                text.parse::<Device>().map(Devices::from).map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Devices, A::Error> {
                let mut devices = Vec::new();
                while let Some(device) = items.next_element()? {
                    devices.push(device);
                }
                Devices::new(devices).map_err(de::Error::custom)
            }
        }

        if deserializer.is_human_readable() {
            deserializer.deserialize_any(OneOrMore)
        } else {
            deserializer.deserialize_seq(OneOrMore)
        }
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Devices {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Devices".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "array"],
            "format": "device",
            "items": { "type": "string", "format": "device" },
            "minItems": 1,
            "maxItems": DEVICES_MAX,
            "uniqueItems": true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn devices(names: &[&str]) -> Result<Devices, DevicesError> {
        Devices::new(names.iter().map(|name| name.parse().unwrap()).collect())
    }

    #[test]
    fn one_is_a_text_and_several_are_a_list() {
        for (json, shown) in [
            ("\"cpu\"", "cpu"),
            ("\"CUDA3\"", "CUDA3"),
            ("[\"CUDA0\",\"pci:0000:65:00.0\"]", "CUDA0 + pci:0000:65:00.0"),
        ] {
            let read: Devices = serde_json::from_str(json).unwrap();
            assert_eq!(read.to_string(), shown);
            assert_eq!(serde_json::to_string(&read).unwrap(), json);
            let bytes = postcard::to_stdvec(&read).unwrap();
            assert_eq!(
                postcard::from_bytes::<Devices>(&bytes).unwrap(),
                read,
                "{shown} between two processes"
            );
        }

        assert_eq!(
            serde_json::from_str::<Devices>("[\"CUDA1\"]").unwrap(),
            Devices::from(Device::Cuda(1))
        );
    }

    #[test]
    fn devices_that_cannot_serve_one_engine_are_refused() {
        let slice = "MIG-8f2c1b6e-0d5a-4c5e-9b5f-1f2e3d4c5b6a";

        assert_eq!(devices(&[]), Err(DevicesError::None));
        assert_eq!(devices(&["CUDA0", "cpu"]), Err(DevicesError::Mixed));
        assert_eq!(
            devices(&["CUDA0", "CUDA1", "cuda0"]),
            Err(DevicesError::Twice(Device::Cuda(0)))
        );
        assert_eq!(devices(&["CUDA0", slice]), Err(DevicesError::Slice(slice.parse().unwrap())));
        assert!(devices(&[slice]).is_ok());

        let many = |count: u32| Devices::new((0..count).map(Device::Cuda).collect());
        assert!(many(16).is_ok());
        assert_eq!(many(17), Err(DevicesError::TooMany(17)));

        for json in ["[]", "[\"CUDA0\",\"cpu\"]", "\"gpu\"", "3"] {
            assert!(serde_json::from_str::<Devices>(json).is_err(), "{json}");
        }
    }
}
