//! Reads a result file by the manifest of its format: bytes to rows.

use std::collections::BTreeMap;

use model::Direction;
use serde_json::Value;

use super::collect::{Collector, Conversion, FileContent, RowHead};
use super::document::{
    TEXT_MAX, cells, decode, json, json_lines, lines, text_of, without_colours, xml,
};
use super::manifest::{Fact, FieldPath, FindValue, Format, FormatMetric, Instead, Known, Layout};
use super::number::{Sign, UNMEASURED, direction_of_unit, direction_of_word};
use super::template::Template;
use crate::tools::json::{Step, select, select_named};
use crate::tools::pattern::Pattern;

/// The field with the number of a run in its file; none in the first.
const RUN: &str = "run of the file";
/// Lines in which the headings of a table are sought.
const HEADINGS_WITHIN: usize = 50;

/// A result file: its path below the imported directory, and its decoded text.
#[derive(Debug)]
pub struct ResultFile<'a> {
    path: &'a str,
    text: String,
}

impl<'a> ResultFile<'a> {
    /// Decodes a file.
    ///
    /// # Errors
    /// If it is empty, binary or too large; the text says so.
    pub fn new(path: &'a str, bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > TEXT_MAX {
            return Err(format!("larger than {} MiB", TEXT_MAX >> 20));
        }
        let text = without_colours(decode(bytes));
        if text.trim().is_empty() {
            return Err("empty".to_owned());
        }
        if text.contains('\0') {
            return Err("a binary file".to_owned());
        }
        Ok(Self { path, text })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns a field that each record has: see `template`.
    fn own_field(&self, name: &str) -> Option<String> {
        let (folder, file) = self.path.rsplit_once('/').unwrap_or(("", self.path));
        match name {
            "file" => {
                let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
                Some(stem.to_owned())
            }
            "folder" => folder.rsplit('/').next().map(str::to_owned),
            _ => None,
        }
    }
}

/// A file in the form that its layout needs.
enum Document {
    Text,
    Tree(Value),
}

/// Returns the content of a file if it has the format; `None` if it is of another one. Names of
/// rows begin with that of the format.
///
/// # Errors
/// If the file begins like one of this format and is damaged; the text says how.
pub fn read_as(format: &Format, file: &ResultFile<'_>) -> Result<Option<FileContent>, String> {
    let mut of_name = Vec::new();
    if let Some(pattern) = &format.file {
        match pattern.groups(file.path) {
            Some(groups) => of_name = groups,
            None => return Ok(None),
        }
    }
    let mut rows = Collector::default();
    let document = match format.layout {
        Layout::Lines | Layout::Table => Document::Text,
        Layout::Json | Layout::Xml | Layout::JsonLines => match tree(format, file, &mut rows) {
            Ok(tree) => Document::Tree(tree),
            Err(why) if format.file.is_some() || is_cut(format, &file.text) => return Err(why),
            Err(_) => return Ok(None),
        },
    };
    if !is_known(format, file, &document) {
        return Ok(None);
    }
    let reader = Reader {
        format,
        file,
        of_name: own(&of_name),
        failures: failures(format, file),
    };
    if format.are_numbers_local {
        rows.sign = sign(format, file, &document);
    }
    for (_, line) in &reader.failures {
        rows.leave_out(line, "the run failed");
    }
    let mut facts = BTreeMap::new();
    for instead in [Instead::Always, Instead::OfRows, Instead::OfRow] {
        if instead == Instead::OfRows && !rows.is_empty() {
            continue;
        }
        let of_kind = |metric: &&FormatMetric| metric.instead == instead;
        let chosen: Vec<&FormatMetric> = format.metrics.iter().filter(of_kind).collect();
        if chosen.is_empty() {
            continue;
        }
        let mut found = Collector::default();
        found.sign = rows.sign;
        let read = if instead == Instead::OfRow {
            &mut found
        } else {
            &mut rows
        };
        let of_pass = match &document {
            Document::Text if format.layout == Layout::Table => reader.table(&chosen, read),
            Document::Text => reader.lines(&chosen, read),
            Document::Tree(tree) => reader.tree(tree, &chosen, read),
        };
        facts.extend(of_pass);
        rows.add_missing(found);
    }
    if format.layout == Layout::Lines && !format.is_of_mmtests() {
        name_other_lines(format, file, &mut rows);
    }
    for fact in ["kernel", "host"] {
        if let Some(text) = reader.of_name.get(fact) {
            facts.insert(fact.to_owned(), text.clone());
        }
    }
    Ok(Some(rows.finish(facts)))
}

