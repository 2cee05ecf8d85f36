//! What a kernel config needs so that an option can be on: the options that it depends on, theirs,
//! and of those without a prompt one that selects them.
//!
//! Not a solver: of several ways Marvin takes the one with the fewest options, and never switches
//! one off. make resolves the result, and Marvin prints what did not stay.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::expression::Expression;
use super::kconfig::{Kconfig, Symbol};

/// Longest chain of options that need one another.
const DEPTH_MAX: usize = 24;
/// Most options of which one may select another that are tried.
const SELECTORS_MAX: usize = 6;
/// Most options that are looked at for one benchmark: of two ways at each of sixty levels, nothing
/// would see the end.
const LOOKS_MAX: usize = 100_000;
/// Options of modules, in the order of a config.
const MODULES: [&str; 2] = ["MODULES", "MODULE_UNLOAD"];

/// What an option is set to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Setting {
    Module,
    BuiltIn,
}

/// The options of a config so far, and those that are being looked at.
#[derive(Debug, Clone, Default)]
pub(crate) struct Requirements {
    settings: BTreeMap<String, Setting>,
    /// In the order in which they were needed.
    order: Vec<String>,
    /// Options without a prompt that others switch on.
    given: BTreeSet<String>,
    open: BTreeSet<String>,
    /// How many options were looked at, on all ways together.
    looks: Rc<Cell<usize>>,
}

impl Requirements {
    /// Returns the lines for a config, such as `TEST_VMALLOC=m`.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.order
            .iter()
            .map(|name| match self.settings.get(name) {
                Some(Setting::Module) => format!("{name}=m"),
                _ => format!("{name}=y"),
            })
            .collect()
    }

    fn has(&self, name: &str) -> bool {
        self.settings.contains_key(name) || self.given.contains(name)
    }

    fn allow_modules(&mut self) {
        MODULES
            .iter()
            .for_each(|option| self.set(option, Setting::BuiltIn));
    }

    fn set(&mut self, name: &str, setting: Setting) {
        let known = self.settings.insert(name.to_owned(), setting);
        match known {
            None => self.order.push(name.to_owned()),
            Some(before) => {
                self.settings.insert(name.to_owned(), before.max(setting));
            }
        }
    }
}

impl Kconfig {
    /// Returns what a config needs so that these options are on, the first as a module if it can
    /// be one and `module` is wanted.
    ///
    /// # Errors
    /// The text says what this architecture, or this source, cannot have.
    pub(crate) fn requirements(&self, options: &[String]) -> Result<(Requirements, bool), String> {
        let mut found = Requirements::default();
        let mut is_module = false;
        for (at, option) in options.iter().enumerate() {
            let symbol = self.symbols.get(option);
            let wanted = match symbol {
                Some(symbol) if at == 0 && symbol.is_tristate => Setting::Module,
                _ => Setting::BuiltIn,
            };
            is_module |= wanted == Setting::Module;
            if is_module {
                found.allow_modules();
            }
            self.switch_on(option, wanted, &mut found, DEPTH_MAX)?;
        }
        Ok((found, is_module))
    }

    fn switch_on(
        &self,
        name: &str,
        wanted: Setting,
        found: &mut Requirements,
        depth: usize,
    ) -> Result<(), String> {
        if found.given.contains(name) {
            return Ok(());
        }
        if found
            .settings
            .get(name)
            .is_some_and(|known| *known >= wanted)
            || found.open.contains(name)
        {
            return Ok(());
        }
        found.looks.set(found.looks.get() + 1);
        if found.looks.get() > LOOKS_MAX {
            return Err(format!("needs {name}, for which there are too many ways"));
        }
        let left = depth
            .checked_sub(1)
            .ok_or_else(|| format!("needs a long chain of options up to {name}"))?;
        let symbol = self
            .symbols
            .get(name)
            .ok_or_else(|| format!("needs {name}, which x86 or this source has not"))?;
        found.open.insert(name.to_owned());
        let mut ways = symbol.depends.iter().map(|way| {
            let mut tried = found.clone();
            let setting = self.fulfil_way(name, symbol, wanted, way, &mut tried, left);
            setting.map(|()| tried)
        });
        // A symbol that several files declare is on if one of them lets it be.
        let first = ways
            .next()
            .unwrap_or_else(|| Err(format!("needs {name}, which nothing declares")));
        let best = ways.flatten().fold(first, |best, other| match best {
            Ok(best) if best.order.len() <= other.order.len() => Ok(best),
            _ => Ok(other),
        });
        *found = best?;
        found.open.remove(name);
        Ok(())
    }

