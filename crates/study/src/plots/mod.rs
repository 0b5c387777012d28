//! Charts that only studies have; lines and rows with intervals are those of all reports
//! (`prime_page::chart`). The legend is in the drawing, so that a file stands alone.

mod boxes;
mod heat_map;
mod histogram;
mod radar;
mod scatter;

pub use boxes::{BoxChart, BoxGroup};
pub use heat_map::HeatMap;
pub use histogram::Histogram;
pub use radar::Radar;
pub use scatter::{Point, Scatter};

use prime_page::chart::LegendItem;

/// A series' name, and the slot of its colour and marker.
pub type Series = (String, usize);

/// The legend of these series; none for a single one, which the heading names.
fn legend_items<'s>(series: impl IntoIterator<Item = &'s Series>) -> Vec<LegendItem> {
    let item =
        |(name, slot): &Series| LegendItem { name: name.clone(), slot: *slot, is_dashed: false };
    let items: Vec<_> = series.into_iter().map(item).collect();
    if items.len() > 1 { items } else { Vec::new() }
}

#[cfg(test)]
mod tests;