/// Returns the lines that say that a run failed, each with the fields of the values that it means.
fn failures(format: &Format, file: &ResultFile<'_>) -> Vec<(Words, String)> {
    let of_line = |line: &str| {
        let groups = format.failed.iter().find_map(|one| one.groups(line))?;
        Some((own(&groups), line.trim().to_owned()))
    };
    if format.failed.is_empty() {
        return Vec::new();
    }
    lines(&file.text).filter_map(of_line).collect()
}

/// Returns the decimal sign of a file: that of the lines with values, or of all members that are
/// called as those with values.
fn sign(format: &Format, file: &ResultFile<'_>, document: &Document) -> Sign {
    let metrics = || format.metrics.iter();
    let Document::Tree(tree) = document else {
        let has_value = |line: &&str| {
            metrics().any(|metric| match &metric.find {
                FindValue::Line { pattern, .. } => pattern.is_in(line),
                _ => true,
            })
        };
        return Sign::of_numbers(lines(&file.text).filter(has_value));
    };
    let mut texts = Vec::new();
    for metric in metrics() {
        if let FindValue::Tree { values, .. } = &metric.find {
            for steps in values {
                let whole: Vec<Step> = [&[Step::Below], &steps[..]].concat();
                texts.extend(select(tree, &whole).into_iter().filter_map(text_of));
            }
        }
    }
    Sign::of_numbers(texts.iter().map(String::as_str))
}

/// Names the number of lines with numbers that no pattern of the format reads, and the first.
fn name_other_lines(format: &Format, file: &ResultFile<'_>, rows: &mut Collector) {
    let is_number = |word: &str| {
        let word = word.trim_matches(|letter: char| ":,;%=".contains(letter));
        word.starts_with(|letter: char| letter.is_ascii_digit()) && word.parse::<f64>().is_ok()
    };
    let known = format.known.iter().filter_map(|known| match known {
        Known::Line(pattern) => Some(pattern),
        _ => None,
    });
    let facts = format.facts.iter().filter_map(|(_, fact)| match fact {
        Fact::Line(pattern) => Some(pattern),
        Fact::Fields(_) => None,
    });
    let metrics = format
        .metrics
        .iter()
        .filter_map(|metric| match &metric.find {
            FindValue::Line { pattern, .. } => Some(pattern),
            _ => None,
        });
    let patterns: Vec<&Pattern> = known
        .chain(facts)
        .chain(metrics)
        .chain(&format.contexts)
        .chain(&format.later)
        .chain(&format.failed)
        .chain(&format.again)
        .collect();
    let mut others = lines(&file.text).filter(|line| {
        let is_comment = line.trim_start().starts_with('#');
        let has_number = !is_comment && line.split_whitespace().any(is_number);
        has_number && !patterns.iter().any(|pattern| pattern.is_in(line))
    });
    if let Some(first) = others.next() {
        let more = match others.count() {
            0 => String::new(),
            more => format!(", the first of {} such lines", more + 1),
        };
        rows.leave_out(first.trim(), format!("numbers that no row has{more}"));
    }
}

