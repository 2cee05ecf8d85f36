//! Prints what each of Marvin's kernel configs is worth and what it costs: of the functions that a
//! distribution's kernel executes in Marvin's suites, the share that exists in a kernel of the
//! config; of a year's stable commits, the share whose subsystem is compiled; objects and seconds of
//! the build; instructions of the boot.
//!
//! `configs HOME PACKAGE.deb [CONFIG…]`: a data directory that may have the kernels and runs already,
//! and a kernel package of Debian, for the changelog in it. Builds from nothing take minutes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use model::Share;
use object::{Object, ObjectSymbol};
use store::Store;

/// The kernel of the distribution, and the source of the builds.
const PACKAGE: &str = "deb:6.12";
const SOURCE: &str = "deb-src:6.12";
const CONFIGS: [&str; 3] = ["tiny", "small", "default"];
/// What the exact machine can measure.
const SUITES: [&str; 7] = ["micro", "mm", "sched", "net", "io", "rmap", "subsystems"];
/// Functions that are named for each config, most executed first.
const NAMED: usize = 40;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let home = PathBuf::from(
        arguments
            .next()
            .context("usage: configs HOME PACKAGE.deb [CONFIG…]")?,
    );
    let subjects = arguments
        .next()
        .map(|package| subjects(&package))
        .transpose()?;
    let mut configs: Vec<String> = arguments.collect();
    if configs.is_empty() {
        configs = CONFIGS.map(str::to_owned).to_vec();
    }
    for suite in SUITES {
        marvin(&home, &["run", PACKAGE, "--suite", suite, "--quiet"])?;
    }
    let executed = executed(&home)?;
    let mut out = std::io::stdout();
    writeln!(
        out,
        "functions that {PACKAGE} executes in {}: {}",
        SUITES.join(", "),
        executed.len()
    )?;
    for config in &configs {
        let started = std::time::Instant::now();
        let text = marvin(&home, &["build", SOURCE, "--config", config])?;
        let seconds = started.elapsed().as_secs_f64();
        let folder = built_folder(&home, &text)?;
        // What is built by Marvin boots as the ELF file that it is.
        let there = symbols(&folder.join("image"))?;
        let missing: Vec<(&String, &u64)> = executed
            .iter()
            .filter(|(name, _)| !there.contains(*name))
            .collect();
        let share = 100.0 * (executed.len() - missing.len()) as f64 / executed.len() as f64;
        writeln!(
            out,
            "{config:<8} {share:5.1} % of the functions, {} functions in all, {seconds:.0} s for `marvin build` (a build that is cached takes none)",
            there.len()
        )?;
        let compiled = compiled(&home, &folder)?;
        writeln!(out, "{config:<8} {} files compiled", compiled.len())?;
        if let Some(subjects) = &subjects {
            let reached = subjects
                .iter()
                .filter(|subject| reaches(&compiled, subject))
                .count();
            writeln!(
                out,
                "{config:<8} {:5.1} % of {} stable commits name a subsystem that is compiled",
                100.0 * reached as f64 / subjects.len() as f64,
                subjects.len()
            )?;
        }
        let mut most: Vec<_> = missing;
        most.sort_by_key(|(name, calls)| (std::cmp::Reverse(**calls), (*name).clone()));
        let named: Vec<&str> = most
            .iter()
            .take(NAMED)
            .map(|(name, _)| name.as_str())
            .collect();
        writeln!(out, "{config:<8} not there: {}", named.join(" "))?;
    }
    Ok(())
}

