//! `marvin man`: writes man pages of marvin, of each command, and of marvin-dump, with the sections
//! of man-pages(7).

use std::path::Path;

use anyhow::Context;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};

use crate::exit::{EXIT_CODES, Exit};

/// The command that is a program of its own, which has its own pages.
const DUMP: &str = "dump";
/// The names of sections in help texts that man-pages(7) calls otherwise.
const RENAMED: [(&str, &str); 1] = [("EXIT CODES", EXIT_STATUS)];
const EXIT_STATUS: &str = "EXIT STATUS";
const EXAMPLES: &str = "EXAMPLES";

/// A word with its meaning: a variable or a file.
type Entry = (&'static str, &'static str);

/// Variables that every command reads.
const VARIABLES: [Entry; 6] = [
    ("MARVIN_HOME", "Data directory, as --home."),
    ("MARVIN_CONFIG", "Configuration file, as --config-file."),
    ("MARVIN_STORE", "Address of a PostgreSQL store, as --store."),
    ("PGPASSWORD", "Password for --store."),
    (
        "XDG_DATA_HOME, HOME",
        "Where the data directory is without MARVIN_HOME: $XDG_DATA_HOME/marvin, else ~/.local/share/marvin.",
    ),
    ("NO_COLOR", "Print no colours, unless --color says so."),
];

/// Variables of commands that fetch, build or boot kernels.
const OF_KERNELS: [Entry; 4] = [
    (
        "MARVIN_QEMU",
        "QEMU to use instead of that of `marvin setup` and that of PATH.",
    ),
    (
        "http_proxy, https_proxy, all_proxy, no_proxy",
        "Proxies for downloads, as http://HOST:PORT or http://USER:PASSWORD@HOST:PORT.",
    ),
    (
        "SSL_CERT_FILE",
        "Certificates to trust instead of those of the host.",
    ),
    (
        "PATH",
        "Where make, the compiler and the programs of a kernel's build are looked for.",
    ),
];

/// Files of every command.
const FILES: [Entry; 3] = [
    (
        "~/.local/share/marvin",
        "The data directory; docs/data-directory.md describes what is in it.",
    ),
    (
        "~/.local/share/marvin/marvin.toml",
        "The configuration; `marvin config init` writes a sample with comments.",
    ),
    (
        "~/.local/share/marvin/marvin.db",
        "The store: builds, runs, the queue and decisions.",
    ),
];

/// Files of commands that fetch, build or boot kernels.
const FILES_OF_KERNELS: [Entry; 4] = [
    (
        "~/.local/share/marvin/builds",
        "Kernels by content; the least recently used go first.",
    ),
    (
        "~/.local/share/marvin/workshop",
        "Work tree, objects and log (objects-KEY/marvin.log) of builds.",
    ),
    (
        "~/.local/share/marvin/snapshots",
        "Booted guests, to restore instead of booting again.",
    ),
    (
        "~/.local/share/marvin/artefacts",
        "Consoles, profiles and memory dumps of runs.",
    ),
];

const FILES_OF_DUMP: [Entry; 2] = [
    (
        "/proc/vmcore",
        "Memory of the crashed kernel (vmcore of kdump).",
    ),
    ("/proc/kcore", "Memory of the running kernel, for `usage`."),
];

/// Pages that belong together.
const RELATED: [&[&str]; 6] = [
    &["compare", "run", "report", "profile", "explain", "monitors"],
    &["build", "kernels", "bisect", "series", "gate", "stabilise"],
    &["runs", "show", "report", "import", "export", "gc"],
    &[
        "watch", "work", "queue", "notify", "history", "alerts", "triage",
    ],
    &[
        "machines", "power", "console", "deploy", "reserve", "extend", "release",
    ],
    &["doctor", "setup", "config"],
];

/// A section of a page: its name, and its lines as they are in the help.
type Section = (String, Vec<String>);

pub(crate) fn man(command: Command, folder: &Path) -> anyhow::Result<Exit> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the directory {}", folder.display()))?;
    for program in [command, marvin_dump::Arguments::command()] {
        let mut program = program.disable_help_subcommand(true);
        program.build();
        write_pages(&program, folder)
            .with_context(|| format!("cannot write man pages into {}", folder.display()))?;
    }
    Ok(Exit::Fine)
}

fn write_pages(command: &Command, folder: &Path) -> std::io::Result<()> {
    let below = command
        .get_subcommands()
        .filter(|below| !below.is_hide_set() && below.get_name() != DUMP);
    for below in below {
        write_pages(below, folder)?;
    }
    let file = folder.join(format!("{}.1", page_name(command)));
    std::fs::write(file, page(command)?)
}

fn page_name(command: &Command) -> String {
    command
        .get_display_name()
        .unwrap_or(command.get_name())
        .to_owned()
}