fn tree(format: &Format, file: &ResultFile<'_>, rows: &mut Collector) -> Result<Value, String> {
    match format.layout {
        Layout::Xml => xml(&file.text),
        Layout::JsonLines => {
            let (tree, others) = json_lines(&file.text);
            if others > 0 {
                rows.leave_out("lines", format!("{others} are no JSON objects"));
            }
            Ok(tree)
        }
        _ => json(&file.text),
    }
}

/// Returns whether a damaged document begins like its layout, and has the names of all paths that
/// mark its format.
fn is_cut(format: &Format, text: &str) -> bool {
    let begin = text.trim_start().chars().next();
    let is_begun = match format.layout {
        Layout::Xml => begin == Some('<'),
        _ => matches!(begin, Some('{' | '[')),
    };
    let has_name = |step: &Step| match step {
        Step::Member(name) => text.contains(name.trim_start_matches('@')),
        _ => true,
    };
    let has_names = |known: &Known| match known {
        Known::Path(steps) => steps.iter().all(has_name),
        _ => false,
    };
    is_begun && format.known.iter().all(has_names)
}

fn is_known(format: &Format, file: &ResultFile<'_>, document: &Document) -> bool {
    format.known.iter().all(|known| match (known, document) {
        (Known::Line(pattern), _) => lines(&file.text).any(|line| pattern.is_in(line)),
        (Known::Heading(_), _) => headings(format, &file.text).is_some(),
        (Known::Path(steps), Document::Tree(tree)) => !select(tree, steps).is_empty(),
        (Known::Path(_), Document::Text) => false,
    })
}

/// Returns the number of lines up to the headings, and the headings.
fn headings(format: &Format, text: &str) -> Option<(usize, Vec<String>)> {
    let mut candidates = lines(text).take(HEADINGS_WITHIN).enumerate();
    candidates.find_map(|(at, line)| {
        let line = line.trim_start_matches(['#', ' ']);
        let cells = cells(line, format.separator);
        let is_heading = format.known.iter().all(|known| match known {
            Known::Heading(name) => cells.contains(name),
            _ => true,
        });
        is_heading.then_some((at + 1, cells))
    })
}

type Words = BTreeMap<String, String>;

fn own(groups: &[(&str, &str)]) -> Words {
    groups
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect()
}

struct Reader<'a> {
    format: &'a Format,
    file: &'a ResultFile<'a>,
    /// Groups of the pattern of file names.
    of_name: Words,
    /// Lines of failed runs, with the fields of the values that they mean.
    failures: Vec<(Words, String)>,
}

