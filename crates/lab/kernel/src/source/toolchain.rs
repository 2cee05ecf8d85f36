//! The programs that build a kernel, as the user's options for make choose them
//! (`Documentation/kbuild/llvm.rst`, `kbuild.rst` of the kernel).
//!
//! Without options: gcc and ld of PATH. `make` runs them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use model::MakeArgument;

use super::SourceError;
use super::config::Configuration;
use super::needs::{Compiler, MissingNeeds, missing_before};
use super::program::Program;
use crate::KernelError;
use crate::folder::sha256_of_file;

/// The programs of a whole LLVM toolchain, and the variables that name others in their place
/// (Makefile: LLVM).
const LLVM_TOOLS: [(&str, &[&str]); 8] = [
    ("clang", &["CC", "HOSTCC"]),
    ("ld.lld", &["LD"]),
    ("llvm-ar", &["AR"]),
    ("llvm-nm", &["NM"]),
    ("llvm-strip", &["STRIP"]),
    ("llvm-objcopy", &["OBJCOPY"]),
    ("llvm-objdump", &["OBJDUMP"]),
    ("llvm-readelf", &["READELF"]),
];
/// The architecture of Marvin's machines, as make names it.
pub(crate) const X86: &str = "x86";
/// Variables that name programs, which make finds.
const PROGRAM_VARIABLES: [&str; 12] = [
    "CC", "LD", "AR", "NM", "STRIP", "OBJCOPY", "OBJDUMP", "READELF", "HOSTCC", "HOSTCXX",
    "HOSTLD", "HOSTAR",
];
/// Directories of a toolchain beside that of its programs.
const BESIDE: [&str; 6] = ["lib", "lib64", "libexec", "include", "share", "sysroot"];
/// How long a compiler may take to print its version (s).
const VERSION_S: u64 = 60;

/// The user's options for make.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MakeOptions {
    /// The compiler by name or path: gcc-12, clang-19.
    pub cc: Option<String>,
    /// Variables; the last of one name counts.
    pub arguments: Vec<MakeArgument>,
}

impl MakeOptions {
    /// Returns whether the user chose nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cc.is_none() && self.arguments.is_empty()
    }
}

/// A toolchain that this host has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Toolchain {
    /// Compiler, linker and make's variables, for people.
    pub(crate) description: String,
    /// What else identifies it: the hashes of the compiler's program and of files that variables
    /// name.
    hash: Option<String>,
    /// The compiler that make runs.
    cc: String,
    /// make's variables, but for CC and ARCH.
    variables: BTreeMap<String, String>,
    pub(crate) architecture: String,
    /// Directories and files outside the system's that it needs.
    pub(crate) folders: Vec<PathBuf>,
}

impl Toolchain {
    /// Finds the programs that the options choose.
    ///
    /// # Errors
    /// If one is missing, or no compiler.
    pub(crate) fn find(
        options: &MakeOptions,
        configuration: &Configuration,
    ) -> Result<Self, KernelError> {
        let Some(variables) = effective(options)? else {
            check_needs(Compiler::Usual, configuration)?;
            let description = format!("{}, {}", version("gcc")?, version("ld")?);
            return Ok(Self {
                description,
                hash: None,
                cc: "gcc".to_owned(),
                variables: BTreeMap::new(),
                architecture: X86.to_owned(),
                folders: Vec::new(),
            });
        };
        check_needs(Compiler::Named, configuration)?;
        Self::of_variables(variables)
    }

