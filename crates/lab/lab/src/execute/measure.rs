//! One job of an execution: measured with retries and without disturbances, with its profile, its
//! samples, and the memory of a kernel that died.

use std::time::Instant;

use machine::{Booted, DeadMemory, MachineError};
use model::{
    Availability, Environment, Outcome, Tool, ToolWorkload, Workload, WorkloadResult,
    disturbed_pair,
};

use super::Execution;
use super::stored::rounds;
use crate::calibration::Trial;
use crate::disturbed::{self, Disturbed};
use crate::dump::{artifact, died, dump};
use crate::job::{BootedBuild, Measured, environment, with_retries, workload};
use crate::lab::SHARING;
use crate::plan::{Dumps, Sampled};
use crate::run_in_progress::RunInProgress;
use crate::sampling::{sample, sampled_artifact};
use crate::symbols::{Known, Named};
use crate::{Event, LabError, tool_job};

impl Execution<'_> {
    /// Measures one job on a booted build and adds what it brought to the run.
    pub(super) fn measure(
        &self,
        run: &RunInProgress<'_>,
        job: usize,
        booted: &dyn Booted,
    ) -> Result<(), LabError> {
        let on = run
            .placement
            .booted_build(run.build, run.replicate, booted, self.context.tools);
        match run.declared(job) {
            None => self.measure_environment(run, on),
            Some(declared) => match self.context.tools.workload(&declared.name) {
                Some(tool) => self.measure_tool(run, job, on, &declared.name, tool),
                None => self.measure_workload(run, job, on, &declared),
            },
        }
    }

    fn measure_environment(
        &self,
        run: &RunInProgress<'_>,
        on: BootedBuild<'_>,
    ) -> Result<(), LabError> {
        let fetched = with_retries(&|error| self.notify_retry(error), || environment(on))?;
        self.notify_unknown_parameters(run, &fetched.value);
        let mut progress = run.progress();
        // Known facts come last, as do those of files beside the image.
        let known = std::mem::replace(&mut progress.environment, fetched.value);
        progress.environment.extend(known);
        if let Some(config) = &run.build.config {
            progress
                .environment
                .push(("config sha256".into(), config.sha256.clone()));
        }
        progress
            .consoles
            .push(("environment.console".into(), fetched.console));
        Ok(())
    }

    /// Says which of the user's boot parameters a kernel does not know: with them or without, it
    /// boots alike.
    fn notify_unknown_parameters(&self, run: &RunInProgress<'_>, environment: &Environment) {
        let unknown = environment
            .iter()
            .find(|(name, _)| name == ingest::UNKNOWN_PARAMETERS);
        let (1, Some((_, unknown))) = (run.replicate, unknown) else {
            return;
        };
        let given = run.build.name.boot_parameters();
        let parameters: Vec<&str> = unknown
            .split(' ')
            .filter(|word| given.split(' ').any(|own| own == *word))
            .collect();
        if !parameters.is_empty() {
            (self.context.notify)(Event::UnknownBootParameters {
                version: run.build.version.clone(),
                parameters: parameters.join(" "),
            });
        }
    }

    fn measure_tool(
        &self,
        run: &RunInProgress<'_>,
        job: usize,
        on: BootedBuild<'_>,
        name: &str,
        (tool, workload): (&Tool, &ToolWorkload),
    ) -> Result<(), LabError> {
        let is_taken_apart = tool.own.is_some() || on.machine.capabilities().sharing;
        let known = is_taken_apart.then(|| self.symbols(on)).transpose()?;
        let named = known.as_ref().and_then(|known| known.value());
        let printed = self.undisturbed(run, name, || {
            with_retries(&|error| self.notify_retry(error), || {
                tool_job::run(on, tool, workload, named)
            })
        })?;
        let dump = died(&printed.outcome).then(|| {
            let again = on.job(&workload.name, tool_job::task(tool, workload));
            self.dump(run, name, || on.booted.run_to_death(&again))
        });
        let results: Vec<_> = run
            .brought(job)
            .map(|(n, row)| (n, printed.result_of(row)))
            .collect();
        // Behind the rows that were asked for.
        let last = results.last().map_or(0, |(n, _)| *n);
        let found = printed.found_results().into_iter();
        let found = found.map(|result| (last, result));
        let mut progress = run.progress();
        progress.consoles.extend(dump.flatten());
        progress.results.extend(results.into_iter().chain(found));
        // Several workloads of one tool bring the same programs.
        let programs: Vec<_> = printed
            .programs
            .into_iter()
            .filter(|pair: &(String, String)| !progress.environment.contains(pair))
            .collect();
        progress.environment.extend(programs);
        progress
            .consoles
            .push((format!("{name}.console"), printed.console));
        progress
            .consoles
            .push((format!("{name}.output"), printed.output));
        let texts = [(printed.profile, "profile"), (printed.sharing, SHARING)];
        let texts = self.keep_readable(run, name, texts);
        progress.consoles.extend(texts);
        Ok(())
    }

    fn measure_workload(
        &self,
        run: &RunInProgress<'_>,
        job: usize,
        on: BootedBuild<'_>,
        declared: &Workload,
    ) -> Result<(), LabError> {
        let known = self.symbols(on)?;
        let named = known.value();
        let fetched =
            self.undisturbed(run, &declared.name, || self.calibrated(on, declared, named))?;
        // A measured job is not prepared for a dump: a machine that repeats exactly lets the kernel
        // die again.
        let dump = died(&fetched.value.outcome).then(|| {
            self.dump(run, &declared.name, || {
                on.booted.run_to_death(&on.job_of(declared))
            })
        });
        let sampled = self.sample(on, declared, &fetched.value)?;
        let watched = &self.context.watched;
        let offsets = watched.keep(on, &declared.name, &fetched, named);
        let mut progress = run.progress();
        let kept = dump.flatten().into_iter().chain(sampled).chain(offsets);
        progress.consoles.extend(kept);
        progress.results.extend(
            run.brought(job)
                .map(|(n, brought)| (n, fetched.result_of(brought))),
        );
        progress
            .consoles
            .push((format!("{}.console", declared.name), fetched.console));
        let texts = [(fetched.profile, "profile"), (fetched.sharing, SHARING)];
        let texts = self.keep_readable(run, &declared.name, texts);
        progress.consoles.extend(texts);
        Ok(())
    }

    /// Returns what can be read of a workload's profile and lines, as artifacts. One that cannot be
    /// read costs only itself, and not the result.
    fn keep_readable(
        &self,
        run: &RunInProgress<'_>,
        workload: &str,
        texts: [(Option<Result<String, String>>, &str); 2],
    ) -> Vec<(String, Vec<u8>)> {
        let mut readable = Vec::new();
        for (text, kind) in texts {
            match text {
                None => {}
                Some(Ok(text)) => readable.push((format!("{workload}.{kind}"), text.into_bytes())),
                Some(Err(why)) => (self.context.notify)(Event::NoProfile {
                    version: run.build.version.clone(),
                    workload: Some(workload.to_owned()),
                    why,
                }),
            }
        }
        readable
    }

    /// Runs a workload with as many rounds as its machine needs, and finds those out first if they
    /// are not known.
    fn calibrated(
        &self,
        on: BootedBuild<'_>,
        declared: &Workload,
        named: Option<&Named>,
    ) -> Result<Measured, LabError> {
        let context = self.context;
        let machine = &on.machine.identity().id;
        let measure = |rounds| {
            with_retries(&|error| self.notify_retry(error), || {
                workload(on, declared, rounds, named)
            })
        };
        let rounds = match rounds(context, on.machine, declared) {
            Some(rounds) => rounds,
            None => {
                let begun = Instant::now();
                let once = measure(1)?;
                // A kernel that fails says nothing about the speed of the machine: the next one
                // calibrates.
                let Some(iteration_ns) = once.iteration_ns() else {
                    return Ok(once);
                };
                let rounds = Trial {
                    iteration_ns,
                    job_s: begun.elapsed().as_secs_f64(),
                }
                .rounds();
                context.calibration.keep(machine, declared, rounds);
                // The trial was a whole measurement.
                if rounds == 1 {
                    return Ok(once);
                }
                rounds
            }
        };
        measure(rounds)
    }

    /// Executes a job, and repeats it while other work on the host disturbs it; of a job that was
    /// disturbed each time, the run keeps the last result and says so.
    fn undisturbed<T: Disturbed>(
        &self,
        run: &RunInProgress<'_>,
        job: &str,
        attempt: impl Fn() -> Result<T, LabError>,
    ) -> Result<T, LabError> {
        for repeated in 0.. {
            let end = attempt()?;
            // Of repeated jobs too: the lab took it from the machine all the same.
            run.progress().own_cost += end.own_cost().unwrap_or_default();
            let Some(disturbance) = end.disturbance() else {
                return Ok(end);
            };
            let text = disturbed::describe(&disturbance);
            let mut progress = run.progress();
            progress.load += &disturbed::line(job, &disturbance);
            if !disturbance.is_beyond() {
                return Ok(end);
            }
            if repeated == disturbed::REPEATS {
                progress.environment.push(disturbed_pair(job, text));
                return Ok(end);
            }
            // The next attempt locks it again.
            drop(progress);
            let version = run.build.version.clone();
            let replicate = self.replicate_of(run);
            let workload = job.to_owned();
            (self.context.notify)(Event::Disturbed {
                version,
                replicate,
                workload,
                text,
            });
        }
        unreachable!("the loop returns at the last repetition")
    }

    /// Returns the sampled profile of a measured workload, as an artifact; without one there is a
    /// result all the same.
    fn sample(
        &self,
        on: BootedBuild<'_>,
        workload: &Workload,
        measured: &WorkloadResult,
    ) -> Result<Option<(String, Vec<u8>)>, LabError> {
        let is_wanted = self.sampled == Sampled::Yes && on.machine.capabilities().sampling;
        if !is_wanted || measured.outcome != Outcome::Completed {
            return Ok(None);
        }
        // In a job of its own: samples cost time, and the result has to be free of that.
        match with_retries(&|error| self.notify_retry(error), || {
            sample(on, workload, measured)
        })? {
            Availability::Available(profile) => Ok(Some((
                sampled_artifact(&workload.name),
                ingest::sampled_to_text(&profile).into_bytes(),
            ))),
            Availability::Unavailable(why) => {
                let version = on.build.version.clone();
                let workload = Some(workload.name.to_string());
                (self.context.notify)(Event::NoProfile {
                    version,
                    workload,
                    why,
                });
                Ok(None)
            }
        }
    }

    /// Returns the memory of a kernel that died, as an artifact; `None` leaves the result as it is.
    pub(super) fn dump(
        &self,
        run: &RunInProgress<'_>,
        of: &str,
        capture: impl Fn() -> Result<Option<DeadMemory>, MachineError>,
    ) -> Option<(String, Vec<u8>)> {
        if self.dumps == Dumps::Drop {
            return None;
        }
        let memory = with_retries(&|error| self.notify_retry(error), capture)
            .map_err(|error| error.to_string());
        let dumped = memory.and_then(|memory| dump(&memory.ok_or("it did not die when repeated")?));
        let version = run.build.version.clone();
        let bytes = dumped
            .as_ref()
            .map(|dumped| dumped.bytes.len())
            .map_err(Clone::clone);
        let unfiltered = dumped
            .as_ref()
            .ok()
            .and_then(|dumped| dumped.unfiltered.clone());
        (self.context.notify)(Event::Dumped {
            version,
            of: of.to_owned(),
            bytes,
            unfiltered,
        });
        dumped.ok().map(|dumped| (artifact(of), dumped.bytes))
    }

    /// Returns the functions of the kernel; without them there are results but no profile.
    fn symbols(&self, on: BootedBuild<'_>) -> Result<Known, LabError> {
        let context = self.context;
        let (known, is_new) = with_retries(&|error| self.notify_retry(error), || {
            context.symbols.get(on)
        })?;
        // A kind of machine that never counts has nothing to report.
        if let (Availability::Unavailable(why), true, true) = (
            known.as_ref(),
            is_new,
            on.machine.identity().capabilities().counts,
        ) {
            let version = on.build.version.clone();
            (context.notify)(Event::NoProfile {
                version,
                workload: None,
                why: why.clone(),
            });
        }
        Ok(known)
    }
}
