//! Planted code: a helper with a loop, and its call. The compiler cannot remove it, and the kernel
//! works as before.

use super::places::Site;

/// Text of a file, and what a commit makes of it.
#[derive(Clone)]
pub(crate) struct Edit {
    pub(crate) file: &'static str,
    pub(crate) old: String,
    pub(crate) new: String,
}

/// What the loop does to its table.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Habit {
    Forget,
    Trail,
    Clear,
}

/// A constant of the file that two commits use.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Shared {
    No,
    /// This code brings it.
    Defines,
    /// This code costs as many times its value, which is zero without the other commit.
    Multiplies(u32),
}

/// The value of the shared constant.
pub(crate) const DEPTH: u32 = 8;

/// Turns of the digest per turn of the loop of the table, which costs less.
const DIGESTS_PERCENT: u32 = 80;

#[derive(Clone)]
pub(crate) struct Pad {
    pub(crate) file: &'static str,
    pub(crate) stem: &'static str,
    pub(crate) site: &'static Site,
    pub(crate) habit: Habit,
    pub(crate) turns: u32,
    pub(crate) shared: Shared,
    /// Whether half of the work is in a second helper.
    pub(crate) split: bool,
    /// Whether names are those after the refactoring.
    pub(crate) renamed: bool,
}

impl Pad {
    fn table(&self) -> String {
        let noun = match (self.habit, self.renamed) {
            (Habit::Forget, false) => "recent",
            (Habit::Forget, true) => "known",
            (Habit::Trail, false) => "trail",
            (Habit::Trail, true) => "history",
            (Habit::Clear, false) => "scratch",
            (Habit::Clear, true) => "work",
        };
        format!("{}_{noun}", self.stem)
    }

    pub(crate) fn helper(&self) -> String {
        let verb = match self.habit {
            Habit::Forget => "forget",
            Habit::Trail => "push",
            Habit::Clear => "clear",
        };
        format!("{}_{verb}", self.table())
    }

    fn length(&self) -> String {
        format!("{}_MAX", self.table().to_uppercase())
    }

    fn depth(&self) -> String {
        format!(
            "{}_DEPTH",
            self.file
                .rsplit('/')
                .next()
                .unwrap()
                .replace(".c", "")
                .to_uppercase()
        )
    }

    fn digest(&self) -> String {
        format!("{}_digest", self.stem)
    }

    /// Half of it in the loop, half in the digest, if it is split.
    fn turns_here(&self) -> u32 {
        if self.split {
            self.turns.div_ceil(2)
        } else {
            self.turns
        }
    }

    /// The line that says how long the table is.
    fn length_line(&self, turns: u32) -> String {
        let value = match self.shared {
            Shared::Multiplies(_) => format!("({} * {turns})", self.depth()),
            _ => turns.to_string(),
        };
        format!("#define {}\t{value}\n", self.length())
    }

    fn length_now(&self) -> String {
        match self.shared {
            Shared::Multiplies(times) => self.length_line(times),
            _ => self.length_line(self.turns_here()),
        }
    }

    /// The definition that outlives a repair, because the other commit uses it.
    fn shared_lines(&self) -> String {
        let depth = self.depth();
        match self.shared {
            Shared::Defines => {
                format!("/* How far back callers are looked at. */\n#define {depth}\t{DEPTH}\n\n")
            }
            _ => String::new(),
        }
    }

    fn fallback_lines(&self) -> String {
        let depth = self.depth();
        match self.shared {
            Shared::Multiplies(_) => format!("#ifndef {depth}\n#define {depth}\t0\n#endif\n"),
            _ => String::new(),
        }
    }

    fn loop_text(&self) -> String {
        let table = self.table();
        let length = self.length();
        match self.habit {
            Habit::Forget => format!(
                "\tfor (unsigned int i = 0; i < {length}; i++) {{\n\t\tif (READ_ONCE({table}[i]) == key)\n\
                 \t\t\tWRITE_ONCE({table}[i], 0);\n\t}}\n"
            ),
            Habit::Trail => format!(
                "\tfor (unsigned int i = {length}; i > 0; i--)\n\
                 \t\tWRITE_ONCE({table}[i], READ_ONCE({table}[i - 1]));\n\tWRITE_ONCE({table}[0], key);\n"
            ),
            Habit::Clear => format!(
                "\tfor (unsigned int i = 0; i < {length}; i++)\n\t\tWRITE_ONCE({table}[i], 0);\n\
                 \tWRITE_ONCE({table}[{length}], key);\n"
            ),
        }
    }

