//! What the commits of a seed are: chosen, written, and put into an order.

use super::Kind;
use super::innocent::{INNOCENTS, Innocent};
use super::pad::{DEPTH, Edit, Habit, Pad, Shared};
use super::places::{PLACES, Place, Site, TRADES, Trade};

/// Commits in all, and how many of them the older part of the history has.
pub(crate) const COMMITS: usize = 40;
const OLD: std::ops::RangeInclusive<u64> = 18..=22;
/// How much of the turns stays after the partial repair.
const STAY_PERCENT: std::ops::RangeInclusive<u64> = 25..=40;
/// Sizes, in percent of those of the table of places, which stand for about 10 % of a row.
const SIZE_PERCENT: std::ops::RangeInclusive<u64> = 50..=180;

/// Which commit it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Key {
    Cause(usize),
    Repair(usize),
    Prepare,
    Cosmetic,
    Misleading,
    Innocent(usize),
}

pub(crate) struct Step {
    pub(crate) key: Key,
    pub(crate) subject: String,
    pub(crate) body: String,
    pub(crate) author: &'static str,
    pub(crate) fixes: Option<Key>,
    pub(crate) edits: Vec<Edit>,
}

impl Step {
    pub(crate) fn address(&self) -> String {
        format!(
            "{}@example.org",
            self.author.to_lowercase().replace(' ', ".")
        )
    }
}

pub(crate) struct PlannedCause {
    pub(crate) function: &'static str,
    pub(crate) worse: &'static [&'static str],
    pub(crate) better: &'static [&'static str],
    pub(crate) shows_with: Option<usize>,
}

pub(crate) struct PlannedRepair {
    pub(crate) cause: usize,
    pub(crate) kind: Kind,
}

pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    /// How many steps the older part has.
    pub(crate) old: usize,
    pub(crate) causes: Vec<PlannedCause>,
    pub(crate) repairs: Vec<PlannedRepair>,
}

const AUTHORS: [&str; 9] = [
    "Ilse Brandt",
    "Tomas Rehak",
    "Mei Tanaka",
    "Oskar Lind",
    "Priya Nair",
    "Jonas Okafor",
    "Clara Duval",
    "Marek Sobol",
    "Edith Moreau",
];

const COMMENTS: [&str; 4] = [
    "The arguments are checked by now.",
    "Nothing below depends on the order of these.",
    "See the comment at the top of the file.",
    "No lock is needed for this.",
];

/// A generator of pseudo-random numbers: splitmix64.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    fn within(&mut self, range: &std::ops::RangeInclusive<u64>) -> u32 {
        u32::try_from(range.start() + self.next() % (range.end() - range.start() + 1)).unwrap()
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for end in (1..list.len()).rev() {
            list.swap(end, self.below(end + 1));
        }
    }

    fn size(&mut self, turns: u32) -> u32 {
        (turns * self.within(&SIZE_PERCENT) / 100).max(4)
    }
}

/// The five causes, before they are commits: two in one function, two in one file of which the
/// second multiplies a constant of the first, and the trade.
struct Chosen {
    pads: Vec<Pad>,
    causes: Vec<PlannedCause>,
    areas: Vec<&'static str>,
    /// A line that includes a header in the file of the first two.
    include: &'static str,
    trade: &'static Trade,
}

fn choose(dice: &mut Dice) -> Chosen {
    let linked: Vec<&'static Place> = PLACES.iter().filter(|place| place.far.is_some()).collect();
    let linked = linked[dice.below(linked.len())];
    let others: Vec<&'static Place> = PLACES
        .iter()
        .filter(|place| place.file != linked.file)
        .collect();
    let pair = others[dice.below(others.len())];
    let trade = &TRADES[dice.below(TRADES.len())];
    let far = linked.far.as_ref().unwrap();
    let mut habits = [Habit::Forget, Habit::Trail, Habit::Clear];
    dice.shuffle(&mut habits);
    let mut pads = vec![
        pad_at(pair, &pair.near[0], habits[0], dice.size(pair.turns)),
        pad_at(pair, &pair.near[1], habits[1], dice.size(pair.turns)),
        pad_at(linked, &linked.near[0], habits[2], dice.size(linked.turns)),
        pad_at(linked, &far.site, habits[0], dice.size(far.turns)),
    ];
    pads[2].shared = Shared::Defines;
    // At least so many times that a partial repair leaves less than half.
    pads[3].shared = Shared::Multiplies((pads[3].turns / DEPTH).max(4));
    let loser = &trade.loser;
    pads.push(Pad {
        file: loser.file,
        stem: loser.stem,
        site: &loser.site,
        habit: habits[1],
        turns: dice.size(loser.turns),
        shared: Shared::No,
        split: false,
        renamed: false,
    });
    let causes = vec![
        slower(pair.function, pair.rows),
        slower(pair.function, pair.rows),
        slower(linked.function, linked.rows),
        PlannedCause {
            shows_with: Some(2),
            ..slower(far.function, far.rows)
        },
        PlannedCause {
            better: trade.better,
            ..slower(loser.function, loser.rows)
        },
    ];
    let areas = vec![pair.area, pair.area, linked.area, linked.area, loser.area];
    Chosen {
        pads,
        causes,
        areas,
        include: pair.include,
        trade,
    }
}

