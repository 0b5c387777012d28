//! PCI ids.

use std::fmt;
use std::str::FromStr;

/// A PCI id, such as `0000:65:00.0`: domain, bus, device, function. Ids sort in bus order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PciId {
    domain: u32,
    bus: u8,
    device: u8,
    function: u8,
}

/// The text is not a PCI id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a PCI id, write one like 0000:65:00.0")]
pub struct PciIdError;

/// A number of 1 to `digits` hexadecimal digits.
fn hex(text: &str, digits: usize) -> Result<u32, PciIdError> {
    let plain = (1..=digits).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit());
    if plain { u32::from_str_radix(text, 16).map_err(|_| PciIdError) } else { Err(PciIdError) }
}

impl FromStr for PciId {
    type Err = PciIdError;

    /// Parses `[domain:]bus:device.function`. The driver prints domains with four digits, NVML with
    /// eight.
    fn from_str(text: &str) -> Result<Self, PciIdError> {
        let (place, function) = text.rsplit_once('.').ok_or(PciIdError)?;
        let (place, device) = place.rsplit_once(':').ok_or(PciIdError)?;
        let (domain, bus) = place.rsplit_once(':').unwrap_or(("0", place));
        let narrow = |number: u32| u8::try_from(number).map_err(|_| PciIdError);
        let id = Self {
            domain: hex(domain, 8)?,
            bus: narrow(hex(bus, 2)?)?,
            device: narrow(hex(device, 2)?)?,
            function: narrow(hex(function, 1)?)?,
        };
        // The bus has five bits for a device and three for a function.
        if id.device < 32 && id.function < 8 { Ok(id) } else { Err(PciIdError) }
    }
}

impl fmt::Display for PciId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:02x}:{:02x}.{:x}", self.domain, self.bus, self.device, self.function)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_parse_with_and_without_a_domain_and_print_in_one_form() {
        for (text, printed) in [
            ("0000:65:00.0", "0000:65:00.0"),
            ("65:00.0", "0000:65:00.0"),
            ("00000001:C1:1f.7", "0001:c1:1f.7"),
            ("a:b:c.1", "000a:0b:0c.1"),
        ] {
            assert_eq!(text.parse::<PciId>().map(|id| id.to_string()), Ok(printed.to_owned()));
        }
    }

    #[test]
    fn other_text_is_refused() {
        for text in [
            "",
            ".",
            "65",
            "65:00",
            "65.0",
            ":65:00.0",
            "165:00.0",
            "65:20.0",
            "65:00.8",
            "+5:00.0",
            "x:65:00.0",
        ] {
            assert_eq!(text.parse::<PciId>(), Err(PciIdError), "{text:?}");
        }
    }

    #[test]
    fn ids_sort_by_number_and_not_by_text() {
        let ids = ["10000:01:00.0", "0000:f1:00.0", "0001:01:00.0", "0000:0a:00.0"];
        let mut ids: Vec<PciId> = ids.iter().map(|id| id.parse().unwrap()).collect();
        ids.sort_unstable();
        let sorted: Vec<String> = ids.iter().map(PciId::to_string).collect();
        assert_eq!(sorted, ["0000:0a:00.0", "0000:f1:00.0", "0001:01:00.0", "10000:01:00.0"]);
    }
}
