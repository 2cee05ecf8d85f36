//! Collecting runs: the series that they belong to, and which of two equal runs counts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, LazyLock};

use model::{
    Build, BuildId, Capabilities, Clock, Declared, Machine, MachineId, Metric, ReleaseLine, Run,
    RunId, UnixTime, imported_metric,
};

use super::digest::{RunDigest, Shape, ShapeIx, Shapes};
use super::index::{KernelIx, KernelPair, MachineIx};
use super::kernels::{Kernel, Kernels};
use super::series::{Key, Point, SeedResult, SeedValue, Series};

/// Series to recompute that are worth a thread.
const SERIES_OF_THREAD: usize = 32;

/// The suite of external tools.
const TOOLS: &str = "tools";

/// The metrics of all declared workloads.
static METRICS: LazyLock<HashMap<&'static str, Metric>> = LazyLock::new(|| {
    model::workloads()
        .into_iter()
        .map(|workload| (&*workload.name, workload.metric.clone()))
        .collect()
});

/// All measurements of a store: kernels, machines and series, each by number.
#[derive(Debug, Clone, Default)]
pub struct History {
    kernels: Kernels,
    machines: Vec<Machine>,
    /// For each machine the first one that differs only by the guest config.
    first_kin: Vec<MachineIx>,
    runs: Vec<RunMark>,
    /// For each machine and day, counted in days since 1970-01-01 UTC.
    repeats: Vec<BTreeMap<i64, Repeats>>,
    undirected: BTreeSet<Arc<str>>,
    names: BTreeSet<Arc<str>>,
    shapes: Shapes,
    /// For each shape its series by track.
    targets: Vec<Vec<(Arc<str>, Option<Target>)>>,
    series: Vec<(Key, Arc<Series>)>,
    numbers: BTreeMap<Key, usize>,
    touched: BTreeSet<usize>,
}

/// Where results of a shape go.
#[derive(Debug, Clone)]
struct Target {
    series: usize,
    /// Their declaration, completed by today's.
    declared: Arc<Declared>,
}

/// A collected run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunMark {
    /// The stored run's id.
    pub id: RunId,
    /// When it began.
    pub started_unix: UnixTime,
    /// The machine that it ran on.
    pub machine: MachineIx,
}

/// How often a machine repeated a measurement of the same build, workload and seed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Repeats {
    /// Results that repeat one of the same day.
    pub again: usize,
    /// Those that equal the first bit by bit in every sample.
    pub agree: usize,
    /// Those that differ by more than the margin: each would be a false alarm.
    pub apart: usize,
}

/// A run of an unknown build or machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{run} is of a build or machine that the history was not told of (a bug in the caller)")]
pub struct NotKnown {
    run: RunId,
}

impl NotKnown {
    pub(super) fn run(run: &RunId) -> Self {
        Self { run: run.clone() }
    }
}

/// The position of a run's results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunPosition {
    kernel: KernelIx,
    machine: MachineIx,
    run: usize,
    seed: u64,
}

impl History {
    /// Adds a build, unless it is known.
    pub fn add_build(&mut self, build: &Build) {
        self.add_builds(std::slice::from_ref(build));
    }

    /// Adds builds that are not known. Many at once cost little more than one.
    pub fn add_builds(&mut self, builds: &[Build]) {
        if self.kernels.add(builds) {
            self.reorder();
        }
    }

    /// Adds a machine, unless it is known.
    pub fn know_machine(&mut self, machine: &Machine) {
        if self.machine_number(&machine.id).is_none() {
            let first = self
                .machines
                .iter()
                .position(|known| known.is_kin(machine))
                .unwrap_or(self.machines.len());
            self.first_kin.push(MachineIx(first));
            self.machines.push(machine.clone());
            self.repeats.push(BTreeMap::new());
        }
    }

    /// Returns whether a build is known.
    #[must_use]
    pub fn knows_build(&self, build: &BuildId) -> bool {
        self.kernels.find(build).is_some()
    }

    /// Returns the number of a machine.
    #[must_use]
    pub fn machine_number(&self, machine: &MachineId) -> Option<MachineIx> {
        let position = self.machines.iter().position(|known| known.id == *machine);
        position.map(MachineIx)
    }

    /// Adds a run. Of two with the same build, machine, workload and seed, the later one counts.
    ///
    /// # Errors
    /// If its build or machine is not known.
    pub fn add_run(&mut self, run: &Run) -> Result<(), NotKnown> {
        let digest = self.digest(run)?;
        self.add_digest(&digest)
    }