fn pad_at(place: &'static Place, site: &'static Site, habit: Habit, turns: u32) -> Pad {
    Pad {
        file: place.file,
        stem: place.stem,
        site,
        habit,
        turns,
        shared: Shared::No,
        split: false,
        renamed: false,
    }
}

fn slower(function: &'static str, worse: &'static [&'static str]) -> PlannedCause {
    PlannedCause {
        function,
        worse,
        better: &[],
        shows_with: None,
    }
}

/// How each cause is repaired; a half stands for two repairs.
fn kinds(dice: &mut Dice) -> [Kind; 5] {
    let mut kinds = [
        Kind::Plain,
        Kind::Half,
        Kind::Partly,
        Kind::Needs,
        Kind::Conflicts,
    ];
    // The digest of a split pad does not multiply the shared constant.
    dice.shuffle(&mut kinds);
    while kinds[3] == Kind::Half {
        dice.shuffle(&mut kinds);
    }
    kinds
}

fn step(key: Key, subject: String, body: &str, edits: Vec<Edit>) -> Step {
    Step {
        key,
        subject,
        body: body.to_owned(),
        author: "",
        fixes: None,
        edits,
    }
}

fn cause_step(n: usize, chosen: &Chosen) -> Step {
    let pad = &chosen.pads[n];
    let area = chosen.areas[n];
    let mut edits = pad.plant();
    if n == 4 {
        let trade = chosen.trade;
        edits.push(Edit {
            file: trade.file,
            old: trade.old.to_owned(),
            new: trade.new.to_owned(),
        });
        return step(Key::Cause(n), trade.subject.to_owned(), trade.body, edits);
    }
    let (subject, body) = match pad.habit {
        Habit::Forget => (
            "forget stale state when a caller comes back",
            "A caller that comes back may have changed in the meantime. Compare it\n\
             with those that are known, and forget \
             what was known of it.",
        ),
        Habit::Trail => (
            "remember the order of the last callers",
            "It is hard to see afterwards who came before whom. Keep the last callers\nin order, for debuggers.\n\nNo \
             difference was seen in boot time.",
        ),
        Habit::Clear => (
            "leave nothing of the last caller behind",
            "What one caller left must not be seen by the next one. Clear it before\nthe next one begins.",
        ),
    };
    step(Key::Cause(n), format!("{area}: {subject}"), body, edits)
}

/// The subject, the body and the edits of the repairs of a cause.
fn repair_texts(
    kind: Kind,
    pad: &Pad,
    area: &str,
    dice: &mut Dice,
) -> Vec<(String, String, Vec<Edit>)> {
    let helper = pad.helper();
    let bodies = [
        format!("Profiles show {helper}() near the top. What it does is never read."),
        format!("There is no user of what {helper}() does."),
        "This was reported as a regression of a few percent in small calls.".to_owned(),
        "Simplify the code. No user-visible change is intended.".to_owned(),
    ];
    let mut body = || bodies[dice.below(bodies.len())].clone();
    match kind {
        Kind::Plain | Kind::Conflicts => vec![(
            format!("{area}: do not call {helper}()"),
            body(),
            pad.remove(),
        )],
        Kind::Needs => {
            let renamed = Pad {
                renamed: true,
                ..pad.clone()
            };
            vec![(
                format!("{area}: remove {}()", renamed.helper()),
                body(),
                renamed.remove(),
            )]
        }
        Kind::Partly => {
            let edits = pad.reduce(dice.within(&STAY_PERCENT));
            let body = format!("Most turns of the loop in {helper}() find nothing. Make fewer.");
            vec![(
                format!("{area}: look at fewer entries in {helper}()"),
                body,
                edits,
            )]
        }
        Kind::Half => vec![
            (
                format!("{area}: touch one entry only in {helper}()"),
                body(),
                pad.remove_loop(),
            ),
            (
                format!("{area}: drop the digest of callers"),
                body(),
                pad.remove_digest(),
            ),
        ],
    }
}

fn repair_steps(
    chosen: &Chosen,
    kinds: [Kind; 5],
    dice: &mut Dice,
) -> (Vec<Step>, Vec<PlannedRepair>) {
    let mut steps = vec![];
    let mut repairs = vec![];
    for (cause, kind) in kinds.into_iter().enumerate() {
        let pad = &chosen.pads[cause];
        let area = chosen.areas[cause];
        for (subject, body, edits) in repair_texts(kind, pad, area, dice) {
            steps.push(step(Key::Repair(repairs.len()), subject, &body, edits));
            repairs.push(PlannedRepair { cause, kind });
        }
        if kind == Kind::Needs {
            let subject = format!(
                "{area}: use clearer names for the helper of {}",
                chosen.causes[cause].function
            );
            steps.push(step(
                Key::Prepare,
                subject,
                "No functional change.",
                pad.rename(),
            ));
        }
        if kind == Kind::Conflicts {
            let comment = pad.comment(COMMENTS[dice.below(COMMENTS.len())]);
            let subject = format!("{area}: add a comment in {}", chosen.causes[cause].function);
            steps.push(step(Key::Cosmetic, subject, "", comment));
        }
    }
    // Two thirds of them say what they fix.
    let mut order: Vec<usize> = (0..repairs.len()).collect();
    dice.shuffle(&mut order);
    for n in order.into_iter().take(repairs.len() * 2 / 3) {
        let of = steps
            .iter_mut()
            .find(|step| step.key == Key::Repair(n))
            .unwrap();
        of.fixes = Some(Key::Cause(repairs[n].cause));
    }
    (steps, repairs)
}

fn innocent_steps(dice: &mut Dice) -> Vec<Step> {
    let mut order: Vec<usize> = (0..INNOCENTS.len()).collect();
    dice.shuffle(&mut order);
    let mut steps = vec![];
    for n in order {
        let Innocent {
            file,
            old,
            new,
            subject,
            body,
        } = &INNOCENTS[n];
        let edit = Edit {
            file,
            old: (*old).to_owned(),
            new: (*new).to_owned(),
        };
        steps.push(step(
            Key::Innocent(n),
            (*subject).to_owned(),
            body,
            vec![edit],
        ));
    }
    steps
}

/// Puts a step before another one, if it is not there.
fn put_before(steps: &mut [Step], first: Key, second: Key) {
    let first = steps.iter().position(|step| step.key == first).unwrap();
    let second = steps.iter().position(|step| step.key == second).unwrap();
    if first > second {
        steps.swap(first, second);
    }
}

/// Returns the plan of a seed.
pub(crate) fn plan(seed: u64) -> Plan {
    let dice = &mut Dice(seed);
    let mut chosen = choose(dice);
    let kinds = kinds(dice);
    for (pad, kind) in chosen.pads.iter_mut().zip(kinds) {
        pad.split = kind == Kind::Half;
    }
    let (mut newer, repairs) = repair_steps(&chosen, kinds, dice);
    let header = chosen.include;
    let include = Edit {
        file: chosen.pads[0].file,
        old: header.to_owned(),
        new: format!("#include <asm/rwonce.h>\n{header}"),
    };
    let subject = format!("{}: include rwonce.h for READ_ONCE()", chosen.areas[0]);
    let mut misleading = step(
        Key::Misleading,
        subject,
        "Other headers bring it today, but need not.",
        vec![include],
    );
    misleading.fixes = Some(Key::Cause(0));
    newer.push(misleading);
    let mut older: Vec<Step> = (0..chosen.pads.len())
        .map(|n| cause_step(n, &chosen))
        .collect();
    let old = usize::try_from(dice.within(&OLD)).unwrap();
    let mut innocents = innocent_steps(dice).into_iter();
    older.extend(innocents.by_ref().take(old - older.len()));
    newer.extend(innocents.take(COMMITS - old - newer.len()));
    dice.shuffle(&mut older);
    dice.shuffle(&mut newer);
    for (n, repair) in repairs.iter().enumerate() {
        match repair.kind {
            Kind::Needs => put_before(&mut newer, Key::Prepare, Key::Repair(n)),
            Kind::Conflicts => put_before(&mut newer, Key::Cosmetic, Key::Repair(n)),
            _ => {}
        }
    }
    let mut steps = older;
    steps.extend(newer);
    for step in &mut steps {
        step.author = AUTHORS[dice.below(AUTHORS.len())];
    }
    Plan {
        steps,
        old,
        causes: chosen.causes,
        repairs,
    }
}
