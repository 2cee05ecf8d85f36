//! From an address to an answer: one function for servers and files.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use compare::{CompareError, Side};
use history::{History, KernelIx, KernelPair, MachineIx, Overview, overview};
use model::{Build, Machine, MachineId, ReleaseLine, RunId, UnixTime};
use store::{Location, LookupError, Store, StoreError};
use subprocess::Shared;

use crate::address::{LENGTH_MAX, Query, slug, unslug};
use crate::jobs::LabDocument;
use crate::page_cache::PageCache;
use crate::pages::{self, Frame, RowRequest, Show, TRACKS_MAX, TrackSeen, Tracks, machine_digits};
use crate::{api, care, compared, metrics};
use results::HistorySnapshot;

/// Size limit of an artifact in a file of a published site (bytes); a server sends any.
const ARTIFACT_BYTES_MAX: usize = 64 << 20;
/// Limit on cached overviews of two kernels: those of all tracks, and some that readers choose.
const OVERVIEWS: usize = TRACKS_MAX + 8;
/// Limit on open connections to the store.
const STORES: usize = 8;
/// Number of pages made in advance when the store changes.
const RENEWED: usize = 8;

/// The type of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentKind {
    Html,
    Css,
    Script,
    /// A document for programs.
    Json,
    /// Text as it is.
    Text,
    Bytes,
}

impl ContentKind {
    /// Returns its media type.
    #[must_use]
    pub fn mime(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::Css => "text/css; charset=utf-8",
            Self::Script => "text/javascript; charset=utf-8",
            Self::Json => "application/json",
            Self::Text => "text/plain; charset=utf-8",
            Self::Bytes => "application/octet-stream",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status: 200, 404, 500.
    pub status: u16,
    pub kind: ContentKind,
    pub body: Vec<u8>,
}

impl Reply {
    fn ok(kind: ContentKind, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: 200,
            kind,
            body: body.into(),
        }
    }
}

/// An artifact of the store.
#[derive(Debug, Clone)]
pub(crate) struct FoundArtifact {
    run: RunId,
    name: String,
    pub(crate) size: usize,
    pub(crate) kind: ContentKind,
}

/// What clients see of a store that cannot be read.
const UNREADABLE: &str = "cannot read the store; marvin on its host prints the reason";
/// For how long a store that did not answer is not request again: each question keeps a thread that
/// makes pages.
const SILENCE_TIME: Duration = Duration::from_secs(5);

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The address does not exist.
    NotFound(String),
    /// The answer would be too large.
    TooLarge(String),
    /// The server of the store does not answer.
    Silent,
    /// The lab failed, or there is a bug in Marvin.
    Failed(String),
}