    fn of_variables(mut variables: BTreeMap<String, String>) -> Result<Self, KernelError> {
        let words: Vec<MakeArgument> = variables
            .iter()
            .filter_map(|(name, value)| format!("{name}={value}").parse().ok())
            .collect();
        let words = MakeArgument::join(&words);
        let llvm = variables
            .get("LLVM")
            .filter(|value| !value.is_empty())
            .cloned();
        if let Some(value) = &llvm {
            check_llvm(value, &variables)?;
        }
        let cross = variables.get("CROSS_COMPILE").cloned().unwrap_or_default();
        let cc = variables.remove("CC").unwrap_or_else(|| match &llvm {
            Some(value) => llvm_program(value, "clang"),
            None => format!("{cross}gcc"),
        });
        let ld = variables.get("LD").cloned().unwrap_or_else(|| match &llvm {
            Some(value) => llvm_program(value, "ld.lld"),
            None => format!("{cross}ld"),
        });
        let architecture = match variables.remove("ARCH").as_deref() {
            None | Some("" | "x86" | "x86_64") => X86.to_owned(),
            Some(other) => other.to_owned(),
        };
        let (cc_file, compiler) = compiler_version(&cc)?;
        if llvm.is_none() && !compiler.contains("clang") {
            check_target(&cc, &cc_file, &architecture)?;
        }
        let ld_file = find_program(&ld).ok_or_else(|| SourceError::NoTools {
            toolchain: words.clone(),
            missing: ld.clone(),
            fix: "name the linker with --make-args LD=…".to_owned(),
        })?;
        let linker = version(&ld_file.to_string_lossy())?;
        let mut hash = sha256_of_file(&cc_file)?;
        // Two compilers may have one version line and differ in their content.
        let own = if cc.contains('/') {
            format!(" [{}]", &hash[..12])
        } else {
            String::new()
        };
        let mut folders: Vec<PathBuf> = [&cc_file, &ld_file]
            .into_iter()
            .flat_map(|file| folders_of(file))
            .collect();
        // The directories that the user named.
        let named = [llvm.as_deref().unwrap_or_default(), cross.as_str()];
        folders.extend(named.iter().filter_map(|prefix| {
            let folder = Path::new(prefix.rsplit_once('/')?.0);
            (folder.is_absolute() && folder.is_dir()).then(|| folder.to_owned())
        }));
        // A profile for the compiler is a part of the build.
        for (name, value) in &variables {
            let file = Path::new(value);
            if !PROGRAM_VARIABLES.contains(&name.as_str()) && file.is_absolute() && file.is_file() {
                hash.extend(["\n", name, " ", &sha256_of_file(file)?]);
                folders.push(file.to_owned());
            }
        }
        Ok(Self {
            description: format!("{compiler}{own}, {linker}, make {words}"),
            hash: Some(hash),
            cc,
            variables,
            architecture,
            folders,
        })
    }

    /// Returns a text that identifies it.
    pub(crate) fn identity(&self) -> String {
        match &self.hash {
            None => self.description.clone(),
            Some(hash) => format!("{}\n{hash}", self.description),
        }
    }

    /// Returns the compiler of the programs that the build itself runs, as make chooses it
    /// (Makefile: HOSTCC).
    pub(crate) fn host_compiler(&self) -> String {
        let llvm = self.variables.get("LLVM").filter(|value| !value.is_empty());
        match (self.variables.get("HOSTCC"), llvm) {
            (Some(named), _) => named.clone(),
            (None, Some(value)) => llvm_program(value, "clang"),
            (None, None) => "gcc".to_owned(),
        }
    }

    /// Returns the directory of its architecture in the source, below arch.
    pub(crate) fn source_architecture(&self) -> &str {
        match self.architecture.as_str() {
            "i386" => X86,
            other => other,
        }
    }

    /// Returns make's arguments but for the compiler's cache.
    pub(crate) fn arguments(&self, ccache: bool) -> Vec<String> {
        let variables = self
            .variables
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let mut arguments: Vec<String> = std::iter::once(format!("ARCH={}", self.architecture))
            .chain(variables)
            .collect();
        let is_cached = self.cc.split(' ').any(|word| word.ends_with("ccache"));
        if ccache && !is_cached {
            arguments.push(format!("CC=ccache {}", self.cc));
        } else if self.hash.is_some() {
            arguments.push(format!("CC={}", self.cc));
        }
        arguments
    }
}

