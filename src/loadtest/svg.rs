//! Shapes of SVG 1.1, as text. Colours and dashes are classes, which the page's style sheet gives a look, so that a plot
//! follows it from light to dark.

/// Text that stands for itself in XML, in an element or between quotes.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            // XML has no way to write these.
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

/// Where a text stands against its place.
#[derive(Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A drawing that grows.
pub struct Svg {
    width: f64,
    height: f64,
    body: String,
}

impl Svg {
    /// Units are those of the text's size at full width.
    pub fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    pub fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), class: &str) {
        self.body +=
            &format!("<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>\n");
    }

    pub fn polyline(&mut self, points: &[(f64, f64)], class: &str) {
        let points: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        self.body += &format!("<polyline class=\"{class}\" points=\"{}\"/>\n", points.join(" "));
    }

    /// A dot that says `title` when it is pointed at.
    pub fn dot(&mut self, (x, y): (f64, f64), class: &str, title: &str) {
        let title = escaped(title);
        self.body +=
            &format!("<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"><title>{title}</title></circle>\n");
    }

    /// A rectangle from its upper left corner, which says `title` when it is pointed at.
    pub fn rectangle(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), class: &str, title: &str) {
        let title = escaped(title);
        self.body += &format!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\">\
             <title>{title}</title></rect>\n"
        );
    }

    pub fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let anchor = anchor.name();
        let text = escaped(text);
        self.body +=
            &format!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>\n");
    }

    /// Text that is read from below, its middle at the place.
    pub fn upwards(&mut self, (x, y): (f64, f64), class: &str, text: &str) {
        let text = escaped(text);
        self.body += &format!(
            "<text class=\"{class}\" transform=\"translate({x:.1} {y:.1}) rotate(-90)\" text-anchor=\"middle\">{text}\
             </text>\n"
        );
    }

    /// The drawing, which says what it is to those who cannot see it.
    pub fn finish(self, title: &str) -> String {
        let Self { width, height, body } = self;
        let title = escaped(title);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
             aria-label=\"{title}\">\n{body}</svg>\n"
        )
    }
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_texts_stay_texts() {
        let mut svg = Svg::new(100.0, 50.0);
        svg.text((1.0, 2.0), Anchor::Middle, "tick", "<script>\"&'\u{1b}\n");
        svg.dot((1.0, 2.0), "s0", "</title><script>");
        let text = svg.finish("\" onload=\"");
        assert!(text.contains(">&lt;script&gt;&quot;&amp;&#39;  </text>"), "{text}");
        assert!(text.contains("<title>&lt;/title&gt;&lt;script&gt;</title>"), "{text}");
        assert!(text.contains("aria-label=\"&quot; onload=&quot;\""), "{text}");
    }
}
