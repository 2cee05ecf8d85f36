//! Tests of the comparison of paths, with made-up kernels.

use document::Styles;
use model::{ExecutedPath, PathEntry, PathInstruction, PathKind, Region, SourceLocation};
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

use super::{Iteration, Next, Parted, PathDifference, document, json};

/// Bytes of the code of a function.
const FUNCTION: u64 = 0x1000;
/// Bytes of an instruction.
const SIZE: u64 = 4;

/// A step of a made-up kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// An instruction of this shape.
    Do(u8),
    /// The last one so often once more.
    Again(u64),
    /// A call of a function of this number.
    Call(u8, Vec<Step>),
}

/// Writes a path as the recorder does.
#[derive(Default)]
struct Writer {
    path: ExecutedPath,
    stream: Vec<u8>,
    executed: u64,
}

impl Writer {
    fn execute(&mut self, function: u8, index: u64, shape: u8, kind: PathKind) -> u64 {
        let address = FUNCTION * (u64::from(function) + 1) + index * SIZE;
        let entry = (function == 0 && index == 0).then_some(PathEntry::SystemCall);
        let symbol = match function {
            0 => "entry".to_owned(),
            other => format!("f{other}"),
        };
        let number = u8::try_from(self.path.instructions.len()).unwrap();
        let instruction = PathInstruction {
            address,
            bytes: vec![shape; 4],
            shape: vec![shape],
            symbol,
            offset: index * SIZE,
            target: None,
            kind,
            entry,
        };
        let known = self
            .path
            .instructions
            .iter()
            .position(|one| *one == instruction);
        let number = match known {
            Some(known) => u8::try_from(known).unwrap(),
            None => {
                self.path.instructions.push(instruction);
                self.path.blocks.push(vec![number.into()]);
                number
            }
        };
        self.put(4 + u64::from(number));
        self.executed += 1;
        address
    }