impl From<askama::Error> for Refusal {
    fn from(error: askama::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<serde_json::Error> for Refusal {
    fn from(error: serde_json::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        match error {
            // Clients must not see the path of the data directory.
            StoreError::Lookup(LookupError::Unknown { noun, text }) => {
                Self::NotFound(format!("no {noun} {text}"))
            }
            StoreError::Lookup(LookupError::NoArtifact { name, .. }) => {
                Self::NotFound(format!("no artifact {name}"))
            }
            StoreError::Lookup(LookupError::BadId(error)) => Self::NotFound(error.to_string()),
            StoreError::Gone { .. } => Self::Silent,
            _ => Self::Failed(UNREADABLE.to_owned()),
        }
    }
}

/// A site: snapshot, caches and store.
#[derive(Debug)]
pub struct Site {
    location: Location,
    snapshot: Shared<Arc<HistorySnapshot>>,
    /// The snapshot's generation, readable without holding the snapshot: the last holder has to
    /// deallocate it.
    generation: AtomicU64,
    stores: Shared<Vec<Store>>,
    /// When the store's server last did not answer.
    silent: Shared<Option<Instant>>,
    overviews: Shared<Vec<Arc<(u64, Overview)>>>,
    cached: PageCache,
    /// Held while making a cached page, so that concurrent requests make it once.
    making: Shared<()>,
    trouble: Shared<bool>,
    is_static: bool,
    /// The servers of marvin.toml.
    servers: Vec<String>,
    /// Those whose power is off, as far as is known.
    off: Shared<BTreeSet<String>>,
    explain: Explain,
    clock: fn() -> UnixTime,
}

type Answered = Result<Reply, Refusal>;

/// Explains why a workload differs between two builds, in sentences; none if the store does not
/// tell.
pub type Explain = fn(&Store, &[Build; 2], &str) -> Vec<String>;

impl Site {
    /// Makes the site of a store that was read.
    #[must_use]
    pub fn new(location: impl Into<Location>, snapshot: HistorySnapshot) -> Self {
        Self {
            location: location.into(),
            generation: AtomicU64::new(snapshot.generation),
            snapshot: Shared::new(Arc::new(snapshot)),
            stores: Shared::default(),
            silent: Shared::default(),
            overviews: Shared::default(),
            cached: PageCache::default(),
            making: Shared::default(),
            trouble: Shared::new(false),
            is_static: false,
            servers: Vec::new(),
            off: Shared::default(),
            explain: |_, _, _| Vec::new(),
            clock,
        }
    }

    /// Names the servers of marvin.toml, which have no job yet perhaps.
    #[must_use]
    pub fn with_servers(self, servers: Vec<String>) -> Self {
        Self { servers, ..self }
    }

    /// Explains changes of series by a function.
    #[must_use]
    pub fn with_explain(self, explain: Explain) -> Self {
        Self { explain, ..self }
    }

    /// Notes which servers are off.
    pub fn note_off(&self, names: BTreeSet<String>) {
        *self.off.lock() = names;
    }

    /// Takes the time from another clock.
    #[cfg(test)]
    pub(crate) fn with_clock(self, clock: fn() -> UnixTime) -> Self {
        Self { clock, ..self }
    }

    /// Makes the site for files, whose pages have no forms.
    #[must_use]
    pub fn of_files(location: impl Into<Location>, snapshot: HistorySnapshot) -> Self {
        Self {
            is_static: true,
            ..Self::new(location, snapshot)
        }
    }

    /// Shows a newer snapshot. Makes recently viewed pages first, so that readers do not wait for
    /// them.
    pub fn renew(&self, snapshot: HistorySnapshot) {
        for (path, question) in self.cached.latest(RENEWED) {
            let reply = self.made(&snapshot, &path, &question);
            self.cached
                .put(snapshot.generation, &path, &question, &Arc::new(reply));
        }
        let new = Arc::new(snapshot);
        let old = std::mem::replace(&mut *self.snapshot.lock(), Arc::clone(&new));
        self.generation.store(new.generation, Ordering::Release);
        self.cached.forget(new.generation);
        drop(old);
    }

    fn snapshot(&self) -> Arc<HistorySnapshot> {
        Arc::clone(&self.snapshot.lock())
    }

    /// Returns the answer if it is cached, without work or waiting.
    #[must_use]
    pub fn cached(&self, path: &str, question: &str) -> Option<Arc<Reply>> {
        self.cached
            .get(self.generation.load(Ordering::Acquire), path, question)
    }

    /// Records whether the last read of the store failed.
    pub fn note_trouble(&self, is_there: bool) {
        *self.trouble.lock() = is_there;
    }

    /// Returns whether the last read of the store failed.
    #[must_use]
    pub fn has_trouble(&self) -> bool {
        *self.trouble.lock()
    }

    /// Answers a path and a query. Never fails: errors are pages too.
    #[must_use]
    pub fn answer(&self, path: &str, question: &str) -> Arc<Reply> {
        if path.len() > LENGTH_MAX || question.len() > LENGTH_MAX {
            return Arc::new(refusal(
                1,
                Refusal::NotFound("The address is too long.".to_owned()),
            ));
        }
        if !is_cacheable(path) {
            return Arc::new(self.made(&self.snapshot(), path, question));
        }
        let turn = self.making.lock();
        if let Some(reply) = self.cached(path, question) {
            return reply;
        }
        let snapshot = self.snapshot();
        let reply = Arc::new(self.made(&snapshot, path, question));
        self.cached.put(snapshot.generation, path, question, &reply);
        drop(turn);
        reply
    }

    fn made(&self, snapshot: &HistorySnapshot, path: &str, question: &str) -> Reply {
        let parts: Vec<&str> = path.strip_prefix('/').unwrap_or(path).split('/').collect();
        let answered = self.route(snapshot, &parts, &Query::read(question));
        answered.unwrap_or_else(|why| refusal(parts.len() - 1, why))
    }

    fn route(&self, snapshot: &HistorySnapshot, parts: &[&str], question: &Query) -> Answered {
        match parts {
            ["" | "index.html"] => self.overview(snapshot, question),
            ["alerts" | "alerts.html"] => html(pages::alerts(Frame::at(0, "Alerts"), snapshot)),
            ["runs" | "runs.html"] => self.runs(snapshot),
            ["lab" | "lab.html"] => html(pages::lab(Frame::at(0, "Lab"), &self.lab()?)),
            ["style.css"] => Ok(Reply::ok(ContentKind::Css, pages::styles())),
            ["document.css"] => Ok(Reply::ok(ContentKind::Css, document::DOCUMENT_STYLES)),
            ["script.js"] => Ok(Reply::ok(ContentKind::Script, document::SCRIPT)),
            ["metrics"] => Ok(self.metrics(self.lab_metrics())),
            ["api", "v1", name] => self.api(snapshot, name, question),
            ["s", machine, track, file] => self.series(snapshot, machine, track, file, question),
            ["c", machine, base, file] => self.compare(snapshot, machine, base, file),
            ["r", run, "index.html"] => self.run(run),
            ["r", run, name] => self.artifact(run, name),
            ["k", base, target, file] => self.all_rows(snapshot, base, target, file),
            _ => Err(nothing()),
        }
    }

    fn overview(&self, snapshot: &HistorySnapshot, question: &Query) -> Answered {
        let Some(kernels) = pair(&snapshot.history, question)? else {
            let text = "No results yet. Results of marvin run KERNEL appear here by themselves.";
            return html(pages::message(Frame::at(0, "Marvin"), text));
        };
        let page = question.get("page").and_then(|page| page.parse().ok());
        let request = RowRequest {
            show: question.get("show").and_then(Show::read),
            filter: question.get("filter").unwrap_or_default().to_owned(),
            page: page.unwrap_or(1_usize).saturating_sub(1),
            is_static: self.is_static,
            depth: 0,
        };
        self.rows_of(snapshot, kernels, &request)
    }

    /// Returns a page of all rows of two kernels, which has an address without a question: `all-1.html`.
    fn all_rows(
        &self,
        snapshot: &HistorySnapshot,
        base: &str,
        target: &str,
        file: &str,
    ) -> Answered {
        let page = file
            .strip_prefix("all-")
            .and_then(|rest| rest.strip_suffix(".html"));
        let page: usize = page
            .and_then(|page| page.parse().ok())
            .ok_or_else(nothing)?;
        let kernels = KernelPair {
            base: kernel_at(&snapshot.history, base).ok_or_else(nothing)?,
            target: kernel_at(&snapshot.history, target).ok_or_else(nothing)?,
        };
        let request = RowRequest {
            show: Some(Show::All),
            filter: String::new(),
            page: page.saturating_sub(1),
            is_static: true,
            depth: 3,
        };
        self.rows_of(snapshot, kernels, &request)
    }

    fn rows_of(
        &self,
        snapshot: &HistorySnapshot,
        kernels: KernelPair,
        request: &RowRequest,
    ) -> Answered {
        let seen = self.seen(snapshot, kernels);
        let tracks = self.tracks(snapshot);
        html(pages::overview(snapshot, &seen.1, &tracks, request))
    }

    /// Returns the newest comparable kernels of each track, with their counts.
    fn tracks(&self, snapshot: &HistorySnapshot) -> Tracks {
        let history = &snapshot.history;
        let pairs = history.track_pairs();
        let all = pairs.len();
        let mut seen = Vec::new();
        for pair in pairs.into_iter().take(TRACKS_MAX) {
            let overview = self.seen(snapshot, pair.kernels);
            let counts = overview.1.counts_on(history, &pair.machines);
            seen.push(TrackSeen { pair, counts });
        }
        Tracks { seen, all }
    }

    /// Returns the overview of two kernels, computed once per state of the store.
    fn seen(&self, snapshot: &HistorySnapshot, kernels: KernelPair) -> Arc<(u64, Overview)> {
        let is_same = |seen: &Arc<(u64, Overview)>| {
            seen.0 == snapshot.generation
                && (seen.1.base, seen.1.target) == (kernels.base, kernels.target)
        };
        if let Some(found) = self.overviews.lock().iter().find(|seen| is_same(seen)) {
            return Arc::clone(found);
        }
        // Not under the lock: another kernel's overview need not wait for this one.
        let new = Arc::new((
            snapshot.generation,
            overview(&snapshot.history, kernels, &snapshot.alerts),
        ));
        let mut overviews = self.overviews.lock();
        overviews.retain(|seen| seen.0 >= snapshot.generation && !is_same(seen));
        overviews.truncate(OVERVIEWS - 1);
        overviews.insert(0, Arc::clone(&new));
        new
    }

    fn api(&self, snapshot: &HistorySnapshot, name: &str, question: &Query) -> Answered {
        let body = match name {
            "overview.json" => match pair(&snapshot.history, question)? {
                Some(kernels) => api::overview(&snapshot.history, &self.seen(snapshot, kernels).1)?,
                None => return Err(Refusal::NotFound("No results yet.".to_owned())),
            },
            "series.json" => {
                let values_max = if self.is_static {
                    usize::MAX
                } else {
                    api::VALUES_MAX
                };
                api::series(&snapshot.history, question, values_max)?
            }
            "lab.json" => serde_json::to_string(&self.lab()?)?,
            "runs.json" => api::runs(&self.with_store(|store| Ok(store.runs(pages::RUNS_MAX)?))?)?,
            other => api::document(snapshot, other)?.ok_or_else(nothing)?,
        };
        Ok(Reply::ok(ContentKind::Json, model::escape_json(&body)))
    }

    fn runs(&self, snapshot: &HistorySnapshot) -> Answered {
        let newest = self.with_store(|store| Ok(store.runs(pages::RUNS_MAX)?))?;
        html(pages::runs(
            Frame::at(0, "Runs"),
            &snapshot.history,
            &newest,
        ))
    }

    fn lab(&self) -> Result<LabDocument, Refusal> {
        let off = self.off.lock().clone();
        self.with_store(|store| {
            Ok(LabDocument::read(
                store,
                &self.servers,
                &off,
                (self.clock)(),
            )?)
        })
    }

    /// Returns the metrics of machines and queue; `None` if the store cannot be read.
    pub(crate) fn lab_metrics(&self) -> Option<String> {
        let lab = self.lab().ok()?.metrics();
        let care = self.with_store(|store| Ok(care::metrics(store)?)).ok()?;
        Some(lab + &care)
    }

    /// Returns whether the lab is well, for a load balancer or a watchdog: the store answers now, and
    /// did so when it was last read for new results.
    pub(crate) fn healthz(&self, answers: bool) -> Reply {
        let is_read = !*self.trouble.lock();
        let mut reply = Reply::ok(
            ContentKind::Text,
            match (answers, is_read) {
                (true, true) => "ok\n",
                (false, _) => "the store does not answer\n",
                (true, false) => "the last read of the store failed\n",
            },
        );
        if !(answers && is_read) {
            reply.status = 503;
        }
        reply
    }

    /// Returns all metrics. Without those of the lab the others still say that the store is
    /// unreadable.
    pub(crate) fn metrics(&self, lab: Option<String>) -> Reply {
        let trouble = *self.trouble.lock();
        let text = metrics::text(&self.snapshot(), trouble || lab.is_none());
        Reply::ok(ContentKind::Text, text + &lab.unwrap_or_default())
    }

    fn run(&self, id: &str) -> Answered {
        let shown = self.with_store(|store| {
            let id: RunId =
                RunId::from_hex(id).map_err(|error| Refusal::NotFound(error.to_string()))?;
            let run = store.run(&id)?;
            let build = store.build(&run.build)?;
            let machine = store.machine(&run.machine)?;
            let (omitted, sent): (Vec<_>, Vec<_>) = store
                .artifact_sizes(&id)?
                .into_iter()
                .partition(|(_, size)| self.is_static && *size > ARTIFACT_BYTES_MAX);
            let artifacts = sent.into_iter().map(|(name, _)| name).collect();
            Ok(pages::Shown {
                artifacts,
                omitted,
                run,
                build,
                machine,
            })
        })?;
        html(pages::run(Frame::at(2, shown.run.id.short()), &shown))
    }

    /// Returns an artifact as a file of a published site.
    fn artifact(&self, id: &str, name: &str) -> Answered {
        let found = self.find_artifact(id, name)?;
        if found.size > ARTIFACT_BYTES_MAX {
            let mib = found.size >> 20;
            let how = pages::get_artifact(&found.run, name);
            let text = format!(
                "{name} has {mib} MiB, too large for these pages. Who has the results gets it with: {how}"
            );
            return Err(Refusal::TooLarge(text));
        }
        let mut bytes = Vec::new();
        self.copy_artifact(&found, &mut |piece| {
            bytes.extend_from_slice(piece);
            true
        })?;
        Ok(Reply::ok(found.kind, bytes))
    }

    /// Finds an artifact. Compares names with the store's list only, so that a path has no meaning.
    fn find_artifact(&self, id: &str, name: &str) -> Result<FoundArtifact, Refusal> {
        self.with_store(|store| {
            let run = RunId::from_hex(id).map_err(|error| Refusal::NotFound(error.to_string()))?;
            let (name, size) = store
                .artifact_sizes(&run)?
                .into_iter()
                .find(|(known, _)| known == name)
                .ok_or_else(nothing)?;
            let kind = if name.ends_with(".console") {
                ContentKind::Text
            } else {
                ContentKind::Bytes
            };
            Ok(FoundArtifact {
                run,
                name,
                size,
                kind,
            })
        })
    }

    /// Returns the artifact at a path, for a server that sends it in pieces; `None` for other paths
    /// and errors, which [`Site::answer`] has pages for.
    pub(crate) fn artifact_at(&self, path: &str) -> Option<FoundArtifact> {
        let parts: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
        match parts.as_slice() {
            ["r", run, name] if *name != "index.html" => self.find_artifact(run, name).ok(),
            _ => None,
        }
    }

    /// Hands an artifact over in pieces of bounded size, until `take` returns false. After an
    /// error, none of the pieces may count.
    pub(crate) fn copy_artifact(
        &self,
        found: &FoundArtifact,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<(), Refusal> {
        self.with_store(|store| Ok(store.copy_artifact(&found.run, &found.name, take)?))
    }

    fn compare(
        &self,
        snapshot: &HistorySnapshot,
        machine: &str,
        base: &str,
        file: &str,
    ) -> Answered {
        let history = &snapshot.history;
        let machine = machine_named(history, machine).ok_or_else(nothing)?;
        let new = file.strip_suffix(".html").ok_or_else(nothing)?;
        let base = kernel_at(history, base).ok_or_else(nothing)?;
        let new = kernel_at(history, new).ok_or_else(nothing)?;
        let known = history.machine(machine);
        let others = history
            .same_machine(machine)
            .into_iter()
            .filter(|other| *other != machine);
        let also: Vec<&Machine> = others.map(|other| history.machine(other)).collect();
        let machines: Vec<&MachineId> = [known]
            .into_iter()
            .chain(also.iter().copied())
            .map(|m| &m.id)
            .collect();
        let old_build = &history.kernel(base).build;
        let new_build = &history.kernel(new).build;
        let mut old =
            self.with_store(|store| Ok(compared::all_runs(store, old_build, &machines)?))?;
        let mut new =
            self.with_store(|store| Ok(compared::all_runs(store, new_build, &machines)?))?;
        let command = format!(
            "marvin compare {} {}",
            old_build.exact_name(),
            new_build.exact_name()
        );
        let Some(mut question) =
            compared::common_question(known.capabilities(), [&old, &new], command)
        else {
            let text = "The two kernels have no seed and no known workload in common.";
            return html(pages::message(Frame::at(3, "No comparison"), text));
        };
        question.scatters = history.scatters(&machines, &[&old_build.id, &new_build.id]);
        if known.capabilities().foreign {
            let ids: Vec<String> = old.iter().chain(&new).map(|run| run.id.short()).collect();
            question.command = format!("marvin report {}", ids.join(" "));
        }
        compared::as_one_suite(&mut old);
        compared::as_one_suite(&mut new);
        let sides = [(old_build, &old), (new_build, &new)].map(|(build, runs)| Side {
            build,
            machine: known,
            also: also.clone(),
            runs: runs.iter().collect(),
        });
        let comparison = match compare::compare(&sides[0], &sides[1..], &question) {
            Ok(comparison) => comparison,
            Err(error @ CompareError::MetricChanged { .. }) => {
                return html(pages::message(Frame::at(3, "Refused"), &error.to_string()));
            }
            Err(error) => return Err(Refusal::Failed(error.to_string())),
        };
        let document = compare::render::comparison(&comparison, &document::View::default());
        let page = document
            .html_of_site("../../../")
            .map_err(|error| Refusal::Failed(error.to_string()))?;
        let back = "<main>\n<nav aria-label=\"Pages\"><a href=\"../../../index.html\">Overview</a> \
                    <a href=\"../../../alerts.html\">Alerts</a> <a href=\"../../../runs.html\">Runs</a> \
                    <a href=\"../../../lab.html\">Lab</a></nav>";
        Ok(Reply::ok(
            ContentKind::Html,
            page.replacen("<main>", back, 1),
        ))
    }

    fn series(
        &self,
        snapshot: &HistorySnapshot,
        machine: &str,
        track: &str,
        file: &str,
        question: &Query,
    ) -> Answered {
        let history = &snapshot.history;
        let machine = machine_named(history, machine).ok_or_else(nothing)?;
        let workload = file.strip_suffix(".html").ok_or_else(nothing)?;
        let line: ReleaseLine = question
            .get("line")
            .map_or(Ok(ReleaseLine::All), str::parse)
            .map_err(|_| nothing())?;
        let key = history
            .series()
            .map(|(key, _)| key)
            .find(|key| {
                key.machine == machine
                    && slug(&key.track) == track
                    && slug(&key.workload) == workload
            })
            .ok_or_else(nothing)?
            .clone();
        let frame = Frame::at(3, key.workload.to_string());
        html(pages::series(
            frame,
            history,
            &snapshot.alerts,
            line,
            &[key],
            &|base, new, workload| {
                let builds = [base, new].map(|kernel| history.kernel(kernel).build.clone());
                // Without a readable store the page has everything else.
                self.with_store(|store| Ok((self.explain)(store, &builds, workload)))
                    .unwrap_or_default()
            },
        ))
    }

    fn with_store<T>(&self, work: impl FnOnce(&Store) -> Result<T, Refusal>) -> Result<T, Refusal> {
        if self
            .silent
            .lock()
            .is_some_and(|since| since.elapsed() < SILENCE_TIME)
        {
            return Err(Refusal::Silent);
        }
        // A statement of its own, so that the lock is not held while a store is opened.
        let idle = self.stores.lock().pop();
        let store = match idle {
            Some(store) => store,
            None => Store::open_read_only(&self.location)
                .map_err(|error| self.note_silence(error.into()))?,
        };
        let result = work(&store).map_err(|refusal| self.note_silence(refusal));
        let mut stores = self.stores.lock();
        if stores.len() < STORES {
            stores.push(store);
        }
        result
    }

    /// Notes that the store's server does not answer, if that is why there is no answer.
    fn note_silence(&self, refusal: Refusal) -> Refusal {
        if matches!(refusal, Refusal::Silent) {
            *self.silent.lock() = Some(Instant::now());
        }
        refusal
    }
}

/// Returns the time of this host.
fn clock() -> UnixTime {
    UnixTime::from(std::time::SystemTime::now())
}

/// Returns whether a page depends on the snapshot only, and not on later reads of the store.
fn is_cacheable(path: &str) -> bool {
    matches!(path, "/" | "/index.html" | "/alerts" | "/alerts.html") || path.starts_with("/s/")
}

fn html(page: Result<String, askama::Error>) -> Answered {
    Ok(Reply::ok(ContentKind::Html, page?))
}

fn nothing() -> Refusal {
    Refusal::NotFound("There is no page at this address.".to_owned())
}

/// Returns an error page, for an address this many directories below the top.
fn refusal(depth: usize, why: Refusal) -> Reply {
    let (status, title, text) = match why {
        Refusal::NotFound(text) => (404, "Not found", text),
        Refusal::TooLarge(text) => (413, "Too large", text),
        Refusal::Silent => (500, "Failed", UNREADABLE.to_owned()),
        Refusal::Failed(text) => (500, "Failed", text),
    };
    let page =
        pages::message(Frame::at(depth.min(8), title), &text).unwrap_or_else(|_| title.to_owned());
    Reply {
        status,
        kind: ContentKind::Html,
        body: page.into_bytes(),
    }
}

/// Returns the requested or default kernels; `None` if there are no results.
fn pair(history: &History, question: &Query) -> Result<Option<KernelPair>, Refusal> {
    let Some(usual) = history.usual_pair() else {
        return Ok(None);
    };
    let base_named = question.get("base").map(|name| find_kernel(history, name));
    let target_named = question
        .get("target")
        .map(|name| find_kernel(history, name));
    Ok(Some(
        match (base_named.transpose()?, target_named.transpose()?) {
            (Some(base), target_named) => KernelPair {
                base,
                target: target_named.unwrap_or(usual.target),
            },
            (None, Some(target)) => KernelPair {
                base: history.usual_base(target),
                target,
            },
            (None, None) => usual,
        },
    ))
}

fn machine_named(history: &History, digits: &str) -> Option<MachineIx> {
    history
        .machine_indexes()
        .find(|machine| machine_digits(history, *machine) == digits)
}

fn find_kernel(history: &History, name: &str) -> Result<KernelIx, Refusal> {
    history
        .kernel_named(name)
        .ok_or_else(|| Refusal::NotFound(format!("No results of a kernel {name}.")))
}

/// Returns the kernel of a part of an address.
fn kernel_at(history: &History, part: &str) -> Option<KernelIx> {
    history.kernel_named(&unslug(part)?)
}
