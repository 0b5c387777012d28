//! Colours after Okabe and Ito, which people with any colour vision can tell apart, and the slot
//! that a system has in every report. Drawings use the colours of a light page, which the style
//! sheet replaces on a dark one.

/// A colour of red, green and blue, 0 to 255 each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rgb(pub u8, pub u8, pub u8);

/// A colour on a light and on a dark page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour {
    /// The colour on a light page.
    pub light: Rgb,
    /// The colour on a dark page.
    pub dark: Rgb,
}

const fn colour(light: (u8, u8, u8), dark: (u8, u8, u8)) -> Colour {
    Colour { light: Rgb(light.0, light.1, light.2), dark: Rgb(dark.0, dark.1, dark.2) }
}

/// Text and error bars.
pub const INK: Colour = colour((0x1c, 0x21, 0x26), (0xe4, 0xe8, 0xec));
/// Axes and their labels.
pub const SOFT: Colour = colour((0x5a, 0x63, 0x6d), (0x9b, 0xa6, 0xb1));
/// Grid lines.
pub const RULE: Colour = colour((0xd9, 0xde, 0xe3), (0x32, 0x3a, 0x43));
/// The inside of hollow shapes.
pub const PAPER: Colour = colour((0xff, 0xff, 0xff), (0x14, 0x18, 0x1c));
/// Bars of work, beside bars in the colour of the first series.
pub const WORK: Colour = colour((0xa9, 0xc8, 0xea), (0x2f, 0x4d, 0x6e));
/// Series, by slot.
pub const SERIES: [Colour; 10] = [
    colour((0xd5, 0x5e, 0x00), (0xff, 0x8a, 0x4c)),
    colour((0x00, 0x72, 0xb2), (0x63, 0xb8, 0xff)),
    colour((0x00, 0x9e, 0x73), (0x4b, 0xd6, 0xa8)),
    colour((0xb0, 0x57, 0x8d), (0xe9, 0xa3, 0xcb)),
    colour((0x8a, 0x6d, 0x00), (0xe6, 0xc8, 0x4b)),
    colour((0x4a, 0x4f, 0x58), (0xb4, 0xbf, 0xca)),
    colour((0x6a, 0x4f, 0xb3), (0xb7, 0xa3, 0xff)),
    colour((0x8c, 0x1c, 0x3a), (0xff, 0x8f, 0xa8)),
    colour((0x00, 0x86, 0x95), (0x5c, 0xd9, 0xe6)),
    colour((0x6b, 0x43, 0x1f), (0xd2, 0xa6, 0x7c)),
];

/// Slots of systems that stand in several studies.
const KNOWN: [(&str, usize); 18] = [
    ("single pass", 0),
    ("greedy", 0),
    ("supervised", 0),
    ("PRIME", 1),
    ("PRIME, one trajectory", 1),
    ("iterative", 1),
    ("default", 1),
    ("reinforced", 1),
    ("four votes", 2),
    ("votes", 2),
    ("best of n", 2),
    ("beam", 3),
    ("reference", 3),
    ("ahead", 4),
    ("uniform", 5),
    ("none", 5),
    ("start", 5),
    ("uct", 6),
];

/// FNV-1a, which is the same in every build and on every machine.
fn hash(name: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The slot that a name has if no other one of the report claims it.
fn preferred(name: &str) -> usize {
    let known = KNOWN.iter().find(|(other, _)| *other == name).map(|(_, slot)| *slot);
    let hashed = hash(name) % SERIES.len() as u64;
    known.unwrap_or(usize::try_from(hashed).unwrap_or_default())
}

/// The slot of each system of a report, which fixes its colour and its marker. A name has the same
/// slot in all reports unless two names of one report claim it. Slots are distinct as long as there
/// are enough of them.
pub fn slots(names: &[&str]) -> Vec<usize> {
    let is_known = |name: &str| KNOWN.iter().any(|(other, _)| *other == name);
    let mut order: Vec<usize> = (0..names.len()).collect();
    // Names of the table first, so that no hashed name takes theirs.
    order.sort_by_key(|index| !is_known(names[*index]));

    let mut taken = [0_usize; SERIES.len()];
    let mut slots = vec![0; names.len()];
    for index in order {
        let least = taken.iter().min().copied().unwrap_or_default();
        let wanted = preferred(names[index]);
        let free = (0..SERIES.len())
            .map(|step| (wanted + step) % SERIES.len())
            .find(|slot| taken[*slot] == least);
        let slot = free.unwrap_or(wanted);
        taken[slot] += 1;
        slots[index] = slot;
    }
    slots
}

/// The colour of a series on a light page.
pub fn series(slot: usize) -> Rgb {
    SERIES[slot % SERIES.len()].light
}

/// A colour in the notation of the drawings.
pub fn hex(Rgb(red, green, blue): Rgb) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// Every colour, with its name in the style sheet.
pub fn all() -> Vec<(String, Colour)> {
    let named = [("ink", INK), ("soft", SOFT), ("rule", RULE), ("paper", PAPER), ("work", WORK)];
    let series = SERIES.into_iter().enumerate().map(|(index, it)| (format!("c{index}"), it));
    named.into_iter().map(|(name, it)| (name.to_owned(), it)).chain(series).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_has_one_colour_in_all_reports_and_no_other_one_has_it() {
        let first = slots(&["single pass", "PRIME"]);
        let second = slots(&["beta 0", "PRIME", "without vote", "single pass", "four votes"]);
        assert_eq!((first[0], first[1]), (second[3], second[1]));

        let names: Vec<String> = (0..25).map(|index| format!("system {index}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut ten = slots(&names[..10]);
        ten.sort_unstable();
        assert_eq!(ten, (0..10).collect::<Vec<_>>());
        assert_eq!(slots(&names).len(), 25);
        // The slot of one name alone is that of its hash, 0xaf63dc4c8601ec8c % 10.
        assert_eq!(slots(&["a"]), [usize::try_from(0xaf63_dc4c_8601_ec8c_u64 % 10).unwrap()]);
    }

    #[test]
    fn series_stand_out_from_the_paper() {
        // Relative luminance and contrast as WCAG 2.2 defines them.
        let channel = |value: u8| {
            let share = f64::from(value) / 255.0;
            if share <= 0.040_45 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        let luminance = |Rgb(red, green, blue): Rgb| {
            0.2126 * channel(red) + 0.7152 * channel(green) + 0.0722 * channel(blue)
        };
        let contrast = |one: Rgb, other: Rgb| {
            let (a, b) = (luminance(one), luminance(other));
            (a.max(b) + 0.05) / (a.min(b) + 0.05)
        };
        for colour in SERIES {
            assert!(contrast(colour.light, PAPER.light) >= 3.0, "{colour:?}");
            assert!(contrast(colour.dark, PAPER.dark) >= 3.0, "{colour:?}");
        }
    }
}
