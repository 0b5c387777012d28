//! What the HTML pages of reports share: one file each without outside references, readable on a
//! light and a dark screen, and the charts in them. Knows nothing of what a report says.

#![warn(missing_docs)]

pub mod chart;
pub mod number;
pub mod palette;
pub mod ticks;

use minijinja::value::Value;
use minijinja::{Environment, UndefinedBehavior, context};

/// The extension `html` makes the engine escape values.
const PAGE: &str = "page.html";
/// Included by pages with `{% include "style.css" %}`.
const STYLE: (&str, &str) = ("style.css", include_str!("style.css"));
/// Included by a script with `{% include "marks.js" %}`: values at the pointer, and saving.
const MARKS: (&str, &str) = ("marks.js", include_str!("marks.js"));

/// Renders a page from its template with values, which are escaped.
///
/// # Panics
/// If the template is not well formed or uses a value that is not there: templates are compiled in.
pub fn render(template: &'static str, values: Value) -> String {
    let mut templates = Environment::new();
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    for (name, text) in [(PAGE, template), STYLE, MARKS] {
        templates.add_template(name, text).expect("invariant: templates are well formed");
    }

    let page = templates.get_template(PAGE).expect("invariant: it was added");
    page.render(context! { colours => colours(), ..values })
        .expect("invariant: a template uses only what it is given")
}

fn colours() -> Vec<Value> {
    let colours = palette::all().into_iter();
    colours
        .map(|(name, it)| {
            context! { name, light => palette::hex(it.light), dark => palette::hex(it.dark) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped_and_the_style_sheet_has_every_colour() {
        let template = "<style>{% include \"style.css\" %}</style><p>{{ text }}</p>";
        let page = render(template, context! { text => "<script>\"&\"" });

        assert!(page.ends_with("<p>&lt;script&gt;&quot;&amp;&quot;</p>"), "{page}");
        for (name, colour) in palette::all() {
            let (light, dark) = (palette::hex(colour.light), palette::hex(colour.dark));
            for part in [
                format!("--{name}: {light};"),
                format!("--{name}: {dark};"),
                format!("[fill=\"{light}\"]"),
            ] {
                assert!(page.contains(&part), "{part}");
            }
        }
    }
}
