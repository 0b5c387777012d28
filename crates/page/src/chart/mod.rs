//! Charts as SVG that stands alone: plain shapes in the colours of a light page, no style sheet,
//! text in a generic font. A mark carries its values as a title, which browsers show on hover.

mod axes;
mod drawing;
mod labels;
mod legend;
mod lines;
mod marker;
mod rows;
mod text;

pub use axes::{Axis, Frame, Scale};
pub use drawing::{Anchor, Drawing, Point, Stroke};
pub use labels::{Area, Distance, Named, Placed, place};
pub use legend::{LegendItem, legend};
pub use lines::{Line, LineChart, LinePoint};
pub use marker::{RADIUS, marker, reach};
pub use rows::{Measured, Row, RowChart};
pub use text::{FONT_SIZE, LINE_HEIGHT, cut, width, wrap};

/// Width of a drawing, in pixels, at which its text has the size of the page's.
pub const WIDTH: f64 = 560.0;

#[cfg(test)]
mod tests;