    fn put(&mut self, mut number: u64) {
        while number > 0x7f {
            self.stream.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.stream.push(number as u8);
    }

    /// Executes a function: each step is where its index says, so that loops have no code.
    fn function(&mut self, function: u8, steps: &[Step], end: PathKind) {
        let mut index = 0;
        for step in steps {
            match step {
                Step::Do(shape) => {
                    self.execute(function, index, *shape, PathKind::Plain);
                }
                Step::Again(times) => {
                    if index > 0 && *times > 0 {
                        self.put(3);
                        self.put(*times);
                        self.executed += times;
                    }
                    continue;
                }
                Step::Call(callee, steps) => {
                    self.execute(function, index, 200, PathKind::Call);
                    self.function(*callee, steps, PathKind::Return);
                }
            }
            index += 1;
        }
        self.execute(function, index, 201, end);
    }
}

/// The path of so many system calls with these steps, and its instructions.
fn path(operations: &[Vec<Step>]) -> (ExecutedPath, u64) {
    let mut writer = Writer::default();
    writer.stream.extend([0, 0]);
    for steps in operations {
        // What begins with a system call is its first instruction.
        let all: Vec<Step> = std::iter::once(Step::Do(0))
            .chain(steps.iter().cloned())
            .collect();
        writer.function(0, &all, PathKind::SystemReturn);
    }
    let Writer {
        path,
        stream,
        executed,
    } = writer;
    (path.with_stream(stream).unwrap(), executed)
}

fn compared(base: &[Vec<Step>], new: &[Vec<Step>]) -> PathDifference {
    let [(base, of_base), (new, of_new)] = [path(base), path(new)];
    let counted = [of_base, of_new].map(|kernel| Region {
        kernel: kernel + 1,
        user: 20,
        interrupt: 5,
        other: 0,
        ..Region::default()
    });
    let iteration = Iteration {
        workload: "fault-anon".to_owned(),
        number: (8, 16),
        operations: 2,
        seed: 1,
        counted,
        row: counted.map(|region| (region.kernel + region.user) as f64 / 2.0),
    };
    let mut paths = [base, new];
    paths.iter_mut().for_each(|path| path.returns = 1);
    PathDifference::new(iteration, [&paths[0], &paths[1]]).unwrap()
}

/// The differences of all places, and of the whole iteration.
fn sums(difference: &PathDifference) -> [i64; 2] {
    let more = |[base, new]: [u64; 2]| new.cast_signed() - base.cast_signed();
    let places = difference.divergences.iter().map(super::Divergence::more);
    let others = difference.parts().into_iter().skip(1);
    let total = difference.counted.each_ref().map(Region::total);
    [
        places.sum::<i64>() + others.map(|(_, sides)| more(sides)).sum::<i64>(),
        more(total),
    ]
}

fn calls(inner: &[u8]) -> Vec<Step> {
    let inner = inner.iter().map(|shape| Step::Do(*shape)).collect();
    vec![
        Step::Do(1),
        Step::Do(2),
        Step::Call(1, vec![Step::Do(3), Step::Call(2, inner), Step::Do(4)]),
        Step::Do(5),
    ]
}

/// A slow-down of three instructions in the innermost function.
fn slower() -> PathDifference {
    let [base, new] = [
        calls(&[10, 11, 12, 13]),
        calls(&[10, 11, 77, 78, 79, 12, 13]),
    ];
    compared(&[base.clone(), base], &[new.clone(), new])
}

#[test]
fn equal_paths_never_part() {
    let steps = calls(&[10, 11, 12, 13]);
    let difference = compared(std::slice::from_ref(&steps), std::slice::from_ref(&steps));
    assert_eq!(difference.divergences, []);
    assert_eq!(sums(&difference), [0, 0]);
}

#[test]
fn inserted_instructions_are_the_only_place() {
    let difference = slower();
    let [place] = difference.divergences.as_slice() else {
        panic!("{:#?}", difference.divergences);
    };
    assert_eq!((place.function.as_str(), place.times), ("f2", 2));
    assert_eq!((place.instructions, place.more()), ([0, 6], 6));
    let behind = place.behind.as_ref().unwrap().sides[1].as_ref().unwrap();
    assert_eq!(behind.offset, 4);
    let Next::Instruction(next) = &place.next[1] else {
        panic!("{:?}", place.next);
    };
    assert_eq!(next.shape, [77]);
    assert_eq!(sums(&difference), [6, 6]);
}

#[test]
fn first_place_comes_first_in_time() {
    let base = calls(&[10, 11, 12, 13]);
    let new = {
        let mut steps = calls(&[10, 11, 77, 12, 13]);
        steps.insert(1, Step::Call(3, vec![Step::Do(30); 40]));
        steps
    };
    let difference = compared(&[base], &[new]);
    let functions: Vec<&str> = difference
        .divergences
        .iter()
        .map(|one| one.function.as_str())
        .collect();
    assert_eq!(functions, ["entry", "f2"]);
    assert_eq!(difference.divergences[0].calls[1], ["f3"]);
    assert_eq!(sums(&difference), [43, 43]);
}

#[test]
fn longer_repetitions_cost_what_they_repeat() {
    let steps = |times| vec![Step::Do(9), Step::Again(times), Step::Do(8)];
    let difference = compared(&[steps(512)], &[steps(1024)]);
    assert_eq!(difference.divergences.len(), 1);
    assert_eq!(sums(&difference), [512, 512]);
}

#[test]
fn path_that_was_not_counted_is_refused() {
    let (path, executed) = path(&[calls(&[10])]);
    let mut iteration = Iteration {
        workload: "fault-anon".to_owned(),
        number: (0, 1),
        operations: 1,
        seed: 1,
        counted: [Region {
            kernel: executed,
            ..Region::default()
        }; 2],
        row: [0.0; 2],
    };
    assert!(PathDifference::new(iteration.clone(), [&path, &path]).is_ok());
    iteration.counted[1].kernel += 1;
    let refused = PathDifference::new(iteration.clone(), [&path, &path]).unwrap_err();
    assert_eq!((refused.path, refused.counted), (executed, executed + 1));
    // What was not followed is a part of its own.
    let mut cut = path.clone();
    cut.cut = 1;
    let difference = PathDifference::new(iteration, [&path, &cut]).unwrap();
    assert_eq!(difference.cut, [0, 1]);
    assert_eq!(sums(&difference), [1, 1]);
}

fn parted() -> Parted {
    Parted {
        base: ("6.12.117".to_owned(), "built from HEAD~1".to_owned()),
        new: ("6.12.117-slower".to_owned(), "built from HEAD".to_owned()),
        machine: "QEMU 7.2.22, microvm, 256 MiB".to_owned(),
        differences: vec![slower()],
        missing: vec![("fork-exit".to_owned(), "it does not boot".to_owned())],
        command: "marvin profile HEAD~1 HEAD --workload fault-anon --path".to_owned(),
        places_max: 20,
    }
}

fn line(_side: usize, instruction: &PathInstruction) -> Option<SourceLocation> {
    Some(SourceLocation {
        file: "mm/memory.c".to_owned(),
        line: 100 + u32::try_from(instruction.offset).ok()?,
    })
}

#[test]
fn text_fits_the_terminal() {
    let text = document(&parted(), &line).text(&Styles::plain());
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    insta::assert_snapshot!("text", text);
}

#[test]
fn programs_get_json() {
    insta::assert_snapshot!("json", json(&parted(), &line).unwrap());
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let leaf = prop_oneof![
        4 => (1_u8..6).prop_map(Step::Do),
        1 => (1_u64..300).prop_map(Step::Again),
        1 => Just(Step::Call(5, vec![Step::Do(1)])),
    ];
    let tree = leaf.prop_recursive(3, 24, 6, |inner| {
        (1_u8..4, proptest::collection::vec(inner, 0..6))
            .prop_map(|(function, steps)| Step::Call(function, steps))
    });
    proptest::collection::vec(tree, 0..6)
}

proptest! {
    #[test]
    fn places_add_up_to_the_difference(base in steps(), new in steps(), times in 1_usize..4) {
        let [base, new] = [base, new].map(|steps| vec![steps; times]);
        let difference = compared(&base, &new);
        let [found, expected] = sums(&difference);
        assert_eq!(found, expected);
        assert!(base != new || difference.divergences.is_empty());
    }

    #[test]
    fn one_edit_is_the_first_place(steps in steps(), at in any::<usize>()) {
        let mut new = steps.clone();
        let at = at % (new.len() + 1);
        new.insert(at, Step::Do(99));
        // A repetition behind it would be that of another instruction.
        let repeats = matches!(steps.get(at), Some(Step::Again(_)));
        if !repeats {
            let difference = compared(std::slice::from_ref(&steps), &[new]);
            assert_eq!(difference.divergences[0].function, "entry");
            assert_eq!(sums(&difference), [1, 1]);
        }
    }
}
