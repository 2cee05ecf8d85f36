//! Comparisons, verdicts and their renderings: text, markdown, JSON, HTML.
