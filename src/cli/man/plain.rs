//! A page of the manual as plain text, for terminals without `man`.

/// The text of a page in roff, as far as our own pages use it.
pub fn text(page: &str) -> String {
    let mut text = String::new();
    let mut indent = "";
    let mut is_term = false;
    for line in page.lines() {
        let (request, rest) = line.split_once(' ').unwrap_or((line, ""));
        match request {
            ".SH" => {
                text += &format!("\n{}\n", plain(rest.trim_matches('"')));
                indent = "    ";
            }
            ".TP" | ".PP" => {
                text.push('\n');
                is_term = request == ".TP";
                indent = "    ";
            }
            ".RS" => indent = "        ",
            ".RE" => indent = "    ",
            _ if line.starts_with('.') || line.starts_with('\'') => {}
            _ => {
                text += &format!("{indent}{}\n", plain(line));
                // What follows a term is its meaning.
                if std::mem::take(&mut is_term) {
                    indent = "        ";
                }
            }
        }
    }
    text.trim_start().to_owned()
}

/// A line without roff's escapes.
fn plain(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, escape)) = rest.split_once('\\') {
        text += before;
        rest = if let Some(code) = escape.strip_prefix("[u") {
            let (code, after) = code.split_once(']').unwrap_or((code, ""));
            let named = u32::from_str_radix(code, 16).ok().and_then(char::from_u32);
            text.extend(named);
            after
        } else if let Some(after) = escape.strip_prefix("(ti") {
            text.push('~');
            after
        } else if let Some(after) = escape.strip_prefix("*(Aq") {
            text.push('\'');
            after
        } else if let Some(font) = escape.strip_prefix('f') {
            font.get(1..).unwrap_or_default()
        } else if let Some(after) = escape.strip_prefix('e') {
            text.push('\\');
            after
        } else if let Some(after) = escape.strip_prefix('&') {
            after
        } else {
            // `\-`, and anything that stands for itself.
            escape
        };
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_reads_without_its_requests() {
        let page = ".TH prime\\-agents 1\n.SH NAME\nprime\\-agents \\- agents\n.SH \"EXIT STATUS\"\n\
            .TP\n\\fB130\\fR\nInterrupted \\[u2014] with Ctrl\\-C.\n.PP\nIn \\(ti/x:\n.PP\n.nf\n.RS\n\
            \\&.a \\e b\n.RE\n.fi\n";
        let expected = "NAME\n    prime-agents - agents\n\nEXIT STATUS\n\n    130\n        \
            Interrupted \u{2014} with Ctrl-C.\n\n    In ~/x:\n\n        .a \\ b\n";
        assert_eq!(text(page), expected);
    }
}
