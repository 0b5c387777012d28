//! How much room a text takes. Drawings cannot measure it, so the widths are those of a wide font
//! (DejaVu Sans), which is what is left where nothing else is installed.

/// Size of all text, in pixels.
pub const FONT_SIZE: f64 = 13.0;

/// Distance of the lines of a name, in pixels.
pub const LINE_HEIGHT: f64 = 15.0;

/// The width of a letter as a share of the font's size.
fn letter(letter: char) -> f64 {
    match letter {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' | '\u{a0}' => 0.33,
        't' | 'f' | 'r' | '(' | ')' | '[' | ']' | '-' | '/' => 0.41,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '—' | '…' => 0.98,
        '→' | '=' | '+' | '<' | '>' | '±' | '−' => 0.84,
        'A'..='Z' => 0.72,
        'a'..='z' | '0'..='9' | '–' => 0.63,
        _ if letter.is_ascii() => 0.65,
        _ => 1.0,
    }
}

/// The approximate width of a text, in pixels.
pub fn width(text: &str) -> f64 {
    FONT_SIZE * text.chars().map(letter).sum::<f64>()
}

/// The start of a text, as far as it fits.
pub fn cut(text: &str, pixels: f64) -> String {
    if width(text) <= pixels {
        return text.to_owned();
    }
    let mut start = String::new();
    for letter in text.chars() {
        start.push(letter);
        if width(&start) + width("…") > pixels {
            start.pop();
            break;
        }
    }
    format!("{}…", start.trim_end())
}

/// The text in at most this many lines, broken between words; the last line is cut if it must be.
pub fn wrap(text: &str, pixels: f64, lines_max: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    // A hyphenated name may be broken after a hyphen.
    for word in text.split_inclusive([' ', '-']) {
        let line = lines.last().map_or("", String::as_str);
        let fits = width(format!("{line}{word}").trim_end()) <= pixels;
        if !fits && !line.is_empty() && lines.len() < lines_max {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(word);
        }
    }
    lines.iter().map(|line| cut(line.trim(), pixels)).collect()
}
