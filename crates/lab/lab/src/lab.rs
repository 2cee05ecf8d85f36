//! The lab of one data directory: its store, kernels and machines. `turn` has its lock.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::open_machine::{Wanted, open_machine};
use archives::Archives;
use kernel::{BuildCache, BuildEvent, NotCompiled, Sources};
use machine::{BootOutcome, MachineError, Observe, Programs, Settings};
use model::{
    Availability, Build, BuildId, CallTree, Capabilities, CostModel, KernelName, Machine, Modelled,
    MonitorCopy, Observation, Profile, Run, RunId, Sharing, SourceLocation, UnixTime, Workload,
    WorkloadResult,
};
use store::{Artifact, InUse, Location, Store, StoreError, is_writable};
use subprocess::Shared;
use wire::{Frame, Task};

use crate::calibration::Calibration;
use crate::dump::is_dump;
use crate::execute::{ExecutionContext, check_kernel, execute, missing_of};
use crate::job::{BootedBuild, Calls, Simulated, calls, observe, simulate, with_retries, workload};
use crate::machine_pool::{MachinePool, guest_configs};
use crate::offsets::Watched;
use crate::perturb::conditions;
use crate::symbols::{ANCHORS, Named, SymbolCache};
use crate::tools::{Tools, Workshop, images};
use crate::turn::Turn;
use crate::{Event, LabError, LabOptions, MODLOAD, PATH_RECORDER, Plan, SERVE, TRACER};

/// Suffix of artifacts that hold copies of monitors.
const MONITORS: &str = ".monitors";
/// Ending of artifacts with the lines that moved between processors.
pub(crate) const SHARING: &str = "sharing";

fn now() -> UnixTime {
    UnixTime::from(SystemTime::now())
}

/// A lab. Only one process measures in a data directory at a time: a lab locks it when it builds,
/// boots or stores something, and reads without.
#[derive(Debug)]
pub struct Lab {
    pub(crate) store: Shared<Store>,
    cache: BuildCache,
    machine_pool: MachinePool,
    symbols: SymbolCache,
    calibration: Calibration,
    tools: Tools,
    home: PathBuf,
    turn: Turn,
}

/// One measurement: workload, build and replicate.
#[derive(Debug, Clone, Copy)]
pub struct Measurement<'a> {
    pub build: &'a Build,
    pub workload: &'a Workload,
    pub replicate: u64,
}

/// The result of following the calls of a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Followed {
    /// Which function called which.
    pub tree: CallTree,
    /// The profile with inlined functions separate, if the kernel has debug information.
    pub expanded: Option<Profile>,
}

/// Returns the name of the artifact with a workload's monitors, copied every `interval_ms`; 0 means
/// start and end only.
fn monitors_artifact(workload: &str, interval_ms: u64) -> String {
    match interval_ms {
        0 => format!("{workload}{MONITORS}"),
        interval_ms => format!("{workload}.{interval_ms}ms{MONITORS}"),
    }
}

/// Returns the workload of an artifact with copies of monitors; `None` for other artifacts.
#[must_use]
pub fn monitored_subject(artifact: &str) -> Option<&str> {
    artifact.strip_suffix(MONITORS)
}

/// Parses the stored copies of monitors of a run; `None` if the bytes are invalid.
#[must_use]
pub fn stored_observation(bytes: &[u8]) -> Option<Observation> {
    Some(ingest::observation(&ingest::monitors_from_bytes(bytes)?))
}

/// Refuses a run that executed other instructions than the stored one.
pub(crate) fn check_same(profile: &Profile, stored: &Profile) -> Result<(), String> {
    if profile == stored {
        Ok(())
    } else {
        Err("the repeated job executed other instructions".into())
    }
}

/// Returns whether a profile has as many instructions per iteration as the run's result; true if
/// the result has no count.
fn counts_agree(profile: &Profile, run: &Run, workload: &str) -> bool {
    let result = run
        .results
        .iter()
        .find(|result| result.workload == workload);
    result.is_none_or(|result| result.counted.is_empty() || result.counted == profile.regions)
}