    /// Returns what the history keeps of a run.
    ///
    /// # Errors
    /// If its machine is not known.
    pub fn digest(&mut self, run: &Run) -> Result<RunDigest, NotKnown> {
        let machine = self
            .machine_number(&run.machine)
            .ok_or_else(|| NotKnown::run(&run.id))?;
        let can = self.machines[machine.0].capabilities();
        Ok(self.shapes.digest(run, can))
    }

    /// Returns the shapes of all results, by number.
    #[must_use]
    pub fn shapes(&self) -> &[Arc<Shape>] {
        self.shapes.all()
    }

    /// Takes the shapes that digests refer to, and returns their numbers here.
    pub fn know_shapes(&mut self, shapes: impl Iterator<Item = Shape>) -> Vec<ShapeIx> {
        shapes.map(|shape| self.shapes.add(shape)).collect()
    }

    /// Takes the starts of runs that follow: the order of kernels depends on them, and is found
    /// once for all.
    pub fn announce<'a>(&mut self, starts: impl Iterator<Item = (&'a BuildId, UnixTime)>) {
        let kernels: Vec<(KernelIx, UnixTime)> = starts
            .filter_map(|(build, started)| Some((self.kernels.find(build)?, started)))
            .collect();
        if self.kernels.measured(kernels.into_iter()) {
            self.reorder();
        }
    }

    /// Adds a run by its digest: [`History::add_run`].
    ///
    /// # Errors
    /// If its build, its machine or a shape is not known.
    pub fn add_digest(&mut self, run: &RunDigest) -> Result<(), NotKnown> {
        let places = self
            .kernels
            .find(&run.build)
            .zip(self.machine_number(&run.machine));
        let (kernel, machine) = places.ok_or_else(|| NotKnown::run(&run.id))?;
        self.announce(std::iter::once((&run.build, run.started_unix)));
        self.runs.push(RunMark {
            id: run.id.clone(),
            started_unix: run.started_unix,
            machine,
        });
        let place = RunPosition {
            kernel,
            machine,
            run: self.runs.len() - 1,
            seed: run.seed,
        };
        let track: Arc<str> = self.name(&self.kernels.get(kernel).track.clone());
        for result in &run.results {
            let shape = self
                .shapes
                .all()
                .get(result.shape.0 as usize)
                .ok_or_else(|| NotKnown::run(&run.id))?;
            let shape = Arc::clone(shape);
            let Some(target) = self.target(result.shape, &shape, machine, &track) else {
                continue;
            };
            let value = match &shape.ended {
                Ok(scale) => Ok(SeedValue {
                    value: result.value,
                    scale: *scale,
                    mark: result.mark,
                    cycles: result.cycles,
                    deferred: result.deferred,
                    within: result.within.clone(),
                }),
                Err(absent) => Err(absent.clone()),
            };
            let seen = SeedResult {
                seed: run.seed,
                run: place.run,
                operations: shape.operations,
                declared: target.declared,
                value,
            };
            self.put(target.series, place, seen);
        }
        Ok(())
    }

    /// Returns the series for results of a shape and track; `None` without a direction.
    fn target(
        &mut self,
        number: ShapeIx,
        shape: &Shape,
        machine: MachineIx,
        track: &Arc<str>,
    ) -> Option<Target> {
        let place = number.0 as usize;
        if self.targets.len() <= place {
            self.targets.resize_with(place + 1, Vec::new);
        }
        // Each shape has few tracks.
        let mut known = self.targets[place].iter();
        if let Some((_, target)) = known.find(|(known, _)| Arc::ptr_eq(known, track)) {
            return target.clone();
        }
        let can = self.machines[machine.0].capabilities();
        let declared = read_declaration(shape, can);
        let workload = self.name(&shape.workload);
        let target = if declared.direction.is_none() {
            self.undirected.insert(workload);
            None
        } else {
            let key = Key {
                workload,
                machine,
                track: Arc::clone(track),
            };
            let series = *self.numbers.entry(key.clone()).or_insert_with(|| {
                let new = Series::new(declared.clone(), can);
                self.series.push((key, Arc::new(new)));
                self.series.len() - 1
            });
            let declared = Arc::new(declared);
            Some(Target { series, declared })
        };
        self.targets[place].push((Arc::clone(track), target.clone()));
        target
    }

    /// Sorts the points of all series again, after a kernel was found to be older than its runs so
    /// far said.
    fn reorder(&mut self) {
        let kernels = &self.kernels;
        for (number, (_, series)) in self.series.iter_mut().enumerate() {
            let ranks = |point: &Point| kernels.rank(point.kernel);
            if !series.points.is_sorted_by_key(ranks) {
                Arc::make_mut(series).points.sort_by_key(ranks);
                self.touched.insert(number);
            }
        }
    }

    /// Returns the shared copy of a name.
    fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return Arc::clone(known);
        }
        let new: Arc<str> = Arc::from(name);
        self.names.insert(Arc::clone(&new));
        new
    }

    fn put(&mut self, number: usize, place: RunPosition, seen: SeedResult) {
        let RunPosition {
            kernel,
            machine,
            seed,
            ..
        } = place;
        self.touched.insert(number);
        let series = Arc::make_mut(&mut self.series[number].1);
        let rank = self.kernels.rank(kernel);
        let at = series
            .points
            .partition_point(|point| self.kernels.rank(point.kernel) < rank);
        if series
            .points
            .get(at)
            .is_none_or(|point| point.kernel != kernel)
        {
            series.points.insert(
                at,
                Point {
                    kernel,
                    seeds: Vec::with_capacity(1),
                    value: None,
                },
            );
        }
        let seeds = &mut series.points[at].seeds;
        match seeds.binary_search_by_key(&seed, |seen| seen.seed) {
            Err(at) => {
                // Doubling would take half as much memory again as all results.
                seeds.reserve_exact(1 + seeds.len() / 8);
                seeds.insert(at, seen);
            }
            Ok(at) => {
                if let (Ok(one), Ok(other)) = (&seeds[at].value, &seen.value)
                    && seeds[at].operations == seen.operations
                    && seeds[at].declared.agrees(&seen.declared)
                    && one.scale == other.scale
                {
                    let day = self.runs[seen.run].started_unix.days();
                    let repeats = self.repeats[machine.0].entry(day).or_default();
                    repeats.again += 1;
                    repeats.agree += usize::from(one.mark == other.mark);
                    let apart = stats::percent_change(one.value, other.value)
                        .map_or(f64::INFINITY, f64::abs);
                    repeats.apart += usize::from(apart > seen.declared.margin_percent);
                }
                if self.runs[seen.run].started_unix >= self.runs[seeds[at].run].started_unix {
                    seeds[at] = seen;
                }
            }
        }
    }

    /// Recomputes the series that new runs touched.
    pub fn recompute(&mut self) {
        self.recompute_of(|_| true);
    }

    /// Recomputes those of some workloads and of their twins, which can contradict them; the others
    /// have no changes until [`History::recompute`].
    pub fn recompute_of(&mut self, is_wanted: impl Fn(&str) -> bool) {
        if let Some(machine) = self.machines.first() {
            self.kernels.name(machine);
        }
        let runs = &self.runs;
        let mut touched = Vec::new();
        for (number, one) in self.series.iter_mut().enumerate() {
            let workload = &one.0.workload;
            let is_wanted = is_wanted(workload) || model::twins(workload).any(&is_wanted);
            if is_wanted && self.touched.remove(&number) {
                touched.push(one);
            }
        }
        // Series are independent, and each processor takes its share of the long ones.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = processors.min(1 + touched.len() / SERIES_OF_THREAD);
        touched.sort_by_key(|(_, series)| series.points.len());
        let mut shares: Vec<Vec<&mut (Key, Arc<Series>)>> = Vec::new();
        shares.resize_with(threads, Vec::new);
        for (number, one) in touched.into_iter().enumerate() {
            shares[number % threads].push(one);
        }
        let own = shares.pop().unwrap_or_default();
        std::thread::scope(|scope| {
            for share in shares {
                scope.spawn(|| recompute_all(share, runs));
            }
            recompute_all(own, runs);
        });
    }

    /// Returns the numbers of all kernels in release order.
    #[must_use]
    pub fn order(&self) -> &[KernelIx] {
        self.kernels.order()
    }

    /// Returns the name of a kernel for texts.
    #[must_use]
    pub fn title(&self, kernel: KernelIx) -> &str {
        &self.kernel(kernel).title
    }

    /// Returns a kernel that was measured.
    #[must_use]
    pub fn kernel(&self, kernel: KernelIx) -> &Kernel {
        self.kernels.get(kernel)
    }

    /// Returns the kernel with this title, version, or beginning of its build's id.
    #[must_use]
    pub fn kernel_named(&self, text: &str) -> Option<KernelIx> {
        self.kernels.named(text)
    }

    /// Returns a kernel's position in release order.
    #[must_use]
    pub fn rank(&self, kernel: KernelIx) -> usize {
        self.kernels.rank(kernel)
    }

    /// Returns the first and the last position of a track's kernels of a version, in release order.
    #[must_use]
    pub(super) fn ranks_of(&self, track: &str, version: &str) -> Option<(usize, usize)> {
        self.kernels.ranks_of(track, version)
    }

    /// Returns the kernels of a track and line, in order.
    #[must_use]
    pub fn kernels_of_track(&self, track: &str, line: ReleaseLine) -> Vec<KernelIx> {
        self.kernels.of_track(track, line)
    }

    /// Returns the tracks, each once.
    #[must_use]
    pub fn tracks(&self) -> Vec<&str> {
        self.kernels.tracks()
    }

    /// Returns the machines, in the order of their first runs.
    #[must_use]
    pub fn machines(&self) -> &[Machine] {
        &self.machines
    }

    /// Returns a machine.
    #[must_use]
    pub fn machine(&self, machine: MachineIx) -> &Machine {
        &self.machines[machine.0]
    }

    /// Returns the indexes of all machines, in the same order.
    pub fn machine_indexes(&self) -> impl Iterator<Item = MachineIx> + use<> {
        (0..self.machines.len()).map(MachineIx)
    }

    /// Returns the first machine that differs from this one only by the guest config.
    #[must_use]
    pub fn first_kin(&self, machine: MachineIx) -> MachineIx {
        self.first_kin[machine.0]
    }

    /// Returns the machines that differ only by the guest config, this one among them.
    #[must_use]
    pub fn same_machine(&self, machine: MachineIx) -> Vec<MachineIx> {
        self.machine_indexes()
            .filter(|other| self.first_kin(*other) == self.first_kin(machine))
            .collect()
    }

    /// Returns the number of a machine's runs, and the start of the last one.
    #[must_use]
    pub fn runs_on(&self, machine: MachineIx) -> (usize, Option<UnixTime>) {
        let started = self.runs.iter().filter(|run| run.machine == machine);
        let started = started.map(|run| run.started_unix);
        (started.clone().count(), started.max())
    }

    /// Returns how often each machine repeated measurements, on all days.
    #[must_use]
    pub fn repeats(&self) -> Vec<Repeats> {
        self.machine_indexes()
            .map(|machine| self.repeats_since(machine, i64::MIN))
            .collect()
    }

    /// Returns how often a machine repeated measurements since a day, counted in days since
    /// 1970-01-01 UTC.
    #[must_use]
    pub fn repeats_since(&self, machine: MachineIx, day: i64) -> Repeats {
        let mut sum = Repeats::default();
        for (_, of_day) in self.repeats[machine.0].range(day..) {
            sum.again += of_day.again;
            sum.agree += of_day.agree;
            sum.apart += of_day.apart;
        }
        sum
    }

    /// Returns the names of results that are in no series because their direction is unknown.
    pub fn undirected(&self) -> impl Iterator<Item = &str> {
        self.undirected.iter().map(AsRef::as_ref)
    }

    /// Returns the default base and new kernel: the last release that a workload compares with an
    /// earlier one of its track, on one machine, and its [`usual_base`](Self::usual_base). A
    /// kernel that nothing was compared with, such as the first of another track, hides no
    /// other; if there is no pair at all, it is the last kernel and the one before.
    #[must_use]
    pub fn usual_pair(&self) -> Option<KernelPair> {
        let comparable = self.order().iter().rev().find_map(|target| {
            let base = self.comparable_base(*target, None)?;
            Some(KernelPair {
                base,
                target: *target,
            })
        });
        comparable.or_else(|| {
            let last = *self.order().last()?;
            Some(KernelPair {
                base: self.usual_base(last),
                target: last,
            })
        })
    }

    /// Returns the default base of a kernel: the last one before it on its track of another series
    /// (6.1.190 for 6.12.117), or else the one before, of those that a workload compares it
    /// with. If there is none, the one before it, or itself.
    #[must_use]
    pub fn usual_base(&self, target: KernelIx) -> KernelIx {
        let newest_other =
            |kernels: &[KernelIx]| kernels.iter().rev().copied().find(|n| *n != target);
        self.comparable_base(target, None)
            .or_else(|| {
                newest_other(&self.kernels_of_track(&self.kernel(target).track, ReleaseLine::All))
            })
            .or_else(|| newest_other(self.order()))
            .unwrap_or(target)
    }

    /// Returns a run by its number.
    #[must_use]
    pub fn run(&self, number: usize) -> &RunMark {
        &self.runs[number]
    }

    /// Returns how many runs there are.
    #[must_use]
    pub fn run_count(&self) -> usize {
        self.runs.len()
    }

    /// Returns all series, by workload, machine and track.
    pub fn series(&self) -> impl Iterator<Item = (&Key, &Series)> {
        self.numbers
            .iter()
            .map(|(key, number)| (key, self.series[*number].1.as_ref()))
    }

    /// Returns the series of a workload on a machine over the track of a kernel.
    #[must_use]
    pub fn series_of(
        &self,
        workload: &Arc<str>,
        machine: MachineIx,
        kernel: KernelIx,
    ) -> Option<&Series> {
        let track = self.names.get(self.kernel(kernel).track.as_str())?;
        let key = Key {
            workload: Arc::clone(workload),
            machine,
            track: Arc::clone(track),
        };
        self.series_by(&key)
    }

    pub(super) fn series_by(&self, key: &Key) -> Option<&Series> {
        let number = self.numbers.get(key)?;
        Some(self.series[*number].1.as_ref())
    }

    /// Returns the workloads, each once, by name.
    #[must_use]
    pub fn workloads(&self) -> Vec<Arc<str>> {
        let mut names: Vec<Arc<str>> = self
            .numbers
            .keys()
            .map(|key| Arc::clone(&key.workload))
            .collect();
        names.dedup();
        names
    }
}