/// Returns the variables that the options mean; `None` if there are none.
fn effective(options: &MakeOptions) -> Result<Option<BTreeMap<String, String>>, KernelError> {
    if options.is_empty() {
        return Ok(None);
    }
    let mut variables = BTreeMap::new();
    for argument in &options.arguments {
        let value = argument.value();
        // make runs in another directory.
        let is_file = value.contains(['/', '.']) && Path::new(value).is_file();
        let value = match is_file {
            true => std::path::absolute(value)
                .map_err(KernelError::io(Path::new(value)))?
                .to_string_lossy()
                .into_owned(),
            false => value.to_owned(),
        };
        variables.insert(argument.name().to_owned(), value);
    }
    if let Some(cc) = &options.cc {
        let (name, value) = variable_of_compiler(cc)?;
        if name == "LLVM" {
            variables.remove("CC");
        } else {
            variables.remove("LLVM");
        }
        variables.insert(name, value);
    }
    Ok(Some(variables))
}

/// Returns the variable of make that chooses a compiler: LLVM for a clang with all of its tools,
/// else CC.
fn variable_of_compiler(cc: &str) -> Result<(String, String), KernelError> {
    let refuse = |why: String| SourceError::Compiler {
        name: model::sanitize_line(cc),
        why,
    };
    let checked: Result<MakeArgument, _> = format!("CC={cc}").parse();
    if let Err(error) = checked {
        return Err(refuse(error.to_string()).into());
    }
    if cc.is_empty() || cc.starts_with('-') || cc.contains(' ') {
        let why = "it is not one program: name one, such as gcc-12, clang-19 or /opt/gcc/bin/gcc";
        return Err(refuse(why.to_owned()).into());
    }
    let cc = match cc.contains('/') {
        true => std::path::absolute(cc)
            .map_err(KernelError::io(Path::new(cc)))?
            .to_string_lossy()
            .into_owned(),
        false => cc.to_owned(),
    };
    let (_, version) = compiler_version(&cc)?;
    let (folder, program) = match cc.rsplit_once('/') {
        Some((folder, program)) => (format!("{folder}/"), program),
        None => (String::new(), cc.as_str()),
    };
    let llvm = match (folder.as_str(), program.strip_prefix("clang")) {
        ("", Some("")) => Some("1".to_owned()),
        ("", Some(suffix)) if suffix.starts_with('-') => Some(suffix.to_owned()),
        // make knows a directory or a suffix, not both.
        (folder, Some("")) => Some(folder.to_owned()),
        _ => None,
    };
    let whole = llvm.filter(|value| {
        let is_clang = version.contains("clang");
        is_clang && missing_tools(value, &BTreeMap::new()).is_empty()
    });
    Ok(match whole {
        Some(value) => ("LLVM".to_owned(), value),
        None => ("CC".to_owned(), cc),
    })
}

/// Returns what make calls a program of LLVM: LLVM is a suffix, a directory, or anything else.
fn llvm_program(llvm: &str, program: &str) -> String {
    if llvm.starts_with('-') {
        format!("{program}{llvm}")
    } else if llvm.ends_with('/') {
        format!("{llvm}{program}")
    } else {
        program.to_owned()
    }
}

/// Returns the programs of a whole LLVM toolchain that this host lacks and no variable replaces.
fn missing_tools(llvm: &str, named: &BTreeMap<String, String>) -> Vec<String> {
    LLVM_TOOLS
        .iter()
        .filter(|(_, variables)| !variables.iter().all(|name| named.contains_key(*name)))
        .map(|(program, _)| llvm_program(llvm, program))
        .filter(|program| find_program(program).is_none())
        .collect()
}

