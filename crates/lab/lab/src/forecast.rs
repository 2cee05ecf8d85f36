//! Forecasts the end of an execution from the parts that are done. A busy host delays the end, but
//! it does not falsify the durations that Marvin stores.

use std::time::Instant;
use subprocess::Shared;

use stats::Remaining;

use crate::estimate::Times;
use crate::host;

/// The unfinished part of a plan.
pub(crate) struct Forecast {
    times: Times,
    state: Shared<State>,
}

struct State {
    remaining: Remaining,
    at: Instant,
    /// Processor seconds used until `at`, by all machines.
    used_s: f64,
    busy: usize,
    /// Sum of the wall seconds of all parts.
    busy_s: f64,
}

/// A part in progress.
pub(crate) struct Part {
    begun: Instant,
    used_s: f64,
    busy_s: f64,
}

/// The duration of a part.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Took {
    /// Name of the boot or job.
    pub(crate) name: String,
    pub(crate) wall_s: f64,
    pub(crate) processor_s: f64,
}

impl Forecast {
    /// Returns the forecast of `work_s` processor seconds.
    pub(crate) fn new(times: Times, work_s: f64) -> Self {
        let remaining = Remaining::new(work_s);
        let used_s = host::used_s().unwrap_or_default();
        Self {
            times,
            state: Shared::new(State {
                remaining,
                at: Instant::now(),
                used_s,
                busy: 0,
                busy_s: 0.0,
            }),
        }
    }

    pub(crate) fn begin(&self) -> Part {
        let mut state = self.state.lock();
        state.advance();
        state.busy += 1;
        Part {
            begun: state.at,
            used_s: state.used_s,
            busy_s: state.busy_s,
        }
    }

    /// Ends a part. Parts that ran at the same time share the processor time evenly.
    pub(crate) fn end(&self, name: &str, part: &Part) -> Took {
        let mut state = self.state.lock();
        state.advance();
        state.busy = state.busy.saturating_sub(1);
        let wall_s = state.at.duration_since(part.begun).as_secs_f64();
        let busy_s = state.busy_s - part.busy_s;
        let processor_s = if busy_s > 0.0 {
            wall_s * (state.used_s - part.used_s) / busy_s
        } else {
            0.0
        };
        state.remaining.finish(self.times.expected_s(name));
        Took {
            name: name.to_owned(),
            wall_s,
            processor_s,
        }
    }

    /// Removes a part that will not run.
    pub(crate) fn skip(&self, name: &str) {
        self.state
            .lock()
            .remaining
            .skip(self.times.expected_s(name));
    }

    /// Returns the remaining wall seconds; `None` while no estimate would be within a factor of
    /// two.
    pub(crate) fn left_s(&self) -> Option<f64> {
        self.state.lock().remaining.seconds()
    }
}

impl State {
    /// Accounts the time since the last call.
    fn advance(&mut self) {
        let now = Instant::now();
        let elapsed_s = now.duration_since(self.at).as_secs_f64();
        self.busy_s += self.busy as f64 * elapsed_s;
        // A program that ends during the read may be missing once, so the sum may seem to shrink.
        let used_s = host::used_s().unwrap_or(self.busy_s).max(self.used_s);
        self.remaining.elapse(elapsed_s);
        (self.at, self.used_s) = (now, used_s);
    }
}

#[cfg(test)]
mod tests {
    use super::Forecast;
    use crate::estimate::Times;

    #[test]
    fn few_parts_have_durations_and_no_forecast() {
        let mut times = Times::default();
        times.add("getppid\t9\t4\nfork\t9\t6\n");
        let forecast = Forecast::new(times, 10.0);
        let part = forecast.begin();
        assert_eq!(forecast.left_s(), None);
        let took = forecast.end("getppid", &part);
        assert!(
            took.name == "getppid" && took.wall_s < 1.0 && took.processor_s >= 0.0,
            "{took:?}"
        );
        forecast.skip("fork");
        assert_eq!(forecast.left_s(), None);
    }
}
