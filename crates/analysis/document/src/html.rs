//! Documents as HTML. `templates/document.html`, `blocks.html` and `document.css` define the
//! layout.

use askama::Template;

use super::chart::{HEIGHT, LEFT, WIDTH};
use super::{Block, ColumnKind, Document, Table, Weight};
use crate::RenderError;
use model::sanitize_text;

/// The first lines of every page.
const HEAD: &str = include_str!("../templates/head.html");
/// The styles for elements that the script adds.
pub const SCRIPT_STYLES: &str = include_str!("../templates/page.css");
/// The styles of documents.
pub const DOCUMENT_STYLES: &str = concat!(
    include_str!("../templates/comparison.css"),
    include_str!("../templates/plots.css"),
    include_str!("../templates/document.css"),
    include_str!("../templates/page.css"),
);
/// The script of every page: it sorts and filters rows and chooses kernels. Without it a page has
/// all its content.
pub const SCRIPT: &str = include_str!("../templates/page.js");
/// Its hash, by which a standalone page refuses every other script. A test computes it.
const SCRIPT_HASH: &str = "sha256-fjLq8Sw7tefp82vfvRPpFj2vxqBktjPWBHP1tZXH/Kc=";

/// The content security policy of a site: pages may load only their own styles and script.
pub const SITE_POLICY: &str = "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self'; img-src 'self' \
                               data:; form-action 'self'; base-uri 'none'";

/// Returns the head of a page, for reports and the dashboard. It contains the content security
/// policy, because a page may be a file that no server sends.
#[must_use]
pub fn page_head(root: Option<&str>) -> String {
    let alone = format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src '{SCRIPT_HASH}'; img-src data:; base-uri 'none'"
    );
    let policy = if root.is_none() { &alone } else { SITE_POLICY };
    format!("{HEAD}<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n")
}

/// Returns the script element: inline in a standalone page, else a link to the top of the site.
#[must_use]
pub fn page_script(root: Option<&str>) -> String {
    match root {
        Some(root) => format!("<script src=\"{root}script.js\"></script>"),
        None => format!("<script>{SCRIPT}</script>"),
    }
}

#[derive(Template)]
#[template(path = "document.html")]
struct PageOf<'a> {
    document: &'a Document,
    blocks: String,
    head: String,
    styles: String,
    script: String,
}

#[derive(Template)]
#[template(path = "blocks.html")]
struct Blocks<'a> {
    blocks: &'a [Block],
}

/// Writes a page: standalone, or of a site with styles and script below this root.
pub(super) fn page(document: &Document, root: Option<&str>) -> Result<String, RenderError> {
    let styles = match root {
        Some(root) => format!("<link rel=\"stylesheet\" href=\"{root}document.css\">"),
        None => format!("<style>{DOCUMENT_STYLES}</style>"),
    };
    let blocks = inner(&document.blocks)?;
    let head = page_head(root);
    let script = page_script(root);
    let page = PageOf {
        document,
        blocks,
        head,
        styles,
        script,
    };
    Ok(sanitize_text(&page.render()?))
}

/// Writes blocks, nested ones too.
fn inner(blocks: &[Block]) -> askama::Result<String> {
    Blocks { blocks }.render()
}

impl Table {
    /// Returns whether it has drawings, which need a page's whole width.
    fn is_drawn(&self) -> bool {
        self.columns
            .iter()
            .any(|column| column.kind == ColumnKind::Drawing)
    }

    /// Returns of each column whether it has changes; each of its cells then has room for one.
    fn changed_columns(&self) -> Vec<bool> {
        let mut changed = vec![false; self.columns.len()];
        for row in &self.rows {
            for (column, cell) in changed.iter_mut().zip(&row.cells) {
                *column |= cell.change.is_some();
            }
        }
        changed
    }

    /// Returns whether it is a matrix of verdicts: rows by kernels, without drawings.
    fn is_matrix(&self) -> bool {
        !self.is_drawn()
            && self
                .columns
                .iter()
                .filter(|column| column.kind == ColumnKind::Verdict)
                .count()
                > 1
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::{SCRIPT, SCRIPT_HASH};

    /// Writes bytes as Base64, for policies.
    fn base64(bytes: &[u8]) -> String {
        const DIGITS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        for three in bytes.chunks(3) {
            let number = (0..3).fold(0, |sum, n| {
                sum << 8 | usize::from(three.get(n).copied().unwrap_or(0))
            });
            for n in 0..4 {
                text.push(if n > three.len() {
                    '='
                } else {
                    char::from(DIGITS[number >> (18 - 6 * n) & 63])
                });
            }
        }
        text
    }

    #[test]
    fn hash_of_the_script_is_right() {
        assert_eq!(
            base64(b"Marvin") + &base64(b"Ma") + &base64(b"M"),
            "TWFydmluTWE=TQ=="
        );
        assert_eq!(
            SCRIPT_HASH,
            format!("sha256-{}", base64(&Sha256::digest(SCRIPT)))
        );
        assert!(SCRIPT.is_ascii() && !SCRIPT.contains("</script") && !SCRIPT.contains("http"));
    }
}