fn check_llvm(llvm: &str, named: &BTreeMap<String, String>) -> Result<(), SourceError> {
    let missing = missing_tools(llvm, named);
    if missing.is_empty() {
        return Ok(());
    }
    let fix = if llvm.ends_with('/') {
        "name the directory of a whole LLVM toolchain".to_owned()
    } else {
        let suffix = if llvm.starts_with('-') { llvm } else { "" };
        format!("run `sudo apt-get install clang{suffix} lld{suffix} llvm{suffix}`")
    };
    Err(SourceError::NoTools {
        toolchain: format!("LLVM={llvm}"),
        missing: missing.join(", "),
        fix,
    })
}

/// Returns the program of a compiler, and the first line of its version.
fn compiler_version(cc: &str) -> Result<(PathBuf, String), KernelError> {
    // `ccache gcc-12` runs the last word.
    let name = cc.split(' ').rfind(|word| !word.is_empty()).unwrap_or(cc);
    let file = find_program(name).ok_or_else(|| SourceError::UnknownCompiler {
        name: name.to_owned(),
        instead: other_compilers(name),
    })?;
    let refuse = |why: String| SourceError::Compiler {
        name: name.to_owned(),
        why,
    };
    let ended = Program::new(&file, Path::new("/"))
        .args(["--version"])
        .deadline_s(VERSION_S)
        .end()?;
    let text = ended.text();
    let line = model::sanitize_line(text.lines().next().unwrap_or_default());
    let is_compiler = ["gcc", "clang", "Free Software Foundation"]
        .iter()
        .any(|word| text.contains(word));
    if ended.code != Some(0) || line.is_empty() || !is_compiler {
        return Err(refuse("`--version` names neither gcc nor clang".to_owned()).into());
    }
    Ok((file, line))
}

/// Checks that gcc compiles for the architecture of the build: clang compiles for all.
fn check_target(cc: &str, file: &Path, architecture: &str) -> Result<(), KernelError> {
    let ended = Program::new(file, Path::new("/"))
        .args(["-dumpmachine"])
        .deadline_s(VERSION_S)
        .end()?;
    let target = model::sanitize_line(ended.text().trim());
    let own = target.split('-').next().unwrap_or_default();
    let fits = match (architecture, own) {
        (X86 | "i386", "x86_64" | "i386" | "i486" | "i586" | "i686") => true,
        (X86 | "i386", _) => false,
        ("arm64", own) => own == "aarch64",
        // Other names differ, and make checks them.
        (_, own) => own != "x86_64",
    };
    if fits && ended.code == Some(0) {
        return Ok(());
    }
    let why = if target.is_empty() {
        "`-dumpmachine` says nothing: it is no C compiler".to_owned()
    } else if architecture == X86 {
        format!("it compiles for {target} and not for x86-64")
    } else {
        format!(
            "it compiles for {target} and not for {architecture}: name another one with --make-args CROSS_COMPILE=PREFIX-"
        )
    };
    Err(SourceError::Compiler {
        name: cc.to_owned(),
        why,
    }
    .into())
}

/// Returns an executable file of PATH, or at a path.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let is_program = |file: &Path| {
        fs::metadata(file)
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|file| is_program(file));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| is_program(file))
}

/// Says which compilers this host has, and which package may have this one.
fn other_compilers(name: &str) -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_compiler = |program: &str| {
        ["gcc", "clang"].iter().any(|kind| {
            program.strip_prefix(kind).is_some_and(|rest| {
                rest.strip_prefix('-').map_or(rest.is_empty(), |version| {
                    version.bytes().all(|b| b.is_ascii_digit() || b == b'.')
                })
            })
        })
    };
    let mut found: Vec<String> = std::env::split_paths(&path)
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|program| is_compiler(program))
        .collect();
    found.sort();
    found.dedup();
    let has = match found.as_slice() {
        [] => "this host has none".to_owned(),
        found => format!("this host has {}", found.join(", ")),
    };
    if is_compiler(name) {
        format!("{has}; a distribution may have it (`sudo apt-get install {name}`)")
    } else {
        has
    }
}