/// Returns the guest's programs: guests of an exact machine do one job, others one after the other.
fn programs_for(wanted: &Wanted, programs: Programs) -> Programs {
    match wanted {
        Wanted::Exact | Wanted::ExactSmp(_) | Wanted::Local | Wanted::Server(_) => programs,
        Wanted::Vm(_) => Programs {
            init: SERVE.to_vec(),
            ..programs
        },
    }
}

/// Returns the profile of a workload in a stored run, if it was counted.
///
/// # Errors
/// If the profile is damaged, of another version, or contradicts the run's result.
pub fn counted_profile(
    store: &Store,
    run: &RunId,
    workload: &str,
) -> Result<Option<Profile>, LabError> {
    let name = format!("{workload}.profile");
    if !store.artifact_names(run)?.contains(&name) {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&store.artifact(run, &name)?).into_owned();
    let Some(profile) = ingest::profile_from_text(&text) else {
        return Err(LabError::BadProfile {
            run: run.clone(),
            name,
        });
    };
    if counts_agree(&profile, &store.run(run)?, workload) {
        Ok(Some(profile))
    } else {
        Err(LabError::OtherProfile {
            run: run.clone(),
            name,
        })
    }
}

impl Lab {
    /// Opens the lab of a data directory, an absolute path, and creates the directory if needed.
    ///
    /// # Errors
    /// If the directory cannot be used, or no machine is usable; for a server, if another process
    /// measures in the directory.
    pub fn open(home: &Path, options: LabOptions) -> Result<Self, LabError> {
        let LabOptions {
            store,
            machine,
            wanted,
            qemu,
            cpu,
            programs,
            snapshots,
            limits,
            tools,
            sources,
            archives,
            patience,
        } = options;
        let turn = Turn::new(home, patience);
        if matches!(wanted, Wanted::Server(_)) {
            // Opening it asks the server, which one process at a time may do.
            turn.take()?;
        }
        let is_read_only = home.exists() && !is_writable(home);
        let location = store.unwrap_or_else(|| home.into());
        let store = match &location {
            Location::Home(_) if is_read_only => Store::open_read_only(location.clone()),
            _ => Store::open(location.clone()),
        };
        let store = Shared::new(store?);
        let machine = match machine {
            Some(machine) => machine,
            None => {
                let settings = Settings {
                    qemu,
                    cpu,
                    programs: programs_for(&wanted, programs),
                    loader: MODLOAD.to_vec(),
                    tracer: TRACER.to_vec(),
                    path_recorder: PATH_RECORDER.to_vec(),
                    conditions: conditions(),
                    home: home.to_owned(),
                    snapshots,
                    limits,
                };
                open_machine(wanted, settings, location)?
            }
        };
        let archives = Archives::new(home, archives, now);
        let mut cache = if is_read_only {
            BuildCache::open_to_read(home, archives.offline())
        } else {
            BuildCache::open(home, archives)?
        };
        cache.set_sources(sources);
        let symbols = SymbolCache::new(home.join("symbols"));
        let calibration = Calibration::new(home.join("calibration"));
        Ok(Self {
            store,
            cache,
            machine_pool: MachinePool::new(machine),
            symbols,
            calibration,
            tools,
            home: home.to_owned(),
            turn,
        })
    }

    /// Makes the guest images of workloads, or finds them in the data directory; a machine with
    /// installed tools needs only those of a user's own programs, if at all. Call it before using their machines; otherwise, or if an
    /// image cannot be made from its manifest, the workloads' outcome says so.
    ///
    /// # Errors
    /// If packages cannot be fetched or the data directory cannot be written.
    pub fn prepare(
        &self,
        workloads: &[Arc<Workload>],
        notify: &dyn Fn(BuildEvent),
    ) -> Result<(), LabError> {
        let can = self.machine_pool.plain().capabilities();
        let is_carried = |workload: &&Arc<Workload>| {
            !can.installed_tools || (can.carries_programs && self.tools.is_own(&workload.name))
        };
        let carried: Vec<Arc<Workload>> = workloads.iter().filter(is_carried).cloned().collect();
        self.machine_pool.add_images(images(
            &self.tools,
            &carried,
            &Workshop {
                home: &self.home,
                cache: &self.cache,
                turn: &self.turn,
            },
            notify,
        )?);
        Ok(())
    }

