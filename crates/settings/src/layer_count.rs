//! Options that count a model's layers: a number, or a word such as `all`.

use std::borrow::Cow;

use prime_engine::LayerCount;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Most layers of a model; the largest have a few hundred.
const LAYERS_MAX: u32 = 4096;

/// A value of `gpu_layers`: `"all"`, `"auto"`, or a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Form", into = "Form")]
pub struct GpuLayers(pub LayerCount);

/// A value of `cpu_experts`: `true`, `false`, or a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Form", into = "Form")]
pub struct CpuExperts(pub LayerCount);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Form {
    Flag(bool),
    Count(u32),
    Name(Cow<'static, str>),
}

impl TryFrom<Form> for GpuLayers {
    type Error = String;

    fn try_from(form: Form) -> Result<Self, String> {
        match form {
            Form::Count(count @ 0..=LAYERS_MAX) => Ok(Self(LayerCount::Count(count))),
            Form::Name(name) if name == "all" => Ok(Self(LayerCount::All)),
            Form::Name(name) if name == "auto" => Ok(Self(LayerCount::Auto)),
            _ => Err(format!("not \"all\", \"auto\", or a number of layers up to {LAYERS_MAX}")),
        }
    }
}

impl From<GpuLayers> for Form {
    fn from(layers: GpuLayers) -> Self {
        match layers.0 {
            LayerCount::All => Self::Name("all".into()),
            LayerCount::Auto => Self::Name("auto".into()),
            LayerCount::Count(count) => Self::Count(count),
        }
    }
}

impl TryFrom<Form> for CpuExperts {
    type Error = String;

    fn try_from(form: Form) -> Result<Self, String> {
        match form {
            Form::Count(count @ 0..=LAYERS_MAX) => Ok(Self(LayerCount::Count(count))),
            Form::Flag(true) => Ok(Self(LayerCount::All)),
            Form::Flag(false) => Ok(Self(LayerCount::Count(0))),
            _ => Err(format!("not true, false, or a number of layers up to {LAYERS_MAX}")),
        }
    }
}

impl From<CpuExperts> for Form {
    fn from(experts: CpuExperts) -> Self {
        match experts.0 {
            LayerCount::All | LayerCount::Auto => Self::Flag(true),
            LayerCount::Count(0) => Self::Flag(false),
            LayerCount::Count(count) => Self::Count(count),
        }
    }
}

impl JsonSchema for GpuLayers {
    fn schema_name() -> Cow<'static, str> {
        "GpuLayers".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["integer", "string"],
            "format": "gpu-layers",
            "minimum": 0,
            "maximum": LAYERS_MAX,
        })
    }
}

impl JsonSchema for CpuExperts {
    fn schema_name() -> Cow<'static, str> {
        "CpuExperts".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["boolean", "integer"],
            "format": "cpu-experts",
            "minimum": 0,
            "maximum": LAYERS_MAX,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_a_name_or_a_number() {
        for (json, layers) in [
            ("\"all\"", LayerCount::All),
            ("\"auto\"", LayerCount::Auto),
            ("0", LayerCount::Count(0)),
            ("4096", LayerCount::Count(4096)),
        ] {
            assert_eq!(serde_json::from_str::<GpuLayers>(json).unwrap().0, layers);
            assert_eq!(serde_json::to_string(&GpuLayers(layers)).unwrap(), json);
        }
        for json in ["\"some\"", "4097", "-1", "true", "1.5", "null"] {
            assert!(serde_json::from_str::<GpuLayers>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn experts_are_a_flag_or_a_number() {
        for (json, layers) in [
            ("true", LayerCount::All),
            ("false", LayerCount::Count(0)),
            ("12", LayerCount::Count(12)),
        ] {
            assert_eq!(serde_json::from_str::<CpuExperts>(json).unwrap().0, layers);
            assert_eq!(serde_json::to_string(&CpuExperts(layers)).unwrap(), json);
        }
        for json in ["\"all\"", "4097", "-1"] {
            assert!(serde_json::from_str::<CpuExperts>(json).is_err(), "{json}");
        }
    }
}
