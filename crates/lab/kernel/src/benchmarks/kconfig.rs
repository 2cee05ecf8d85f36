//! The options of a source's Kconfig files, as far as one needs them to switch an option on: kind,
//! prompt, conditions, `select` and `default` (Documentation/kbuild/kconfig-language.rst).
//!
//! Pure: the caller reads the files. What a macro computes (`$(cc-option,…)`) counts as given.

use std::collections::BTreeMap;
use std::path::Path;

use super::expression::Expression;
use super::source_text::SourceText;
use crate::KernelError;

/// Most levels of files that source others.
const DEPTH_MAX: usize = 32;
/// The top of all Kconfig files.
const TOP: &str = "Kconfig";
/// The directory of Marvin's architecture below arch/.
const ARCHITECTURE: &str = "x86";

/// An option.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Symbol {
    pub(crate) is_tristate: bool,
    /// The text by which a user chooses it; `None` if only others switch it on.
    pub(crate) prompt: Option<String>,
    /// What it depends on, with the menus and conditions around it; each entry of a symbol that is
    /// declared several times is one way.
    pub(crate) depends: Vec<Vec<Expression>>,
    /// Its defaults, each with its condition.
    pub(crate) defaults: Vec<(Expression, Option<Expression>)>,
}

/// The options of a source.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kconfig {
    pub(crate) symbols: BTreeMap<String, Symbol>,
    /// The options that switch an option on, each with its condition.
    pub(crate) selected_by: BTreeMap<String, Vec<(String, Option<Expression>)>>,
}

/// What encloses entries.
enum Block {
    If(Expression),
    /// A menu or a choice, with what it depends on.
    Menu(Vec<Expression>),
}

/// What lines of attributes belong to.
#[derive(Clone, PartialEq)]
enum Entry {
    None,
    Symbol(String),
    Menu,
    Comment,
}

impl Kconfig {
    /// Reads the options of a revision of a repository.
    ///
    /// # Errors
    /// If git fails.
    pub(crate) fn of_revision(folder: &Path, revision: &str) -> Result<Self, KernelError> {
        let source = SourceText::of_revision(folder, revision)?;
        Ok(Self::read(&source.contents(&["*Kconfig*"])?))
    }

    /// Reads the options of all files that the top sources for x86.
    pub(crate) fn read(files: &BTreeMap<String, String>) -> Self {
        let mut found = Self::default();
        found.read_file(TOP, files, &mut Vec::new(), DEPTH_MAX);
        found
    }

    fn read_file(
        &mut self,
        path: &str,
        files: &BTreeMap<String, String>,
        blocks: &mut Vec<Block>,
        depth: usize,
    ) {
        let (Some(text), Some(left)) = (files.get(path), depth.checked_sub(1)) else {
            return;
        };
        let enclosing = blocks.len();
        let joined = text.replace("\\\n", " ");
        let mut entry = Entry::None;
        // The column of the line `help`, while its text goes on.
        let mut help: Option<usize> = None;
        for line in joined.lines() {
            let trimmed = line.trim();
            let column = indentation(line);
            if let Some(of_help) = help {
                if trimmed.is_empty() || column > of_help {
                    continue;
                }
                help = None;
            }
            if trimmed.is_empty() || trimmed.starts_with('#') {
                continue;
            }
            let (word, rest) = split_word(trimmed);
            match word {
                "help" | "---help---" => help = Some(column),
                "source" => {
                    let sourced = unquote(rest).replace("$(SRCARCH)", ARCHITECTURE);
                    self.read_file(&sourced, files, blocks, left);
                    entry = Entry::None;
                }
                "config" | "menuconfig" => {
                    entry = Entry::Symbol(rest.to_owned());
                    let ways = &mut self.symbols.entry(rest.to_owned()).or_default().depends;
                    ways.push(conditions(blocks));
                }
                "menu" | "choice" => {
                    blocks.push(Block::Menu(Vec::new()));
                    entry = Entry::Menu;
                }
                "if" => {
                    blocks.push(Block::If(Expression::parse(rest)));
                    entry = Entry::None;
                }
                "endif" | "endmenu" | "endchoice" => {
                    if blocks.len() > enclosing {
                        blocks.pop();
                    }
                    entry = Entry::None;
                }
                "comment" | "mainmenu" => entry = Entry::Comment,
                _ => self.read_attribute(&entry, word, rest, blocks),
            }
        }
        blocks.truncate(enclosing);
    }

    fn read_attribute(&mut self, entry: &Entry, word: &str, rest: &str, blocks: &mut [Block]) {
        if *entry == Entry::Menu {
            // A choice has a prompt of its own, and `visible if` hides only prompts.
            if let (Some(condition), Some(Block::Menu(needs))) =
                (depends_on(word, rest), blocks.last_mut())
            {
                needs.push(condition);
            }
            return;
        }
        let Entry::Symbol(name) = entry else { return };
        let symbol = self.symbols.entry(name.clone()).or_default();
        if let Some(condition) = depends_on(word, rest) {
            if let Some(way) = symbol.depends.last_mut() {
                way.push(condition);
            }
            return;
        }
        match word {
            "bool" | "tristate" | "int" | "hex" | "string" => {
                symbol.is_tristate |= word == "tristate";
                if !rest.is_empty() {
                    symbol.prompt = Some(unquote(rest).to_owned());
                }
            }
            "prompt" => symbol.prompt = Some(unquote(rest).to_owned()),
            "def_bool" | "def_tristate" | "default" => {
                symbol.is_tristate |= word == "def_tristate";
                let (value, condition) = split_condition(rest);
                symbol.defaults.push((Expression::parse(value), condition));
            }
            "select" | "imply" => {
                let (selected, condition) = split_condition(rest);
                // What is implied may be switched off by others, and is on here.
                self.selected_by
                    .entry(selected.trim().to_owned())
                    .or_default()
                    .push((name.clone(), condition));
            }
            _ => {}
        }
    }
}

/// Returns what a line `depends on …` says.
fn depends_on(word: &str, rest: &str) -> Option<Expression> {
    let condition = rest.strip_prefix("on")?.trim();
    (word == "depends").then(|| Expression::parse(condition))
}

fn conditions(blocks: &[Block]) -> Vec<Expression> {
    blocks
        .iter()
        .flat_map(|block| match block {
            Block::If(condition) => vec![condition.clone()],
            Block::Menu(needs) => needs.clone(),
        })
        .collect()
}

/// Splits `VALUE if CONDITION`.
fn split_condition(text: &str) -> (&str, Option<Expression>) {
    match text.split_once(" if ") {
        Some((value, condition)) => (value, Some(Expression::parse(condition))),
        None => (text, None),
    }
}

fn split_word(line: &str) -> (&str, &str) {
    match line.split_once([' ', '\t']) {
        Some((word, rest)) => (word, rest.trim()),
        None => (line, ""),
    }
}

/// Returns the text in the quotes at the beginning of a text; a text without them as it is.
fn unquote(text: &str) -> &str {
    let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
        return text;
    };
    text[1..].split(quote).next().unwrap_or(text)
}

/// Returns the column at which a line begins; a tab goes to the next multiple of eight.
fn indentation(line: &str) -> usize {
    line.chars()
        .take_while(|c| c.is_whitespace())
        .fold(0, |column, c| {
            if c == '\t' {
                column / 8 * 8 + 8
            } else {
                column + 1
            }
        })
}