    fn digest_helper(&self) -> String {
        let digest = self.digest();
        let turns = (self.turns / 2 * DIGESTS_PERCENT / 100).max(1);
        format!(
            "static unsigned long {digest};\n\nstatic noinline void {digest}_update(unsigned long key)\n{{\n\
             \tunsigned long value = READ_ONCE({digest});\n\n\tfor (unsigned int i = 0; i < {turns}; i++) {{\n\
             \t\tvalue = (value << 5) ^ (value >> 3) ^ READ_ONCE(key);\n\t}}\n\
             \tWRITE_ONCE({digest}, value);\n}}\n\n"
        )
    }

    fn digest_call(&self) -> String {
        format!(
            "\t/* The digest has each caller, known or not. */\n\t{}_update(key);\n",
            self.digest()
        )
    }

    fn helper_text(&self) -> String {
        let what = match self.habit {
            Habit::Forget => "Callers come back with a new state: do not trust the old one.",
            Habit::Trail => "The order of the last callers, for those that look back.",
            Habit::Clear => "Leave nothing of the last caller behind.",
        };
        let table = self.table();
        let length = self.length();
        let begin = if self.split {
            format!(
                "{}\tif (unlikely(!key))\n\t\treturn;\n\n",
                self.digest_call()
            )
        } else {
            String::new()
        };
        format!(
            "/* {what} */\n{}{}static unsigned long {table}[{length} + 1];\n\n\
             static noinline void {}(unsigned long key)\n{{\n{begin}{}}}\n\n",
            self.fallback_lines(),
            self.length_now(),
            self.helper(),
            self.loop_text()
        )
    }

    fn own_text(&self) -> String {
        let digest = if self.split {
            self.digest_helper()
        } else {
            String::new()
        };
        format!("{digest}{}", self.helper_text())
    }

    fn call_line(&self) -> String {
        let indent: String = self.site.call.chars().take_while(|c| *c == '\t').collect();
        format!(
            "{indent}{}((unsigned long){});\n",
            self.helper(),
            self.site.key
        )
    }

    fn edit(&self, old: String, new: String) -> Edit {
        Edit {
            file: self.file,
            old,
            new,
        }
    }

    pub(crate) fn plant(&self) -> Vec<Edit> {
        let above = self.site.above;
        let call = self.site.call;
        let helper = format!("{}{}{above}", self.shared_lines(), self.own_text());
        vec![
            self.edit(above.to_owned(), helper),
            self.edit(call.to_owned(), format!("{}{call}", self.call_line())),
        ]
    }

    /// The repair of all of it.
    pub(crate) fn remove(&self) -> Vec<Edit> {
        vec![
            self.edit(self.own_text(), String::new()),
            self.edit(self.call_line(), String::new()),
        ]
    }

    /// The repair of a part: so many percent of the turns stay, and at least one.
    pub(crate) fn reduce(&self, stay_percent: u32) -> Vec<Edit> {
        let turns = match self.shared {
            Shared::Multiplies(times) => times,
            _ => self.turns_here(),
        };
        vec![self.edit(
            self.length_now(),
            self.length_line((turns * stay_percent / 100).max(1)),
        )]
    }

    /// The two halves of a split pad: the loop, and the digest.
    pub(crate) fn remove_loop(&self) -> Vec<Edit> {
        let table = self.table();
        let length = self.length();
        let slot = format!("\tWRITE_ONCE({table}[key % ({length} + 1)], key);\n");
        vec![self.edit(self.loop_text(), slot)]
    }

    pub(crate) fn remove_digest(&self) -> Vec<Edit> {
        vec![
            self.edit(self.digest_helper(), String::new()),
            self.edit(self.digest_call(), String::new()),
        ]
    }

    /// The refactoring that the repair needs: other names, the same code.
    pub(crate) fn rename(&self) -> Vec<Edit> {
        let after = Self {
            renamed: true,
            ..self.clone()
        };
        vec![
            self.edit(self.own_text(), after.own_text()),
            self.edit(self.call_line(), after.call_line()),
        ]
    }

    /// A comment right above the call.
    pub(crate) fn comment(&self, comment: &str) -> Vec<Edit> {
        let call = self.call_line();
        let indent: String = call.chars().take_while(|c| *c == '\t').collect();
        vec![self.edit(call.clone(), format!("{indent}/* {comment} */\n{call}"))]
    }
}
