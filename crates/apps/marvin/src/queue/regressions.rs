//! Regressions that people have to hear of: a notice for each alert, raised once, and a weekly list.
//!
//! A notice that stands is the record that an alert went out: another process, or this one after a
//! kill, raises it no second time.

use std::path::Path;

use config::ConfigFile;
use history::{RegressionText, Triaged, digest_text, records_of_alert, regression_text};
use kernel::{Addressees, Repository, plain_address};
use model::{
    ChannelKind, JobState, Origin, SourceOrigin, UnixTime, channel_to, regression_subject,
    report_subject,
};
use results::{HistoryReadError, HistoryReader, HistorySnapshot};
use store::{Notice, Store, StoreError};

use crate::session::Session;

/// The subject of the mark that this lab reports regressions: what was open before comes as one list.
const BEGUN: &str = "regressions:begun";
const WEEK_DAYS: i64 = 7;
/// How to get no more of these.
const STOP: &str = "To close the alert: marvin triage. To stop these messages: take the [[notify]] out of marvin.toml.\n";

/// Raises notices about regressions, and reads only new runs each time.
#[derive(Debug, Default)]
pub(crate) struct RegressionReporter {
    reader: Option<HistoryReader>,
}

impl RegressionReporter {
    /// Raises a notice for each open alert that has none. Returns how many.
    pub(crate) fn report(
        &mut self,
        store: &Store,
        site: &ConfigFile,
        session: &Session,
        now_unix: UnixTime,
    ) -> anyhow::Result<usize> {
        if site.settings.channels.is_empty() {
            return Ok(0);
        }
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => {
                let mut reader = match HistoryReader::open(session.store_location()?) {
                    // Nothing was measured yet.
                    Err(HistoryReadError::Store(StoreError::Empty { .. })) => return Ok(0),
                    opened => opened?,
                };
                reader.add_bisections_of(session.home()?.to_owned());
                reader.keep_summary_of(session.home()?);
                none.insert(reader)
            }
        };
        reader.refresh()?;
        let pass = Pass {
            snapshot: reader.snapshot(1),
            store,
            site,
            home: session.home()?,
            now_unix,
        };
        pass.run()
    }
}

struct Pass<'a> {
    snapshot: HistorySnapshot,
    store: &'a Store,
    site: &'a ConfigFile,
    /// The data directory.
    home: &'a Path,
    now_unix: UnixTime,
}