/// Runs this tree's program; fails with what it said.
fn marvin(home: &Path, words: &[&str]) -> anyhow::Result<String> {
    let program = std::env::current_exe()?.with_file_name("marvin");
    let output = Command::new(&program)
        .args(words)
        .env("MARVIN_HOME", home)
        .output()
        .with_context(|| format!("{}: `make build` makes it", program.display()))?;
    if !output.status.success() {
        bail!(
            "marvin {}: {}",
            words.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A symbol's name without what the compiler appended: `.isra.0`, `.cold`.
fn plain(name: &str) -> String {
    name.split(['.', ' ']).next().unwrap_or(name).to_owned()
}

/// Returns the kernel's functions that the stored runs executed, with the instructions.
fn executed(home: &Path) -> anyhow::Result<BTreeMap<String, u64>> {
    let store = Store::open_read_only(home.to_owned())?;
    let mut found = BTreeMap::new();
    for summary in store.runs(usize::MAX)? {
        let run = store.run(&summary.id)?;
        let build = store.build(&run.build)?;
        if build.name.to_string() != PACKAGE {
            continue;
        }
        for result in &run.results {
            let Ok(Some(profile)) = lab::counted_profile(&store, &run.id, &result.workload) else {
                continue;
            };
            let lines = profile
                .lines
                .iter()
                .filter(|line| line.share != Share::User);
            for line in lines {
                *found.entry(plain(&line.symbol)).or_default() += line.instructions;
            }
        }
    }
    Ok(found)
}

/// Returns the directory of the build that `marvin build` names.
fn built_folder(home: &Path, text: &str) -> anyhow::Result<PathBuf> {
    let builds = home.join("builds");
    let path = text
        .split_whitespace()
        .map(Path::new)
        .find_map(|word| word.starts_with(&builds).then(|| word.parent()).flatten());
    path.map(Path::to_owned).with_context(|| {
        format!(
            "`marvin build` names no file of {}: {text}",
            builds.display()
        )
    })
}

/// Returns the functions of an ELF file.
fn symbols(file: &Path) -> anyhow::Result<BTreeSet<String>> {
    let bytes = std::fs::read(file).with_context(|| file.display().to_string())?;
    let elf = object::File::parse(&*bytes)?;
    Ok(elf
        .symbols()
        .filter_map(|symbol| symbol.name().ok().map(plain))
        .collect())
}

/// Returns the source files that a build compiled.
fn compiled(home: &Path, folder: &Path) -> anyhow::Result<BTreeSet<String>> {
    let id = folder
        .file_name()
        .context("a build's directory")?
        .to_string_lossy()
        .into_owned();
    let recipes = home.join("builds/by-recipe");
    for entry in std::fs::read_dir(&recipes)? {
        let path = entry?.path();
        let is_this = path.extension().is_none()
            && std::fs::read_to_string(&path).is_ok_and(|facts| facts.contains(&id));
        if is_this {
            let text = std::fs::read_to_string(path.with_extension("compiled"))?;
            let files = text.split_whitespace().filter(|word| word.ends_with(".c"));
            return Ok(files.map(str::to_owned).collect());
        }
    }
    bail!("no record of what was compiled for {}", folder.display())
}

/// Returns what stable commits are about, as their subjects say before the last colon, from the
/// changelog of a package.
fn subjects(package: &str) -> anyhow::Result<Vec<String>> {
    let script =
        "dpkg-deb --fsys-tarfile \"$0\" | tar -xO --wildcards '*changelog.Debian.gz' | zcat";
    let mut child = Command::new("sh")
        .args(["-c", script, package])
        .stdout(std::process::Stdio::piped())
        .spawn()?;
    let mut text = String::new();
    child
        .stdout
        .take()
        .context("a pipe")?
        .read_to_string(&mut text)?;
    if !child.wait()?.success() {
        bail!("{package}: no changelog");
    }
    // A year of stable updates.
    let mut found = Vec::new();
    let mut years = BTreeSet::new();
    for line in text.lines() {
        if line.starts_with(" -- ") {
            years.extend(line.split_whitespace().rev().nth(2).map(str::to_owned));
            if years.len() > 1 {
                break;
            }
        }
        let Some(subject) = line.strip_prefix("    - ") else {
            continue;
        };
        let subject = match subject
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("] "))
        {
            // Of another architecture than ours: not counted.
            Some((architecture, subject))
                if architecture.contains("amd64") || architecture.contains("x86") =>
            {
                subject
            }
            Some(_) => continue,
            None => subject,
        };
        if let Some((about, _)) = subject.rsplit_once(": ") {
            found.push(about.to_lowercase());
        }
    }
    Ok(found)
}

/// Returns whether a compiled file lies where a subject points: its last word that is the name of a
/// directory or a file, such as `mm/damon/core` or `net: bridge`.
fn reaches(compiled: &BTreeSet<String>, about: &str) -> bool {
    let words: Vec<&str> = about
        .split([':', '/', ',', ' '])
        .filter(|word| !word.is_empty())
        .collect();
    let Some(last) = words.last() else {
        return false;
    };
    compiled.iter().any(|file| {
        let parts: Vec<&str> = file.split(['/', '.']).collect();
        parts.iter().any(|part| part.eq_ignore_ascii_case(last))
    })
}
