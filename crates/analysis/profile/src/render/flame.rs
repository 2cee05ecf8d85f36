//! The differential flame graph: a rectangle for each chain of calls, below its caller. Its width
//! is the union of both sides, so that removed and new code are both visible; its colour shows the
//! change.

use crate::calls::{CallDifference, CallNode};

/// Width of the picture and height of a line, in pixels.
const WIDTH: f64 = 1000.0;
const LINE: usize = 17;
/// Narrower rectangles are omitted.
const NARROWEST: f64 = 0.6;
/// Width of a character.
const CHARACTER: f64 = 6.7;
/// A change by a smaller share of the width counts as none.
const VISIBLE: f64 = 0.005;

/// A flame graph as numbers.
pub(super) struct Flame {
    pub(super) height: usize,
    pub(super) frames: Vec<Frame>,
}

pub(super) struct Frame {
    pub(super) x: String,
    pub(super) width: String,
    pub(super) y: usize,
    pub(super) text_y: usize,
    /// `more`, `less` or `same`.
    pub(super) way: &'static str,
    /// The intensity of the colour: the change as a share of the width.
    pub(super) strength: String,
    /// Whether it is so intense that the name needs another colour.
    pub(super) is_strong: bool,
    pub(super) name: String,
    /// The part of the name that fits.
    pub(super) label: String,
    pub(super) title: String,
}

/// Draws a workload's calls.
pub(super) fn flame(difference: &CallDifference) -> Flame {
    let whole = weight(difference, &difference.root).max(1e-9);
    let mut flame = Flame {
        height: 0,
        frames: Vec::new(),
    };
    draw(
        &mut flame,
        difference,
        &difference.root,
        0.0,
        0,
        WIDTH / whole,
    );
    flame
}

/// Returns the union of both sides' instructions per operation: for each chain the larger one.
fn weight(difference: &CallDifference, node: &CallNode) -> f64 {
    let [base, new] = difference.per_operation(node.own);
    base.max(new)
        + node
            .children
            .iter()
            .map(|child| weight(difference, child))
            .sum::<f64>()
}

fn draw(
    flame: &mut Flame,
    difference: &CallDifference,
    node: &CallNode,
    x: f64,
    level: usize,
    scale: f64,
) {
    let weight_here = weight(difference, node);
    let width = weight_here * scale;
    if width < NARROWEST {
        return;
    }
    let added = difference.added(node.all);
    let change = added.abs() / weight_here.max(1e-9);
    let way = match () {
        () if change < VISIBLE => "same",
        () if added > 0.0 => "more",
        () => "less",
    };
    let [base, new] = difference.per_operation(node.all);
    let [own_base, own_new] = difference.per_operation(node.own);
    let own = if node.children.is_empty() {
        String::new()
    } else {
        format!("; itself {own_base:.1} to {own_new:.1}")
    };
    let unit = difference.unit;
    let y = level * LINE;
    let strength = if way == "same" {
        1.0
    } else {
        (0.25 + 0.75 * change).min(1.0)
    };
    flame.height = flame.height.max(y + LINE);
    flame.frames.push(Frame {
        x: format!("{x:.1}"),
        width: format!("{width:.1}"),
        y,
        text_y: y + 12,
        way,
        strength: format!("{strength:.2}"),
        is_strong: way != "same" && strength > 0.6,
        name: node.function.clone(),
        label: shorten(&node.function, width),
        title: format!(
            "{}: {base:.1} to {new:.1} {unit} per operation, {added:+.1}{own}",
            node.function
        ),
    });
    let mut children: Vec<&CallNode> = node.children.iter().collect();
    children.sort_by(|a, b| weight(difference, b).total_cmp(&weight(difference, a)));
    let mut x = x;
    for child in children {
        draw(flame, difference, child, x, level + 1, scale);
        x += weight(difference, child) * scale;
    }
}

fn shorten(name: &str, width: f64) -> String {
    let room = (width / CHARACTER) as usize;
    match name.chars().count() {
        length if length <= room => name.to_owned(),
        _ if room < 4 => String::new(),
        _ => name.chars().take(room - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::flame;
    use crate::calls::CallDifference;
    use crate::calls::tests::tree;
    use model::Share;

    #[test]
    fn removed_and_new_functions_have_their_width() {
        let base = tree(&[
            (Share::Kernel, "f;gone", 30, 1),
            (Share::Kernel, "f", 40, 1),
        ]);
        let new = tree(&[(Share::Kernel, "f;new", 30, 1), (Share::Kernel, "f", 40, 1)]);
        let picture = flame(&CallDifference::new("w", &[base], &[new]).unwrap());
        let told: Vec<_> = picture
            .frames
            .iter()
            .map(|f| (f.name.as_str(), f.width.as_str(), f.way))
            .collect();
        assert_eq!(
            told,
            [
                ("all", "1000.0", "same"),
                ("f", "1000.0", "same"),
                ("gone", "300.0", "less"),
                ("new", "300.0", "more")
            ]
        );
        assert_eq!(picture.height, 3 * super::LINE);
    }
}