impl Reader<'_> {
    fn field(&self, words: &Words, name: &str) -> Option<String> {
        let word = words.get(name).or_else(|| self.of_name.get(name)).cloned();
        word.or_else(|| self.file.own_field(name))
    }

    /// Returns the row of a record.
    fn head(&self, metric: &FormatMetric, field: &dyn Fn(&FieldPath) -> Option<String>) -> RowHead {
        let name = format!("{}/{}", self.format.name, metric.name.fill(field).0);
        let unit = metric.unit.fill(field).0;
        let direction = direction(metric.better.as_ref(), &unit, field);
        let fact = |template: &Template| Some(template.fill(field).0).filter(|t| !t.is_empty());
        RowHead {
            kernel: metric.kernel.as_ref().and_then(fact),
            run: field(&FieldPath::word(RUN)),
            name,
            unit,
            direction,
            are_units_rows: metric.are_units_rows,
            part: match &metric.part {
                Some(part) => fact(part),
                None => field(&FieldPath::word("part")),
            },
        }
    }

    /// Returns whether a record has a row; one that the manifest refuses is named.
    fn is_wanted(
        &self,
        metric: &FormatMetric,
        texts: &dyn Fn(&FieldPath) -> Vec<String>,
        name: &str,
        rows: &mut Collector,
    ) -> bool {
        let is_other = |(field, pattern): &(FieldPath, Pattern)| {
            texts(field).iter().any(|text| !pattern.is_in(text))
        };
        let is_same = |(field, pattern): &(FieldPath, Pattern)| {
            texts(field).iter().any(|text| pattern.is_in(text))
        };
        if metric.only.iter().any(is_other) || metric.except.iter().any(is_same) {
            return false;
        }
        for (field, pattern) in &metric.refuse {
            if let Some(text) = texts(field).iter().find(|text| pattern.is_in(text)) {
                let is = if text.trim().is_empty() { "" } else { " is " };
                rows.leave_out(name, format!("{}{is}{}", field.written, text.trim()));
                return false;
            }
        }
        true
    }

    /// Adds a value, or the values that a text has; a name with `{#}` has a row for each of these.
    fn put(
        &self,
        metric: &FormatMetric,
        field: &dyn Fn(&FieldPath) -> Option<String>,
        text: &str,
        rows: &mut Collector,
    ) {
        let conversion = Conversion {
            factor: metric.factor,
            is_zero_unmeasured: metric.is_zero_unmeasured,
            pick: metric.pick,
            is_mean: metric.is_mean,
        };
        if let Some(remark) = &metric.remark
            && let (text, true) = remark.fill(field)
        {
            rows.leave_out(&self.head(metric, field).name, text);
        }
        let Some(separator) = metric.split else {
            let text = metric.form.plain(text);
            rows.put(&self.head(metric, field), &text, conversion);
            return;
        };
        let parts = text.split(separator).map(str::trim);
        for (number, part) in parts.filter(|part| !part.is_empty()).enumerate() {
            let numbered = |path: &FieldPath| match path.written.as_str() {
                "#" => Some(number.to_string()),
                _ => field(path),
            };
            let head = self.head(metric, &numbered);
            rows.put(&head, &metric.form.plain(part), conversion);
        }
    }

    fn lines(&self, metrics: &[&FormatMetric], rows: &mut Collector) -> Words {
        let mut facts = Words::new();
        let mut context = Words::new();
        let mut begun: BTreeMap<Words, u32> = BTreeMap::new();
        // A metric with `after` waits for its line.
        let waits =
            |metric: &FormatMetric| matches!(&metric.find, FindValue::Line { after: Some(_), .. });
        let mut is_active: Vec<bool> = metrics.iter().map(|metric| !waits(metric)).collect();
        let all: Vec<&str> = lines(&self.file.text).collect();
        let behind = self.find_later(&all);
        for (at, &line) in all.iter().enumerate() {
            if let Some(again) = &self.format.again
                && let Some(groups) = again.groups(line)
            {
                let count = begun.entry(own(&groups)).or_insert(0_u32);
                *count += 1;
                context.remove(RUN);
                if *count > 1 {
                    context.insert(RUN.to_owned(), count.to_string());
                    rows.leave_out(line.trim(), "comes again: what follows is a run of its own");
                }
            }
            for pattern in &self.format.contexts {
                if let Some(groups) = pattern.groups(line) {
                    context.extend(own(&groups));
                }
            }
            for (name, fact) in &self.format.facts {
                if let Fact::Line(pattern) = fact
                    && !facts.contains_key(name)
                    && let Some(value) = pattern.value(line)
                {
                    facts.insert(name.clone(), value.trim().to_owned());
                }
            }
            for (metric, is_active) in metrics.iter().zip(&mut is_active) {
                let FindValue::Line {
                    pattern,
                    after,
                    until,
                } = &metric.find
                else {
                    continue;
                };
                if after.as_ref().is_some_and(|after| after.is_in(line)) {
                    *is_active = true;
                    continue;
                }
                if until.as_ref().is_some_and(|until| until.is_in(line)) {
                    *is_active = false;
                }
                if !*is_active {
                    continue;
                }
                let Some(groups) = pattern.groups(line) else {
                    continue;
                };
                let mut words = context.clone();
                words.extend(own(&groups));
                match behind.get(at) {
                    Some(Some(later)) => words.extend(later.clone()),
                    Some(None) => {
                        rows.leave_out(line.trim(), "no line behind it says what it is");
                        continue;
                    }
                    None => {}
                }
                let Some(value) = words.get("value").cloned() else {
                    continue;
                };
                self.put_words(metric, &words, &value, rows);
            }
        }
        facts
    }

    /// Returns for each line the fields of the next `later` line, if it comes before a context's.
    /// Empty for a format that has none.
    fn find_later(&self, all: &[&str]) -> Vec<Option<Words>> {
        if self.format.later.is_empty() {
            return Vec::new();
        }
        let mut next = None;
        let mut found = Vec::new();
        for line in all.iter().rev() {
            let later = self.format.later.iter().find_map(|one| one.groups(line));
            if let Some(groups) = later {
                next = Some(own(&groups));
            } else if self.format.contexts.iter().any(|one| one.is_in(line)) {
                next = None;
            }
            found.push(next.clone());
        }
        found.reverse();
        found
    }

    /// Adds a value whose fields are words.
    fn put_words(&self, metric: &FormatMetric, words: &Words, value: &str, rows: &mut Collector) {
        let field = |field: &FieldPath| self.field(words, &field.written);
        let texts = |path: &FieldPath| field(path).into_iter().collect();
        let head = self.head(metric, &field);
        let is_of = |failure: &&(Words, String)| {
            let mut groups = failure.0.iter();
            groups.all(|(name, text)| self.field(words, name).as_ref() == Some(text))
        };
        if self.failures.iter().any(|failure| is_of(&failure)) {
            rows.leave_out(&head.name, "a value of a failed run");
        } else if self.is_wanted(metric, &texts, &head.name, rows) {
            self.put(metric, &field, value, rows);
        }
    }

    fn table(&self, metrics: &[&FormatMetric], rows: &mut Collector) -> Words {
        let mut facts = Words::new();
        let (skipped, names) = if self.format.has_headings {
            headings(self.format, &self.file.text).unwrap_or_default()
        } else {
            (0, Vec::new())
        };
        for line in lines(&self.file.text).skip(skipped) {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let cells = cells(line, self.format.separator);
            let mut words = Words::new();
            for (at, cell) in cells.into_iter().enumerate() {
                if let Some(name) = names.get(at) {
                    words.insert(name.clone(), cell.clone());
                }
                words.insert((at + 1).to_string(), cell);
            }
            for (name, fact) in &self.format.facts {
                if let Fact::Fields(template) = fact
                    && !facts.contains_key(name)
                    && let (text, true) = template.fill(&|field| self.field(&words, &field.written))
                {
                    facts.insert(name.clone(), text);
                }
            }
            for metric in metrics {
                if let FindValue::Column(column) = &metric.find
                    && let Some(value) = words.get(column)
                {
                    self.put_words(metric, &words, value, rows);
                }
            }
        }
        facts
    }

    fn tree(&self, tree: &Value, metrics: &[&FormatMetric], rows: &mut Collector) -> Words {
        for metric in metrics {
            let FindValue::Tree { each, values, per } = &metric.find else {
                continue;
            };
            let mut records = vec![Record {
                layers: vec![tree],
                names: Vec::new(),
            }];
            for steps in each {
                records = records
                    .iter()
                    .flat_map(|record| record.below(steps))
                    .collect();
            }
            for record in records {
                let field = |field: &FieldPath| self.tree_texts(&record, field).into_iter().next();
                let head = self.head(metric, &field);
                if !self.is_wanted(
                    metric,
                    &|field| self.tree_texts(&record, field),
                    &head.name,
                    rows,
                ) {
                    continue;
                }
                let mut texts = values.iter().map(|steps| record.values(steps));
                let is_blank =
                    |texts: &Vec<String>| texts.iter().all(|text| text.trim().is_empty());
                let texts = match texts.clone().find(|texts| !is_blank(texts)) {
                    Some(texts) => texts,
                    None if texts.any(|texts| !texts.is_empty()) => {
                        rows.leave_out(&head.name, UNMEASURED);
                        continue;
                    }
                    None => continue,
                };
                match per {
                    Some(steps) => put_quotients(&head, &texts, &record.values(steps), rows),
                    None => texts
                        .iter()
                        .for_each(|text| self.put(metric, &field, text, rows)),
                }
            }
        }
        let top = Record {
            layers: vec![tree],
            names: Vec::new(),
        };
        let fields = |field: &FieldPath| self.tree_texts(&top, field).into_iter().next();
        let mut facts = Words::new();
        for (name, fact) in &self.format.facts {
            if let Fact::Fields(template) = fact
                && let (text, true) = template.fill(&fields)
            {
                facts.insert(name.clone(), text);
            }
        }
        facts
    }

    /// Returns the texts of a field of a record: from the innermost layer that has it.
    fn tree_texts(&self, record: &Record<'_>, field: &FieldPath) -> Vec<String> {
        let Some(steps) = &field.steps else {
            let own = match field.written.as_str() {
                "*" => Some(record.names.join("/")),
                name => self.file.own_field(name),
            };
            return own.into_iter().collect();
        };
        let layers = record.layers.iter().rev();
        let mut found = layers.map(|layer| select(layer, steps));
        match found.find(|values| !values.is_empty()) {
            Some(values) => values
                .into_iter()
                .map(|value| text_of(value).unwrap_or_default())
                .collect(),
            None => self
                .of_name
                .get(&field.written)
                .cloned()
                .into_iter()
                .collect(),
        }
    }
}