/// Returns what a program outside the system's needs: its directory and those of its toolchain, if it
/// is in one, else the program alone.
fn folders_of(program: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let real = fs::canonicalize(program).unwrap_or_else(|_| program.to_owned());
    for file in [program, &real] {
        let Some(folder) = file.parent() else {
            continue;
        };
        let Some(top) = folder.parent().filter(|_| folder.ends_with("bin")) else {
            // Its directory may be a home with secrets.
            folders.push(file.to_owned());
            continue;
        };
        folders.push(folder.to_owned());
        for entry in fs::read_dir(top).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            // `x86_64-linux-gnu` has the assembler of a gcc that was built with it.
            let is_target = name.contains("-linux-") || name.ends_with("-linux");
            if BESIDE.contains(&name.as_str()) || is_target {
                folders.push(entry.path());
            }
        }
    }
    folders.sort();
    folders.dedup();
    // The walls show the system's programs.
    folders.retain(|folder| !folder.starts_with("/usr"));
    folders
}

/// Returns the programs that PATH does not have.
pub(crate) fn missing_programs<'a>(programs: &[&'a str]) -> Vec<&'a str> {
    programs
        .iter()
        .copied()
        .filter(|program| find_program(program).is_none())
        .collect()
}

/// Errors if this host lacks programs of every build.
fn check_needs(compiler: Compiler, configuration: &Configuration) -> Result<(), KernelError> {
    let requests = |option: &str| configuration.requests(&format!("CONFIG_{option}"));
    match missing_before(compiler, requests) {
        Some(MissingNeeds { what, install }) => Err(SourceError::Needs { what, install }.into()),
        None => Ok(()),
    }
}

fn version(program: &str) -> Result<String, KernelError> {
    let text = Program::new(program, Path::new("/"))
        .args(["--version"])
        .run()?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use super::{Toolchain, folders_of, llvm_program};

    #[test]
    fn compiler_cache_precedes_the_compiler() {
        let usual = Toolchain {
            description: String::new(),
            hash: None,
            cc: "gcc".to_owned(),
            variables: BTreeMap::new(),
            architecture: "x86".to_owned(),
            folders: Vec::new(),
        };
        assert_eq!(usual.arguments(true), ["ARCH=x86", "CC=ccache gcc"]);
        assert_eq!(usual.arguments(false), ["ARCH=x86"]);
        let cached = Toolchain {
            hash: Some("1f".to_owned()),
            cc: "/opt/ccache gcc-12".to_owned(),
            ..usual
        };
        assert_eq!(
            cached.arguments(true),
            ["ARCH=x86", "CC=/opt/ccache gcc-12"]
        );
    }

    #[test]
    fn llvm_programs_have_suffix_or_directory() {
        let names = ["1", "0", "-14", "/opt/llvm/"].map(|llvm| llvm_program(llvm, "clang"));
        assert_eq!(names, ["clang", "clang", "clang-14", "/opt/llvm/clang"]);
    }

    #[test]
    fn toolchain_shows_no_home_to_a_build() {
        let home = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(home.path()).unwrap();
        for folder in ["gcc/bin", "gcc/libexec", "gcc/x86_64-linux", "gcc/secret"] {
            fs::create_dir_all(home.join(folder)).unwrap();
        }
        for file in ["gcc/bin/gcc", "gcc-own"] {
            fs::write(home.join(file), "").unwrap();
        }
        assert_eq!(folders_of(&home.join("gcc-own")), [home.join("gcc-own")]);
        let whole = ["gcc/bin", "gcc/libexec", "gcc/x86_64-linux"].map(|folder| home.join(folder));
        assert_eq!(folders_of(&home.join("gcc/bin/gcc")), whole);
        assert!(folders_of("/usr/bin/env".as_ref()).is_empty());
    }
}
