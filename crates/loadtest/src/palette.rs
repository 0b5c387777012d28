//! Colours of the charts. The drawings have those of a light page, which the style sheet replaces on a dark one.

use plotters::style::RGBColor;

/// A colour on a light and on a dark page.
#[derive(Clone, Copy, Debug)]
pub struct Colour {
    pub light: RGBColor,
    pub dark: RGBColor,
}

const fn colour(light: (u8, u8, u8), dark: (u8, u8, u8)) -> Colour {
    Colour { light: RGBColor(light.0, light.1, light.2), dark: RGBColor(dark.0, dark.1, dark.2) }
}

/// Text.
pub const INK: Colour = colour((0x1c, 0x21, 0x26), (0xe4, 0xe8, 0xec));
/// Axes and their labels.
pub const SOFT: Colour = colour((0x5a, 0x63, 0x6d), (0x9b, 0xa6, 0xb1));
/// Grid lines.
pub const RULE: Colour = colour((0xd9, 0xde, 0xe3), (0x32, 0x3a, 0x43));
/// Bars of the agents' own work.
pub const WORK: Colour = colour((0xa9, 0xc8, 0xea), (0x2f, 0x4d, 0x6e));
/// Lines, in order; the first also colours bars.
pub const SERIES: [Colour; 6] = [
    colour((0x0b, 0x62, 0xb8), (0x6c, 0xb2, 0xff)),
    colour((0xc4, 0x54, 0x0a), (0xff, 0x9d, 0x5c)),
    colour((0x13, 0x79, 0x5b), (0x57, 0xcf, 0xa4)),
    colour((0xa3, 0x26, 0x8e), (0xec, 0x85, 0xda)),
    colour((0x8a, 0x6a, 0x00), (0xe2, 0xbf, 0x4b)),
    colour((0x4a, 0x55, 0x61), (0xb4, 0xbf, 0xca)),
];

/// As the drawings write it.
pub fn hex(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// Every colour, with its name in the style sheet.
pub fn all() -> Vec<(String, Colour)> {
    let named = [("ink", INK), ("soft", SOFT), ("rule", RULE), ("work", WORK)].map(|(name, it)| (name.to_owned(), it));
    named.into_iter().chain((0..).zip(SERIES).map(|(index, it): (usize, _)| (format!("c{index}"), it))).collect()
}
