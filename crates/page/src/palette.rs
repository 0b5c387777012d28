//! Colours after Okabe and Ito, which people with any colour vision can tell apart. Drawings use
//! the colours of a light page, which the style sheet replaces on a dark one.

use plotters::style::RGBColor;

/// A colour on a light and on a dark page.
#[derive(Clone, Copy, Debug)]
pub struct Colour {
    /// The colour on a light page.
    pub light: RGBColor,
    /// The colour on a dark page.
    pub dark: RGBColor,
}

const fn colour(light: (u8, u8, u8), dark: (u8, u8, u8)) -> Colour {
    Colour { light: RGBColor(light.0, light.1, light.2), dark: RGBColor(dark.0, dark.1, dark.2) }
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
/// Series, in order.
pub const SERIES: [Colour; 6] = [
    colour((0xd5, 0x5e, 0x00), (0xff, 0x8a, 0x4c)),
    colour((0x00, 0x72, 0xb2), (0x63, 0xb8, 0xff)),
    colour((0x00, 0x9e, 0x73), (0x4b, 0xd6, 0xa8)),
    colour((0xb0, 0x57, 0x8d), (0xe9, 0xa3, 0xcb)),
    colour((0x8a, 0x6d, 0x00), (0xe6, 0xc8, 0x4b)),
    colour((0x4a, 0x4f, 0x58), (0xb4, 0xbf, 0xca)),
];

/// The colour of a series on a light page.
pub fn series(index: usize) -> RGBColor {
    SERIES[index % SERIES.len()].light
}

/// A colour in the notation of the drawings.
pub fn hex(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// Every colour, with its name in the style sheet.
pub fn all() -> Vec<(String, Colour)> {
    let named = [("ink", INK), ("soft", SOFT), ("rule", RULE), ("paper", PAPER), ("work", WORK)];
    let series = SERIES.into_iter().enumerate().map(|(index, it)| (format!("c{index}"), it));
    named.into_iter().map(|(name, it)| (name.to_owned(), it)).chain(series).collect()
}