fn recompute_all(all: Vec<&mut (Key, Arc<Series>)>, runs: &[RunMark]) {
    for (key, series) in all {
        Arc::make_mut(series).recompute(
            &key.workload,
            |run| (runs[run].started_unix, run),
            |declared| metric_of(&key.workload, declared),
        );
    }
}

/// Returns a result's declaration at the time of the measurement, completed by current
/// declarations.
fn read_declaration(shape: &Shape, machine: Capabilities) -> Declared {
    let declared = shape.declared.clone();
    let suite = &*shape.suite;
    if let Some(then) = &declared
        && then.direction.is_some()
        && !then.unit.is_empty()
    {
        return then.clone();
    }
    let Capabilities { foreign, clock, .. } = machine;
    let known = match metric_now(&shape.workload) {
        _ if foreign => imported_metric(suite, &shape.workload),
        Some(metric) => Declared::from_metric(&metric, clock),
        // Only manifests declare the metrics of tools.
        None if suite == TOOLS => Declared {
            unit: "".into(),
            direction: None,
            margin_percent: 0.0,
        },
        // Results without a declaration were stored when all workloads had the same metric.
        None => Declared::from_metric(&Metric::COST, clock),
    };
    declared.map_or(known.clone(), |then| then.or(known))
}

/// Returns the metric that a workload has now; `None` for undeclared ones.
fn metric_now(workload: &str) -> Option<Metric> {
    METRICS
        .get(workload)
        .cloned()
        .or_else(|| Some(model::SCALE.find(workload)?.metric.clone()))
}

/// Returns the metric of a declaration, with the current name and margin if the workload is still
/// declared like that.
fn metric_of(workload: &str, declared: &Declared) -> Metric {
    let now = metric_now(workload).filter(|metric| {
        [Clock::Instructions, Clock::Transfers]
            .into_iter()
            .any(|clock| Declared::from_metric(metric, clock).agrees(declared))
    });
    now.or_else(|| declared.metric()).unwrap_or(Metric::COST)
}

#[cfg(test)]
mod tests {
    use model::{CONTENTION, Clock, Declared};

    use super::metric_of;

    #[test]
    fn metric_of_transfers_is_the_declared_one() {
        let workload = CONTENTION.find("share-fault").unwrap();
        let declared = Declared::from_metric(&workload.metric, Clock::Transfers);
        assert_eq!(metric_of("share-fault", &declared), workload.metric);
        // In seconds it is another metric, of the same margin.
        let seconds = metric_of(
            "share-fault",
            &Declared::from_metric(&workload.metric, Clock::Seconds),
        );
        assert_eq!(
            (&*seconds.name, seconds.margin_percent),
            ("value", workload.metric.margin_percent)
        );
    }
}
