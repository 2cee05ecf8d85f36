//! A comparison as one HTML file: no network, no script, readable in w3m, on paper, in the dark.
//!
//! What the page shows is put together in `page.rs`, how it looks is `templates/comparison.html`.

mod changes;
mod page;
mod rows;

use askama::Template;

use crate::comparison::Comparison;
use crate::render::RenderError;

/// Renders a comparison as a self-contained HTML page.
///
/// # Errors
/// Never in practice: everything is in memory.
pub fn html(comparison: &Comparison) -> Result<String, RenderError> {
    Ok(page::page(comparison)?.render()?)
}

#[cfg(test)]
mod tests {
    use super::html;
    use crate::Comparison;
    use crate::compare::compare;
    use crate::fixtures::{Subject, equal, hostile, large, mixed, seeds, three, two};
    use crate::render::{Styles, text};

    fn page(comparison: &Comparison) -> String {
        let page = html(comparison).unwrap();
        assert!(!page.contains("<script") && !page.contains("http") && !page.contains("url("));
        page
    }

    /// Returns the page without its styles, which would drown what it says.
    fn body(page: &str) -> &str {
        page.split_once("</head>").unwrap().1
    }

    #[test]
    fn two_kernels_and_five_seeds() {
        insta::assert_snapshot!(page(&two(&seeds(5))));
    }

    #[test]
    fn three_kernels_and_one_seed() {
        insta::assert_snapshot!(body(&page(&three(&[1]))));
    }

    /// A thousand rows, ten kernels and thirty samples each: the bound is loose, as machines are busy and tests not
    /// optimised; what it catches is work that grows with the square.
    #[test]
    fn large_comparisons_take_no_time_worth_speaking_of() {
        let (subjects, question) = large();
        let sides: Vec<_> = subjects.iter().map(Subject::side).collect();
        let start = std::time::Instant::now();
        let comparison = compare(&sides[0], &sides[1..], &question).unwrap();
        let compared = start.elapsed();
        let text = text(&comparison, &Styles::plain());
        let texted = start.elapsed();
        let page = html(&comparison).unwrap();
        let took = start.elapsed();
        assert_eq!(comparison.rows.len(), 1000);
        assert!(text.lines().count() > 1000 && page.matches("<svg").count() == 9000);
        assert!(took.as_secs() < 10, "{compared:?} {texted:?} {took:?}");
    }

    #[test]
    fn equal_images() {
        insta::assert_snapshot!(body(&page(&equal(&seeds(2)))));
    }

    #[test]
    fn warnings_come_before_anything_else() {
        let page = page(&mixed(&seeds(2)));
        assert!(page.find("WARNING").unwrap() < page.find("<h1>").unwrap());
    }

    #[test]
    fn hostile_words_stay_words() {
        let page = page(&hostile());
        assert!(!page.contains('\x1b'));
        assert!(!page.contains("<b>|x") && !page.contains("\" onmouseover"));
        insta::assert_snapshot!(body(&page));
    }

    #[test]
    fn every_link_has_its_row() {
        let page = page(&two(&seeds(5)));
        let ends: Vec<&str> = page.split("href=\"#").skip(1).collect();
        assert!(ends.len() > 12);
        for end in ends {
            let anchor = end.split('"').next().unwrap();
            assert_eq!(page.matches(&format!(" id=\"{anchor}\"")).count(), 1, "{anchor}");
        }
    }
}