    /// Switches an option on by one of its declarations.
    fn fulfil_way(
        &self,
        name: &str,
        symbol: &Symbol,
        wanted: Setting,
        way: &[Expression],
        found: &mut Requirements,
        depth: usize,
    ) -> Result<(), String> {
        for condition in way {
            self.fulfil(condition, found, depth)?;
        }
        if symbol.prompt.is_some() {
            let is_module_only = way.iter().any(needs_modules);
            let setting = if symbol.is_tristate && (wanted == Setting::Module || is_module_only) {
                Setting::Module
            } else {
                Setting::BuiltIn
            };
            if setting == Setting::Module {
                found.allow_modules();
            }
            found.set(name, setting);
            return Ok(());
        }
        self.switch_on_by_others(name, symbol, wanted, found, depth)?;
        found.given.insert(name.to_owned());
        Ok(())
    }

    /// Switches an option without a prompt on: by its default, or by one that selects it.
    fn switch_on_by_others(
        &self,
        name: &str,
        symbol: &Symbol,
        wanted: Setting,
        found: &mut Requirements,
        depth: usize,
    ) -> Result<(), String> {
        for (value, condition) in &symbol.defaults {
            let mut tried = found.clone();
            let is_given = *value != Expression::No
                && self.fulfil(value, &mut tried, depth).is_ok()
                && condition
                    .as_ref()
                    .is_none_or(|condition| self.fulfil(condition, &mut tried, depth).is_ok());
            if is_given {
                *found = tried;
                return Ok(());
            }
        }
        let mut best: Option<Requirements> = None;
        let selectors = self.selected_by.get(name).map_or(&[][..], Vec::as_slice);
        for (selector, condition) in selectors.iter().take(SELECTORS_MAX) {
            let mut tried = found.clone();
            let works = condition
                .as_ref()
                .is_none_or(|condition| self.fulfil(condition, &mut tried, depth).is_ok())
                && self.switch_on(selector, wanted, &mut tried, depth).is_ok();
            let is_better = best
                .as_ref()
                .is_none_or(|best| tried.order.len() < best.order.len());
            if works && is_better {
                best = Some(tried);
            }
        }
        *found = best.ok_or_else(|| format!("needs {name}, which nothing here selects"))?;
        Ok(())
    }

    /// Makes a condition true.
    fn fulfil(
        &self,
        condition: &Expression,
        found: &mut Requirements,
        depth: usize,
    ) -> Result<(), String> {
        match condition {
            Expression::Yes => Ok(()),
            Expression::No => Err("needs what is never there".to_owned()),
            Expression::Module => {
                found.allow_modules();
                Ok(())
            }
            // A module is enough, as far as the option that depends on it can be one.
            Expression::Symbol(name) if found.has(name) => Ok(()),
            Expression::Symbol(name) => self.switch_on(name, Setting::BuiltIn, found, depth),
            Expression::Not(inner) => match &**inner {
                Expression::Symbol(name) if found.settings.contains_key(name) => {
                    Err(format!("needs {name} both on and off"))
                }
                _ => Ok(()),
            },
            Expression::And(parts) => parts
                .iter()
                .try_for_each(|part| self.fulfil(part, found, depth)),
            Expression::Or(parts) => {
                let mut best: Option<Requirements> = None;
                let mut why = String::new();
                for part in parts {
                    let mut tried = found.clone();
                    match self.fulfil(part, &mut tried, depth) {
                        Ok(()) => {
                            let is_better = best
                                .as_ref()
                                .is_none_or(|best| tried.order.len() < best.order.len());
                            if is_better {
                                best = Some(tried);
                            }
                        }
                        Err(reason) if why.is_empty() => why = reason,
                        Err(_) => {}
                    }
                }
                *found = best.ok_or(why)?;
                Ok(())
            }
            Expression::Equal(name, value) => match value.as_str() {
                "y" => self.switch_on(name, Setting::BuiltIn, found, depth),
                "m" => self.switch_on(name, Setting::Module, found, depth),
                _ => Ok(()),
            },
            Expression::Unequal(name, value) => match value.as_str() {
                "n" => self.switch_on(name, Setting::BuiltIn, found, depth),
                _ => Ok(()),
            },
        }
    }
}

/// Returns whether an option with this condition can be a module only.
fn needs_modules(condition: &Expression) -> bool {
    match condition {
        Expression::Module => true,
        Expression::And(parts) => parts.iter().any(needs_modules),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Write;

    use super::Kconfig;

    #[test]
    fn options_with_endless_ways_are_given_up() {
        let mut text = "config TOP\n\tbool \"Top\"\n\tdepends on A1\n".to_owned();
        for level in 1..60 {
            let next = level + 1;
            for name in ["A", "B"] {
                writeln!(
                    text,
                    "config {name}{level}\n\tbool \"x\"\n\tdepends on A{next} || B{next}"
                )
                .unwrap();
            }
        }
        let files = BTreeMap::from([
            ("Kconfig".to_owned(), "source \"lib/Kconfig\"\n".to_owned()),
            ("lib/Kconfig".to_owned(), text),
        ]);
        let answer = Kconfig::read(&files).requirements(&["TOP".to_owned()]);
        let why = answer.unwrap_err();
        assert!(why.contains("needs "), "{why}");
    }
}