/// Returns the page of a command.
fn page(command: &Command) -> std::io::Result<Vec<u8>> {
    let man = Man::new(command.clone());
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    synopsis(command).to_writer(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    let is_dump = page_name(command).starts_with("marvin-dump");
    let mut sections = help_sections(command);
    if !sections.iter().any(|(name, _)| name == EXIT_STATUS) {
        let codes = if is_dump {
            marvin_dump::EXIT_CODES
        } else {
            EXIT_CODES
        };
        sections.extend(split_sections(codes));
    }
    // man-pages(7) has examples behind all others.
    let (last, first): (Vec<Section>, Vec<Section>) =
        sections.into_iter().partition(|(name, _)| name == EXAMPLES);
    for section in &first {
        as_it_is(section).to_writer(&mut text)?;
    }
    let with_kernels = takes_kernels(command);
    let (variables, files) = match (is_dump, with_kernels) {
        (true, _) => (Vec::new(), FILES_OF_DUMP.to_vec()),
        (false, true) => (
            [&VARIABLES[..], &OF_KERNELS].concat(),
            [&FILES[..], &FILES_OF_KERNELS].concat(),
        ),
        (false, false) => (VARIABLES.to_vec(), FILES.to_vec()),
    };
    entries("ENVIRONMENT", &variables).to_writer(&mut text)?;
    entries("FILES", &files).to_writer(&mut text)?;
    for section in &last {
        as_it_is(section).to_writer(&mut text)?;
    }
    see_also(command, is_dump).to_writer(&mut text)?;
    Ok(text)
}

/// Returns the section with the usage; all options are below.
fn synopsis(command: &Command) -> Roff {
    let usage = command.clone().render_usage().to_string();
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    roff.control("nf", []);
    for line in usage.lines() {
        let line = line.trim().trim_start_matches("Usage:").trim_start();
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
    roff
}

/// Returns the sections of the text below the options.
fn help_sections(command: &Command) -> Vec<Section> {
    let help = command.get_after_long_help().or(command.get_after_help());
    help.map_or_else(Vec::new, |help| split_sections(&help.to_string()))
}

/// Splits a text at its headings: lines that begin at the margin and end with a colon.
fn split_sections(text: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for line in text.lines() {
        let heading = line
            .split_once(':')
            .filter(|(name, rest)| is_heading(name, rest));
        if let Some((name, rest)) = heading {
            let name = name.to_uppercase();
            let renamed = RENAMED.iter().find(|(ours, _)| *ours == name);
            let name = renamed.map_or(name.clone(), |(_, theirs)| (*theirs).to_owned());
            let lines = Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty());
            sections.push((name, lines.into_iter().collect()));
        } else if let Some((_, lines)) = sections.last_mut() {
            lines.push(line.to_owned());
        } else {
            sections.push(("NOTES".to_owned(), vec![line.to_owned()]));
        }
    }
    for (_, lines) in &mut sections {
        while lines.last().is_some_and(|line| line.trim().is_empty()) {
            lines.pop();
        }
    }
    sections
}

fn is_heading(name: &str, rest: &str) -> bool {
    let is_exit = name == "Exit codes";
    let is_alone = rest.trim().is_empty() && name.split(' ').count() <= 2;
    name.starts_with(char::is_uppercase) && (is_exit || is_alone)
}

/// Returns a section whose lines stay as they are.
fn as_it_is((name, lines): &Section) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", [name.as_str()]);
    roff.control("nf", []);
    for line in lines {
        roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
    }
    roff.control("fi", []);
    roff
}

fn entries(name: &str, entries: &[Entry]) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", [name]);
    if entries.is_empty() {
        roff.text([roman("None.")]);
    }
    for (word, meaning) in entries {
        roff.control("TP", []);
        roff.text([bold(*word)]);
        roff.text([roman(*meaning)]);
    }
    roff
}

/// Returns whether a command fetches, builds or boots kernels.
fn takes_kernels(command: &Command) -> bool {
    let by_option = command.get_arguments().any(|argument| {
        ["kernel", "kernels", "tree", "jobs"].contains(&argument.get_id().as_str())
    });
    let by_name = ["marvin", "watch", "work", "doctor", "setup", "deploy"];
    by_option || by_name.contains(&command.get_name())
}

fn see_also(command: &Command, is_dump: bool) -> Roff {
    let own = page_name(command);
    let mut pages: Vec<String> = vec!["marvin(1)".to_owned()];
    if is_dump {
        pages.extend(["marvin-dump(1)", "makedumpfile(8)", "crash(8)"].map(str::to_owned));
    } else {
        let name = own.strip_prefix("marvin-").unwrap_or(&own);
        let first = name.split('-').next().unwrap_or(name);
        let mut names: Vec<&str> = RELATED
            .iter()
            .filter(|group| group.contains(&first))
            .flat_map(|group| group.iter().copied())
            .collect();
        names.sort_unstable();
        names.dedup();
        pages.extend(names.iter().map(|name| format!("marvin-{name}(1)")));
        if own == "marvin" {
            pages.push("marvin-dump(1)".to_owned());
        }
    }
    pages.retain(|page| *page != format!("{own}(1)"));
    let mut roff = Roff::new();
    roff.control("SH", ["SEE ALSO"]);
    let words: Vec<Inline> = vec![roman(pages.join(", "))];
    roff.text(words);
    roff.control("PP", []);
    if is_dump {
        roff.text([roman("`marvin dump` is the same program.")]);
    }
    roff.text([roman(
        "The documents are in share/doc/marvin, or in docs/ of the source.",
    )]);
    roff
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::{page, split_sections};

    #[test]
    fn help_is_split_at_headings() {
        let text = "A note.\nMore.\n\nExamples:\n  marvin gc\n\nExit codes: 1 if worse.";
        let sections: Vec<String> = split_sections(text)
            .iter()
            .map(|(name, lines)| format!("{name}: {}", lines.join("|")))
            .collect();
        assert_eq!(
            sections,
            [
                "NOTES: A note.|More.",
                "EXAMPLES:   marvin gc",
                "EXIT STATUS: 1 if worse."
            ]
        );
    }

    #[test]
    fn page_of_marvin_dump_has_its_options() {
        let mut command = marvin_dump::Arguments::command();
        command.build();
        let text = String::from_utf8(page(&command).unwrap()).unwrap();
        let missing: Vec<String> = command
            .get_arguments()
            .filter(|argument| !argument.is_hide_set())
            .filter_map(|argument| Some(argument.get_long()?.replace('-', "\\-")))
            .filter(|long| !text.contains(&format!("\\-\\-{long}")))
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