/// Adds values divided by numbers of equal position: time by iterations.
fn put_quotients(head: &RowHead, texts: &[String], divisors: &[String], rows: &mut Collector) {
    if texts.len() != divisors.len() {
        let why = format!("{} values, {} divisors", texts.len(), divisors.len());
        rows.leave_out(&head.name, why);
        return;
    }
    for (text, divisor) in texts.iter().zip(divisors) {
        match (text.trim().parse::<f64>(), divisor.trim().parse::<f64>()) {
            (Ok(value), Ok(divisor)) if divisor > 0.0 => {
                rows.put(head, &(value / divisor).to_string(), Conversion::PLAIN);
            }
            _ => rows.leave_out(&head.name, format!("{text} / {divisor} is not a number")),
        }
    }
}

/// Returns the direction that the manifest or a field of the file says, else that of the unit.
fn direction(
    better: Option<&Template>,
    unit: &str,
    field: &dyn Fn(&FieldPath) -> Option<String>,
) -> Option<Direction> {
    let Some(better) = better else {
        return direction_of_unit(unit);
    };
    match better.fill(field).0.as_str() {
        "none" => None,
        word => direction_of_word(word).or_else(|| direction_of_unit(unit)),
    }
}

/// A value of a tree, with those that it is in, the outermost first.
struct Record<'a> {
    layers: Vec<&'a Value>,
    /// The names that paths went through.
    names: Vec<&'a str>,
}

impl<'a> Record<'a> {
    fn below(&self, steps: &[Step]) -> Vec<Self> {
        let inner = self.layers.last().copied().unwrap_or(&Value::Null);
        select_named(inner, steps)
            .into_iter()
            .map(|selected| Record {
                layers: [&self.layers[..], &[selected.value]].concat(),
                names: [&self.names[..], &selected.names].concat(),
            })
            .collect()
    }

    /// Returns the texts of the values at a path of the innermost layer, those of lists one by one.
    fn values(&self, steps: &[Step]) -> Vec<String> {
        let inner = self.layers.last().copied().unwrap_or(&Value::Null);
        let mut texts = Vec::new();
        for value in select(inner, steps) {
            match value {
                Value::Array(list) => {
                    texts.extend(list.iter().map(|value| text_of(value).unwrap_or_default()));
                }
                value => texts.push(text_of(value).unwrap_or_default()),
            }
        }
        texts
    }
}
