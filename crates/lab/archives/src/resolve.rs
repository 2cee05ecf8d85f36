//! Dependencies of packages, as if none were installed: for each the first alternative that a list
//! has, in its newest version; without recommended packages.
//!
//! Not a solver of conflicts: the files are taken from an unpacked directory, where two packages
//! may stand beside each other that cannot be configured together.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use crate::debian::Stanzas;
use crate::release::is_sha256;
use crate::version::debian_version;
use crate::{Package, field};

/// A needed package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needed {
    pub version: String,
    /// The file as apt names it: with the epoch, and a colon as `%3a`.
    pub file: String,
    pub package: Package,
}

impl fmt::Display for Needed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Package {
            package,
            url,
            bytes,
            sha256,
        } = &self.package;
        let Self { version, file, .. } = self;
        write!(f, "{package} {version} {file} {url} {bytes} {sha256}")
    }
}

impl Needed {
    /// Reads what `Display` writes.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let package = words.next()?.to_owned();
        let version = words.next()?.to_owned();
        let file = words.next()?.to_owned();
        Some(Self {
            version,
            file,
            package: Package {
                package,
                url: words.next()?.to_owned(),
                bytes: words.next()?.parse().ok()?,
                sha256: words.next().filter(|hash| is_sha256(hash))?.to_owned(),
            },
        })
    }
}

/// A package that a list has.
struct Listed<'a> {
    archive: &'a str,
    stanza: &'a str,
    name: &'a str,
    version: &'a str,
}

/// All packages of some lists.
struct Lists<'a> {
    /// The newest of each name.
    packages: HashMap<&'a str, Listed<'a>>,
    /// Names that packages stand in for, with those packages.
    provided: BTreeMap<&'a str, Vec<&'a str>>,
}

/// A dependency, with the versions that do.
struct Dependency<'a> {
    name: &'a str,
    relation: Option<(&'a str, &'a str)>,
}

/// Returns packages with their dependencies in the order of their files, or the names that no list
/// has.
pub(crate) fn closure(lists: &[Stanzas], packages: &[String]) -> Result<Vec<Needed>, Vec<String>> {
    let lists = Lists::read(lists);
    let mut needed: BTreeMap<&str, Needed> = BTreeMap::new();
    let mut open: Vec<&str> = packages.iter().map(String::as_str).collect();
    let mut missing = Vec::new();
    while let Some(name) = open.pop() {
        if needed.contains_key(name) {
            continue;
        }
        let Some(listed) = lists.packages.get(name) else {
            missing.push(name.to_owned());
            continue;
        };
        match listed.needed() {
            Some(one) => drop(needed.insert(listed.name, one)),
            None => missing.push(name.to_owned()),
        }
        for group in ["Pre-Depends", "Depends"]
            .iter()
            .filter_map(|kind| field(listed.stanza, kind))
            .flat_map(|groups| groups.split(','))
        {
            let alternatives: Vec<Dependency<'_>> = group.split('|').map(dependency).collect();
            let is_met = alternatives
                .iter()
                .any(|one| needed.contains_key(one.name) || open.contains(&one.name));
            if is_met || group.trim().is_empty() {
                continue;
            }
            match alternatives.iter().find_map(|one| lists.find(one)) {
                Some(found) => open.push(found),
                None => missing.push(group.trim().to_owned()),
            }
        }
    }
    if missing.is_empty() {
        let mut needed: Vec<Needed> = needed.into_values().collect();
        needed.sort_by(|a, b| a.file.cmp(&b.file));
        Ok(needed)
    } else {
        Err(missing)
    }
}

impl<'a> Lists<'a> {
    fn read(lists: &'a [Stanzas]) -> Self {
        let mut packages: HashMap<&str, Listed<'_>> = HashMap::new();
        for list in lists {
            for stanza in list.text.split("\n\n") {
                let named = field(stanza, "Package").zip(field(stanza, "Version"));
                let Some((name, version)) = named else {
                    continue;
                };
                let listed = Listed {
                    archive: &list.archive,
                    stanza,
                    name,
                    version,
                };
                match packages.get(name) {
                    Some(other) if debian_version(other.version) >= debian_version(version) => {}
                    _ => drop(packages.insert(name, listed)),
                }
            }
        }
        let mut provided: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for listed in packages.values() {
            let names = field(listed.stanza, "Provides").unwrap_or_default();
            for name in names.split(',').map(dependency) {
                provided.entry(name.name).or_default().push(listed.name);
            }
        }
        for packages in provided.values_mut() {
            packages.sort_unstable();
        }
        Self { packages, provided }
    }

    /// Returns the package that meets a dependency: of this name, or one that stands in for it.
    fn find(&self, dependency: &Dependency<'_>) -> Option<&'a str> {
        if let Some(listed) = self.packages.get(dependency.name)
            && dependency.is_met_by(listed.version)
        {
            return Some(listed.name);
        }
        self.provided.get(dependency.name)?.first().copied()
    }
}

impl Listed<'_> {
    /// Returns what to download; `None` if the stanza does not say it.
    fn needed(&self) -> Option<Needed> {
        let package = Package::parse(self.archive, self.stanza)?;
        let version = self.version.replace(':', "%3a");
        let architecture = field(self.stanza, "Architecture")?;
        let file = format!("{}_{version}_{architecture}.deb", self.name);
        Some(Needed {
            version: self.version.to_owned(),
            file,
            package,
        })
    }
}

/// Reads `NAME`, `NAME:any` or `NAME (>= VERSION)`.
fn dependency(text: &str) -> Dependency<'_> {
    let text = text.trim();
    let (name, rest) = text.split_once([' ', '(']).unwrap_or((text, ""));
    let rest = rest.trim().trim_start_matches('(').trim_end_matches(')');
    let operator_end = rest
        .find(|c: char| !"<>=".contains(c))
        .unwrap_or(rest.len());
    let (operator, version) = rest.split_at(operator_end);
    Dependency {
        name: name.split_once(':').map_or(name, |(name, _)| name),
        relation: (!operator.is_empty()).then(|| (operator, version.trim())),
    }
}

impl Dependency<'_> {
    fn is_met_by(&self, version: &str) -> bool {
        let Some((operator, wanted)) = self.relation else {
            return true;
        };
        let order = debian_version(version).cmp(&debian_version(wanted));
        match operator {
            ">=" => order.is_ge(),
            "<=" => order.is_le(),
            ">>" => order.is_gt(),
            "<<" => order.is_lt(),
            _ => order.is_eq(),
        }
    }
}
