//! Names, units and directions that a manifest makes of a record's fields:
//! `{jobname}/read-{bs|block}`.

use super::manifest::FieldPath;

/// A text with fields.
#[derive(Debug, Default)]
pub(super) struct Template {
    written: String,
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Text(String),
    /// The first of these fields that has a text; `=TEXT` is a text.
    Fields(Vec<FieldPath>),
}

impl Template {
    /// Parses a template; the error says what is wrong with it.
    pub(super) fn new(written: &str, is_tree: bool) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = written;
        while let Some((before, behind)) = rest.split_once('{') {
            let (fields, behind) = behind
                .split_once('}')
                .ok_or_else(|| format!("`{{` without `}}` in `{written}`"))?;
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            let fields = fields
                .split('|')
                .map(|field| FieldPath::new(field, is_tree && !is_own(field)))
                .collect::<Result<_, _>>()?;
            parts.push(Part::Fields(fields));
            rest = behind;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Self {
            written: written.to_owned(),
            parts,
        })
    }

    pub(super) fn written(&self) -> &str {
        &self.written
    }

    /// Fills in the fields that there are; also says whether all of them were there.
    pub(super) fn fill(&self, field: &dyn Fn(&FieldPath) -> Option<String>) -> (String, bool) {
        let mut filled = String::new();
        let mut is_whole = true;
        for part in &self.parts {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Fields(fields) => {
                    let mut found = fields.iter().filter_map(|path| {
                        let text = path.written.strip_prefix('=').map(str::to_owned);
                        text.or_else(|| field(path))
                    });
                    match found.find(|text| !text.trim().is_empty()) {
                        Some(text) => filled.push_str(text.trim()),
                        None => is_whole = false,
                    }
                }
            }
        }
        (filled, is_whole)
    }
}

/// Returns whether a field is one that Marvin has for each record: names that the path went
/// through, the number of a part of a text from 0, the file's name without its last suffix, the
/// name of its directory, and a text that stands for itself.
pub(super) fn is_own(field: &str) -> bool {
    ["*", "#", "file", "folder"].contains(&field) || field.starts_with('=')
}

#[cfg(test)]
mod tests {
    use super::Template;

    #[test]
    fn missing_fields_are_empty_and_counted() {
        let template = Template::new("{a}/{b|c}-x{d}{e|=5}", false).unwrap();
        let filled = template.fill(&|field| match field.written.as_str() {
            "a" => Some(" 1 ".to_owned()),
            "c" => Some("3".to_owned()),
            _ => None,
        });
        assert_eq!(filled, ("1/3-x5".to_owned(), false));
        assert!(Template::new("{a", false).is_err());
        assert!(Template::new("{a..b}", true).is_err());
    }
}