    /// Returns the machine for workloads without a guest config.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        self.machine_pool.plain().identity()
    }

    /// Returns the machines for these workloads: one per guest config, in the workloads' order.
    ///
    /// # Errors
    /// If a machine cannot be prepared.
    pub fn machines(&self, workloads: &[Arc<Workload>]) -> Result<Vec<Machine>, LabError> {
        let machine =
            |guest_config| Ok(self.machine_pool.machine(&guest_config)?.identity().clone());
        guest_configs(workloads).into_iter().map(machine).collect()
    }

    pub(crate) fn machine_pool(&self) -> &MachinePool {
        &self.machine_pool
    }

    pub(crate) fn tools(&self) -> &Tools {
        &self.tools
    }

    /// Returns the sources of the tree in the settings.
    ///
    /// # Errors
    /// If the settings name no tree, or it is no git repository.
    pub fn sources(&self) -> Result<Sources, LabError> {
        Ok(Sources::open(&self.cache)?)
    }

    /// Checks that a kernel name refers to a kernel, without fetching or building it.
    ///
    /// # Errors
    /// If it does not, or the check fails.
    pub fn check(&self, name: &KernelName) -> Result<(), LabError> {
        check_kernel(name, self.machine_pool.plain())?;
        Ok(self.cache.check(name)?)
    }

    /// Returns the build of a kernel name and records that the name refers to it now.
    ///
    /// # Errors
    /// If there is none, or it cannot be fetched.
    pub fn build(&self, name: &KernelName, notify: &dyn Fn(BuildEvent)) -> Result<Build, LabError> {
        let build = match self.cache.find_made(name, notify)? {
            Some(build) => build,
            None => {
                self.turn.take()?;
                self.cache.resolve(name, notify)?
            }
        };
        let store = self.store.lock();
        if store.is_read_only() {
            return Ok(build);
        }
        store.save_build(&build)?;
        store.remember_kernel(&name.to_string(), &build.id, now())?;
        Ok(build)
    }

    /// Returns the code that differs between two kernels and that the build of neither compiled.
    ///
    /// # Errors
    /// If git fails, or the cache cannot be read.
    pub fn not_compiled(
        &self,
        base: &KernelName,
        new: &KernelName,
    ) -> Result<Vec<NotCompiled>, LabError> {
        Ok(self.cache.not_compiled(base, new)?)
    }

    /// Puts a build where other hosts find it, if the settings name a place.
    ///
    /// # Errors
    /// If that place cannot be written.
    pub fn share(&self, build: &Build) -> Result<(), LabError> {
        Ok(self.cache.share(build)?)
    }

    /// Returns the build with this content hash that another host has shared under this name.
    ///
    /// # Errors
    /// If it is not there, or damaged.
    pub fn fetch(
        &self,
        id: &BuildId,
        name: &KernelName,
        notify: &dyn Fn(BuildEvent),
    ) -> Result<Build, LabError> {
        self.turn.take()?;
        Ok(self.cache.fetch(id, name, notify)?)
    }

    /// Returns sides and replicates of a plan that have no complete stored results.
    ///
    /// # Errors
    /// If the plan cannot be executed, or the store fails.
    pub fn missing(&self, plan: &Plan<'_>) -> Result<Vec<(usize, u64)>, LabError> {
        missing_of(plan, &self.context(&|_| {}))
    }

    /// Executes a plan and returns the runs of each side.
    ///
    /// # Errors
    /// If the lab fails; complete runs are stored, and the same plan continues from there.
    pub fn execute(
        &self,
        plan: &Plan<'_>,
        notify: &(dyn Fn(Event) + Sync),
    ) -> Result<Vec<Vec<Run>>, LabError> {
        execute(plan, &self.context(notify))
    }

    /// Takes the turn to measure, unless this lab has it: what uses stored results alone need not.
    ///
    /// # Errors
    /// If another process measures in the data directory, or it cannot be written.
    pub fn take_turn(&self) -> Result<(), LabError> {
        self.turn.take()?;
        Ok(())
    }

    pub(crate) fn context<'a>(
        &'a self,
        notify: &'a (dyn Fn(Event) + Sync),
    ) -> ExecutionContext<'a> {
        ExecutionContext {
            machine_pool: &self.machine_pool,
            store: &self.store,
            symbols: &self.symbols,
            calibration: &self.calibration,
            tools: &self.tools,
            watched: Watched::default(),
            turn: &self.turn,
            notify,
        }
    }

    /// Leaves the machines as they were found. A server boots its own kernel.
    ///
    /// # Errors
    /// If a machine does not return.
    pub fn close(&self) -> Result<(), LabError> {
        Ok(self.machine_pool.plain().close()?)
    }

    /// Returns the profile of a workload in a run, if it was counted.
    ///
    /// # Errors
    /// If the profile is damaged, of another version, or contradicts the run's result.
    pub fn profile(&self, run: &RunId, workload: &str) -> Result<Option<Profile>, LabError> {
        counted_profile(&self.store.lock(), run, workload)
    }

    /// Returns the lines that moved between processors for a workload in a run, if they were
    /// followed.
    ///
    /// # Errors
    /// If the artifact is damaged or of another version, or the store fails.
    pub fn sharing(&self, run: &RunId, workload: &str) -> Result<Option<Sharing>, LabError> {
        let name = format!("{workload}.{SHARING}");
        let store = self.store.lock();
        if !store.artifact_names(run)?.contains(&name) {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&store.artifact(run, &name)?).into_owned();
        ingest::sharing_from_text(&text)
            .map(Some)
            .ok_or_else(|| LabError::BadProfile {
                run: run.clone(),
                name,
            })
    }

    /// Returns the names of a run's artifacts with memory of kernels that died.
    ///
    /// # Errors
    /// If the store fails.
    pub fn dumps(&self, run: &RunId) -> Result<Vec<String>, LabError> {
        let store = self.store.lock();
        Ok(store
            .artifact_names(run)?
            .into_iter()
            .filter(|name| is_dump(name))
            .collect())
    }

    /// Returns an artifact of a run.
    ///
    /// # Errors
    /// If there is none, or the store fails.
    pub fn artifact(&self, run: &RunId, name: &str) -> Result<Vec<u8>, LabError> {
        Ok(self.store.lock().artifact(run, name)?)
    }

    /// Runs a workload again and follows its calls; stores nothing. Refuses a profile that differs
    /// from the stored one: the guest must repeat what it did during the measurement.
    ///
    /// # Errors
    /// If the lab fails.
    pub fn follow_calls(
        &self,
        measurement: Measurement<'_>,
        stored: &Profile,
    ) -> Result<Availability<Followed>, LabError> {
        let followed = self.again(
            measurement,
            |can| can.calls,
            |on, named| calls(on, measurement.workload, named),
        )?;
        Ok(followed.and_then(
            |Calls {
                 profile,
                 tree,
                 expanded,
             }| {
                check_same(&profile, stored)?;
                Ok(Followed { tree, expanded })
            },
        ))
    }

    /// Runs a workload again on a simulated processor; stores nothing. Refuses a profile that
    /// differs from the stored one.
    ///
    /// # Errors
    /// If the lab fails.
    pub fn simulate(
        &self,
        measurement: Measurement<'_>,
        stored: &Profile,
        model: &CostModel,
    ) -> Result<Availability<Modelled>, LabError> {
        let simulated = self.again(
            measurement,
            |can| can.cost_model,
            |on, named| simulate(on, measurement.workload, named, model),
        )?;
        Ok(simulated.and_then(|Simulated { profile, modelled }| {
            check_same(&profile, stored)?;
            Ok(modelled)
        }))
    }

    /// Runs a workload and copies the kernel's counters before and after it, and every
    /// `interval_ms` milliseconds of guest time if that is not 0. This is a run of its own, so
    /// that measurements have no monitors; it stores nothing.
    ///
    /// # Errors
    /// If the lab fails.
    pub fn observe(
        &self,
        measurement: Measurement<'_>,
        interval_ms: u64,
    ) -> Result<Availability<Observation>, LabError> {
        Ok(self
            .copies(measurement, interval_ms)?
            .map(|copies| ingest::observation(&copies)))
    }

    /// Does the same as [`Lab::observe`] for a workload of a stored run, and stores the copies with
    /// the run; stored copies are reused.
    ///
    /// # Errors
    /// If the lab fails, or the stored copies are damaged.
    pub fn observe_stored(
        &self,
        run: &RunId,
        measurement: Measurement<'_>,
        interval_ms: u64,
    ) -> Result<Availability<Observation>, LabError> {
        let name = monitors_artifact(&measurement.workload.name, interval_ms);
        if self.store.lock().artifact_names(run)?.contains(&name) {
            let stored = stored_observation(&self.artifact(run, &name)?);
            return stored
                .map(Availability::Available)
                .ok_or_else(|| LabError::BadMonitors {
                    run: run.clone(),
                    name,
                });
        }
        let copies = match self.copies(measurement, interval_ms)? {
            Availability::Available(copies) => copies,
            Availability::Unavailable(why) => return Ok(Availability::Unavailable(why)),
        };
        self.store.lock().add_artifact(
            run,
            Artifact {
                name: &name,
                bytes: &ingest::monitors_to_bytes(&copies),
            },
        )?;
        Ok(Availability::Available(ingest::observation(&copies)))
    }

    fn copies(
        &self,
        measurement: Measurement<'_>,
        interval_ms: u64,
    ) -> Result<Availability<Vec<MonitorCopy>>, LabError> {
        let workload = measurement.workload.job();
        self.booted(measurement, |on| {
            with_retries(&|_| {}, || observe(on, &workload, interval_ms))
        })
    }

    /// Boots a build on the machine of a workload, calls `action` there, and releases the
    /// machine.
    fn booted<T>(
        &self,
        measurement: Measurement<'_>,
        action: impl FnOnce(BootedBuild<'_>) -> Result<Availability<T>, LabError>,
    ) -> Result<Availability<T>, LabError> {
        let placement = self
            .machine_pool
            .placement(measurement.build, &measurement.workload.guest_config)?;
        self.turn.take()?;
        let booted = match placement.boot(measurement.build, measurement.replicate)? {
            BootOutcome::Ready(booted) => booted,
            BootOutcome::KernelFailed { .. } => {
                return Ok(Availability::Unavailable("it does not boot".to_owned()));
            }
            BootOutcome::Unsupported(why) => {
                return Ok(Availability::Unavailable(format!("not supported: {why}")));
            }
        };
        let done = action(placement.booted_build(
            measurement.build,
            measurement.replicate,
            &*booted,
            &self.tools,
        ));
        booted.release()?;
        done
    }

    /// Repeats a workload's job from the boot of its measurement.
    pub(crate) fn again<T>(
        &self,
        measurement: Measurement<'_>,
        can: impl Fn(Capabilities) -> bool,
        job: impl Fn(BootedBuild<'_>, &Named) -> Result<Availability<T>, MachineError>,
    ) -> Result<Availability<T>, LabError> {
        // It only adds to what is stored, which is shown without it.
        match self.turn.take() {
            Err(why @ (StoreError::InUse(InUse::Locked { .. }) | StoreError::Unusable { .. })) => {
                return Ok(Availability::Unavailable(why.to_string()));
            }
            taken => taken?,
        };
        self.booted(measurement, |on| {
            let (known, _) = self.symbols.get(on)?;
            let named = match known.as_ref() {
                Availability::Available(named) => named,
                Availability::Unavailable(why) => {
                    return Ok(Availability::Unavailable(why.clone()));
                }
            };
            let capabilities = on.machine.capabilities();
            if !capabilities.deterministic || !can(capabilities) {
                return Ok(Availability::Unavailable(
                    "this machine cannot repeat a run exactly".to_owned(),
                ));
            }
            with_retries(&|_| {}, || job(on, named))
        })
    }

    /// Returns where a build's source defines functions, by symbol; empty without debug
    /// information, and without functions that share their name.
    #[must_use]
    pub fn source_places(
        &self,
        build: &Build,
        functions: &BTreeSet<&str>,
    ) -> BTreeMap<String, SourceLocation> {
        let Some(named) = self.symbols.stored(build) else {
            return BTreeMap::new();
        };
        let image = &build.boot_file().path;
        let anchors: Vec<u64> = ANCHORS
            .iter()
            .filter_map(|name| named.symbols.address(name))
            .collect();
        if kernel::source_places(image, &anchors)
            .iter()
            .all(Option::is_none)
        {
            return BTreeMap::new();
        }
        let known = functions
            .iter()
            .chain(&ANCHORS)
            .filter_map(|name| Some((*name, named.symbols.address(name)?)));
        let (names, addresses): (Vec<&str>, Vec<u64>) = known.unzip();
        let places = kernel::source_places(image, &addresses);
        names
            .into_iter()
            .zip(places)
            .filter_map(|(name, place)| Some((name.to_owned(), place?)))
            .collect()
    }

    /// Returns the symbols of a build, if they were read from a guest.
    pub(crate) fn stored_symbols(&self, build: &Build) -> Option<ingest::Symbols> {
        Some(self.symbols.stored(build)?.symbols)
    }

    /// Returns those of these functions that have code of their own in a build: others are inlined,
    /// or not compiled.
    #[must_use]
    pub fn functions_of(&self, build: &Build, functions: &BTreeSet<&str>) -> BTreeSet<String> {
        let Some(named) = self.symbols.stored(build) else {
            return BTreeSet::new();
        };
        functions
            .iter()
            .filter(|name: &&&str| named.symbols.address(name).is_some())
            .map(|name| (*name).to_owned())
            .collect()
    }

    /// Measures a workload once as a run does, and stores nothing.
    ///
    /// # Errors
    /// If the lab fails.
    pub fn try_out(
        &self,
        measurement: Measurement<'_>,
    ) -> Result<Availability<WorkloadResult>, LabError> {
        self.booted(measurement, |on| {
            let (known, _) = self.symbols.get(on)?;
            let named = known.value();
            let measured = with_retries(&|_| {}, || workload(on, measurement.workload, 1, named))?;
            Ok(Availability::Available(
                measured.result_of(measurement.workload),
            ))
        })
    }

    /// Boots a build on the machine of a workload, has the agent execute a task, and returns what
    /// it sent. Stores nothing.
    ///
    /// # Errors
    /// If the lab fails.
    pub fn run_task(
        &self,
        measurement: Measurement<'_>,
        task: Task,
    ) -> Result<Availability<Vec<Frame>>, LabError> {
        self.booted(measurement, |on| {
            let stream = on.booted.run(&on.plain_job(task), Observe::Nothing)?.stream;
            Ok(match stream {
                Ok(stream) => Availability::Available(stream.frames),
                Err(failure) => Availability::Unavailable(failure.reason.to_string()),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use model::{
        BuildId, MachineId, Outcome, Profile, Region, Run, RunId, UnixTime, WorkloadResult,
    };

    use super::counts_agree;

    #[test]
    fn profile_with_other_counts_is_refused() {
        let counted = vec![Region {
            user: 1,
            kernel: 2,
            interrupt: 3,
            other: 4,
            ..Region::default()
        }];
        let profile = Profile {
            regions: counted.clone(),
            ..Profile::default()
        };
        let result = WorkloadResult {
            workload: "getppid".into(),
            operations: 1,
            declared: None,
            outcome: Outcome::Completed,
            samples: vec![3.0],
            counted,
        };
        let hash = "0".repeat(64);
        let mut run = Run {
            id: RunId::from_hex(&hash).unwrap(),
            build: BuildId::from_hex(&hash).unwrap(),
            machine: MachineId::from_hex(&hash).unwrap(),
            suite: "micro".into(),
            seed: 1,
            started_unix: UnixTime::new(0),
            environment: Vec::new(),
            results: vec![result],
        };
        assert!(counts_agree(&profile, &run, "getppid"));
        run.results[0].counted[0].kernel += 1;
        assert!(!counts_agree(&profile, &run, "getppid"));
        run.results[0].counted.clear();
        assert!(
            counts_agree(&profile, &run, "getppid"),
            "a result without counts says nothing against it"
        );
    }
}