impl Pass<'_> {
    fn run(&self) -> anyhow::Result<usize> {
        let HistorySnapshot {
            history, alerts, ..
        } = &self.snapshot;
        let is_first = self.store.standing(BEGUN)?.is_none();
        let begun = self.first_running()?;
        let mut raised = 0;
        for one in alerts.iter().filter(|one| one.is_untold()) {
            // A job that began before may still add boots and seeds to what it rests on.
            if begun.is_some_and(|begun| self.newest_run(one) >= Some(begun)) {
                continue;
            }
            let Some(text) = regression_text(history, one, &self.snapshot.found) else {
                continue;
            };
            raised += usize::from(self.raise(one, &text, is_first)?);
        }
        if is_first {
            self.raise_on(
                BEGUN.to_owned(),
                "regressions are reported from now on",
                "",
                &[],
            )?;
        }
        if self.site.settings.regressions.has_digest {
            self.digest(is_first)?;
        }
        Ok(raised)
    }

    /// Returns when the first of the jobs began that run and have a live worker.
    fn first_running(&self) -> anyhow::Result<Option<UnixTime>> {
        let jobs = self.store.running_jobs()?.into_iter();
        let live = jobs.filter(|job| {
            matches!(job.state, JobState::Running { until_unix, .. } if until_unix >= self.now_unix)
        });
        Ok(live.filter_map(|job| job.started_unix).min())
    }

    /// Returns when the newest boot began of the kernels that an alert is about.
    fn newest_run(&self, one: &Triaged) -> Option<UnixTime> {
        let history = &self.snapshot.history;
        let mut newest = None;
        for member in &one.alert.members {
            let (_, series) = history.series().find(|(key, _)| **key == member.key)?;
            let kernels = [one.alert.at, member.between.1];
            let points = series
                .points
                .iter()
                .filter(|point| kernels.contains(&point.kernel));
            for seed in points.flat_map(|point| &point.seeds) {
                newest = newest.max(Some(history.run(seed.run).started_unix));
            }
        }
        newest
    }

    /// Raises the notices about an alert: to those in charge of the code first, as the other one is
    /// the record of both.
    fn raise(&self, one: &Triaged, text: &RegressionText, is_first: bool) -> anyhow::Result<bool> {
        let version = |kernel| self.snapshot.history.kernel(kernel).release.as_str();
        let track = one.alert.decision_track();
        let (after, at) = (version(one.alert.after), version(one.alert.at));
        let subject = regression_subject(&track, after, at);
        if is_first {
            self.raise_on(subject, &text.subject, "", &[])?;
            return Ok(false);
        }
        let settings = &self.site.settings;
        let addresses = self.addresses(one);
        let mail = settings
            .channels
            .iter()
            .find(|channel| matches!(channel.kind, ChannelKind::Mail { .. }));
        let is_sent = settings.regressions.is_sent && text.doubts.is_empty();
        let mail = mail.filter(|_| is_sent && !addresses.is_empty());
        if let Some(mail) = mail {
            let channel = channel_to(&mail.name, &addresses);
            let subject = report_subject(&track, after, at);
            self.raise_on(subject, &text.subject, &text.body, &[&channel])?;
        }
        let mut body = draft(text, &addresses, mail.is_some());
        body.extend(["In this lab: marvin alerts ", &one.alert.name, "\n", STOP]);
        let channels: Vec<&str> = settings
            .channels
            .iter()
            .map(|channel| channel.name.as_str())
            .collect();
        self.raise_on(
            subject,
            &format!("regression: {}", text.subject),
            &body,
            &channels,
        )
    }

    fn raise_on(
        &self,
        subject: String,
        headline: &str,
        body: &str,
        channels: &[&str],
    ) -> anyhow::Result<bool> {
        let notice = Notice {
            subject,
            headline: headline.to_owned(),
            body: body.to_owned(),
            raised_unix: self.now_unix,
        };
        Ok(self.store.raise(&notice, channels)?)
    }

    /// Raises the list of open alerts, once in a week. What has just gone out by itself is in the
    /// next one, and a week that begins without any has none.
    fn digest(&self, is_first: bool) -> anyhow::Result<()> {
        let listed: Vec<Triaged> = self
            .snapshot
            .alerts
            .iter()
            .filter(|one| is_first || !one.is_untold())
            .cloned()
            .collect();
        let week = self.now_unix.days().div_euclid(WEEK_DAYS);
        let subject = format!("digest:{week}");
        let Some(text) = digest_text(&self.snapshot.history, &listed) else {
            self.raise_on(subject, "open regressions: 0", "", &[])?;
            return Ok(());
        };
        let headline = format!("open regressions: {}", text.lines().count());
        let channels: Vec<&str> = self
            .site
            .settings
            .channels
            .iter()
            .map(|channel| channel.name.as_str())
            .collect();
        let body = format!("{text}\nmarvin alerts shows them, marvin triage records a decision.\n");
        self.raise_on(subject, &headline, &body, &channels)?;
        Ok(())
    }

    /// Returns who is to hear of an alert: the addresses of its track, the maintainers of the files
    /// of the commit that a bisection named, and those of the kernel's package.
    fn addresses(&self, one: &Triaged) -> Vec<String> {
        let tracks = self.site.settings.regressions.tracks.iter();
        let mut all: Vec<String> = tracks
            .filter(|track| track.track == one.alert.track)
            .flat_map(|track| track.mail.clone())
            .collect();
        // A tree that is not at hand any more has no addresses.
        let of_code = self.maintainers(one).unwrap_or_default();
        let of_code = of_code.people.into_iter().chain(of_code.lists);
        for address in of_code.chain(self.package_maintainer(one)) {
            if !all.contains(&address) {
                all.push(address);
            }
        }
        all
    }

    /// Returns the address of who maintains the package of the kernel that an alert is about.
    fn package_maintainer(&self, one: &Triaged) -> Option<String> {
        let Origin::Package { name, version } =
            &self.snapshot.history.kernel(one.alert.at).build.origin
        else {
            return None;
        };
        let named = archives::package_maintainer(self.home, name, version)?;
        plain_address(&named)
    }

    fn maintainers(&self, one: &Triaged) -> Option<Addressees> {
        let history = &self.snapshot.history;
        let found = records_of_alert(history, &one.alert, &self.snapshot.found);
        let culprit = found.into_iter().flat_map(|found| &found.culprits).next()?;
        let Origin::Built {
            source: SourceOrigin::Commit { tree, .. },
            ..
        } = &history.kernel(one.alert.at).build.origin
        else {
            return None;
        };
        let tree = Repository::open(Path::new(tree)).ok()?;
        tree.addressees(&culprit.commit).ok()
    }
}

/// Returns what people of the lab get about a regression.
fn draft(text: &RegressionText, addresses: &[String], is_sent: bool) -> String {
    let mut all = if is_sent {
        format!("Marvin sends this to {} as well.\n\n", addresses.join(", "))
    } else {
        "This is a draft for you: Marvin has sent it to no list.\n\n".to_owned()
    };
    for doubt in &text.doubts {
        all.extend(["Not yet a [REGRESSION]: ", doubt.describe(), ".\n\n"]);
    }
    if !is_sent && !addresses.is_empty() {
        all.extend(["To: ", &addresses.join(", "), "\n\n"]);
    }
    all.extend([&*text.body, "\n"]);
    all
}
