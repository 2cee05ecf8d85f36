//! Drawings of an answer, for pages: the states of threads over time, and flame graphs of what ran
//! and of what was blocked.

use askama::Template;
use document::{Block, RenderError, cut_middle};
use profile::calls::{CallDifference, CallNode};
use profile::render::draw_calls;

use crate::budget::View;
use crate::facts::{Facts, Period, Thread};

/// Threads of the timeline at most, the height of one, and its left edge and width, in pixels.
const THREADS: usize = 16;
const LINE: usize = 24;
const BAR: f64 = 18.0;
const LEFT: f64 = 220.0;
const WIDTH: f64 = 630.0;
/// Characters of a thread's name.
const NAME: usize = 26;
/// The states with their colours, from the bottom up.
const STATES: [State; 4] = [
    State {
        name: "user",
        class: "k1",
    },
    State {
        name: "kernel",
        class: "k2",
    },
    State {
        name: "waiting for a processor",
        class: "k3",
    },
    State {
        name: "blocked",
        class: "base",
    },
];

struct State {
    name: &'static str,
    class: &'static str,
}

struct Part {
    class: &'static str,
    x: String,
    y: String,
    width: String,
    height: String,
}

struct Line {
    name: String,
    text_y: usize,
    parts: Vec<Part>,
}

#[derive(Template)]
#[template(path = "timeline.html")]
struct Timeline {
    states: [State; 4],
    height: usize,
    axis_y: usize,
    rows: Vec<Line>,
    seconds: String,
}

/// Draws the states of the threads that ran most; `None` without any.
pub(crate) fn timeline(facts: &Facts) -> Result<Option<Block>, RenderError> {
    let mut threads: Vec<&Thread> = facts
        .threads
        .iter()
        .filter(|thread| !thread.periods.is_empty())
        .collect();
    threads.sort_by(|one, other| other.running_s().total_cmp(&one.running_s()));
    threads.truncate(THREADS);
    if threads.is_empty() {
        return Ok(None);
    }
    let rows: Vec<Line> = threads
        .iter()
        .enumerate()
        .map(|(row, thread)| line(facts, thread, row))
        .collect();
    let height = rows.len() * LINE + 20;
    let timeline = Timeline {
        states: STATES,
        height,
        axis_y: height - 6,
        rows,
        seconds: format!("{:.1}", facts.seconds),
    };
    Ok(Some(Block::Drawing(timeline.render()?)))
}

fn line(facts: &Facts, thread: &Thread, row: usize) -> Line {
    let scale = WIDTH / facts.seconds.max(f64::MIN_POSITIVE);
    let top = (row * LINE) as f64;
    // A thread that began later ends with the observation.
    let mut x = LEFT + WIDTH - (thread.total_s * scale).min(WIDTH);
    let mut parts = Vec::new();
    for period in &thread.periods {
        let Period {
            user_s,
            system_s,
            waiting_s,
            blocked_s,
        } = *period;
        let shares = [user_s, system_s, waiting_s, blocked_s];
        let all: f64 = shares.iter().sum();
        let width = all * scale;
        let mut y = top + BAR;
        for (state, share) in STATES.iter().zip(shares) {
            let height = BAR * share / all.max(f64::MIN_POSITIVE);
            y -= height;
            if height >= 0.2 {
                parts.push(Part {
                    class: state.class,
                    x: format!("{x:.1}"),
                    y: format!("{y:.1}"),
                    width: format!("{width:.1}"),
                    height: format!("{height:.1}"),
                });
            }
        }
        x += width;
    }
    let name = cut_middle(&format!("{} {}", thread.id, thread.name), NAME);
    Line {
        name,
        text_y: row * LINE + 14,
        parts,
    }
}

/// Draws what ran, by samples; `None` without any.
pub(crate) fn running(facts: &Facts) -> Result<Option<Block>, RenderError> {
    let Some(samples) = &facts.samples else {
        return Ok(None);
    };
    let chains = samples.stacks.iter().map(|stack| {
        let outermost_first = stack.kernel.iter().chain(&stack.user).rev();
        (outermost_first.map(String::as_str).collect(), stack.samples)
    });
    flame("running", "samples", chains)
}

/// Draws where threads were blocked, in milliseconds; `None` if they never were.
pub(crate) fn blocked(view: &View) -> Result<Option<Block>, RenderError> {
    let chains = view.waits.iter().map(|wait| {
        let mut names: Vec<&str> = wait.stack.iter().rev().map(String::as_str).collect();
        names.extend(
            [&*wait.call, &*wait.function]
                .into_iter()
                .filter(|name| !name.is_empty()),
        );
        (names, (1000.0 * wait.seconds).round() as u64)
    });
    flame("blocked", "ms", chains)
}

fn flame<'a>(
    title: &str,
    unit: &'static str,
    chains: impl Iterator<Item = (Vec<&'a str>, u64)>,
) -> Result<Option<Block>, RenderError> {
    let mut root = CallNode {
        function: title.to_owned(),
        ..CallNode::default()
    };
    for (names, count) in chains {
        let mut node = &mut root;
        node.all = node.all.map(|all| all + count);
        for name in names {
            let at = node
                .children
                .iter()
                .position(|child| child.function == name)
                .unwrap_or_else(|| {
                    node.children.push(CallNode {
                        function: name.to_owned(),
                        ..CallNode::default()
                    });
                    node.children.len() - 1
                });
            node = &mut node.children[at];
            node.all = node.all.map(|all| all + count);
        }
        node.own = node.own.map(|own| own + count);
    }
    if root.all == [0, 0] {
        return Ok(None);
    }
    let calls = CallDifference {
        workload: title.to_owned(),
        operations: [1, 1],
        unit,
        root,
    };
    draw_calls(title, &calls).map(Some)
}
