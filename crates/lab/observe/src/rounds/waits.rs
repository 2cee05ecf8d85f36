//! Where blocked threads are, on what they wait, and what those do for whom they wait.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::Path;
use std::rc::Rc;

use explain::facts::{Behind, Connection, Doing, Futex, Object, Role, Wait, Watched, WatchedKind};

use super::{Process, Rounds};
use crate::calls;
use crate::ends::{self, Described, Own};
use crate::jvm;
use crate::memory;
use crate::proc;
use crate::ready::ready;
use crate::scripts::{self, Scripts};
use crate::symbols::{Modules, file_name};
use crate::tree::read;
use crate::unwind::Captured;

/// How often the stack of a place is tried to be read.
const TRIES: u32 = 6;
/// Ways to come to a place that are kept.
const WAYS_MAX: usize = 4;
/// Stacks that are kept.
const STACKS_MAX: usize = 2000;
/// Files that are described of those that a thread watches.
const WATCHED_MAX: usize = 8;
/// Places whose counterparts are looked at in a round, and counterparts of a place.
const PLACES_MAX: usize = 64;
const BEHIND_MAX: usize = 8;
/// Sockets of a thread that are counted.
const SOCKETS_MAX: usize = 1000;
/// Bytes of a `struct pollfd` (include/uapi/asm-generic/poll.h), and how many are read.
const POLLFD: usize = 8;
const POLLFDS: u64 = 64;
/// What every epoll is called (fs/eventpoll.c).
const EPOLL_FILE: &str = "anon_inode:[eventpoll]";
/// What is read of a path (bytes).
const PATH_MAX: usize = 256;

/// Where a thread is blocked.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    is_uninterruptible: bool,
    call: String,
    function: String,
    object: Object,
    /// The thread, where the rest does not tell what it waits for.
    pub(super) who: u32,
}

/// A blocked thread in this round.
#[derive(Debug, Clone)]
pub(crate) struct Blocked {
    place: Place,
    process: u32,
    call: proc::Call,
}

/// A thread for which others wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Counterpart {
    role: Role,
    process: u32,
    /// 0 for any of the process.
    thread: u32,
}

/// A stack and what is mapped where.
#[derive(Debug)]
pub(super) struct Stack {
    process: u32,
    maps: Rc<Vec<proc::Mapping>>,
    /// Programs that the process had executed.
    executed: u32,
    captured: Captured,
    /// The functions of its script, if it is an interpreter.
    script: Vec<String>,
}

impl Stack {
    /// Reads the stack of a blocked thread; `None` if its process executed another program since the
    /// mappings were read.
    pub(super) fn read(
        id: u32,
        thread: u32,
        of: &Process,
        memory: &File,
        call: &proc::Call,
        scripts: &mut Scripts,
    ) -> Option<Self> {
        let is_mapped = |map: &proc::Mapping| (map.start..map.end).contains(&call.program_counter);
        if !of.maps.iter().any(is_mapped) {
            return None;
        }
        let captured = Captured::read(memory, &of.maps, call);
        let script = match scripts.stack(id, thread) {
            Some(script) => script.clone(),
            None => scripts.frames(id, call.stack_pointer, captured.bytes()),
        };
        Some(Self {
            process: id,
            maps: Rc::clone(&of.maps),
            executed: of.executed,
            captured,
            script,
        })
    }

    /// Names its functions, innermost first, with those of the script.
    pub(super) fn name(&self, of: Option<&Process>, modules: &mut Modules) -> Vec<String> {
        // Libraries that were mapped after the stack was read are in the later list.
        let maps = match of {
            Some(of) if of.executed == self.executed => &of.maps,
            _ => &self.maps,
        };
        let program = of.map_or("", |of| &of.program);
        let addresses = self.captured.unwind(maps, modules);
        let mut functions = modules.name_all(maps, program, &addresses);
        scripts::insert(&mut functions, &self.script);
        functions
    }
}

/// What is known of a place beside its time.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    /// How often its stack was tried to be read.
    tries: u32,
    /// Its stacks by their stack pointers, with how long it waited there (s): a thread may come to
    /// one place in several ways.
    stacks: BTreeMap<u64, (f64, Option<Stack>)>,
    watched: Vec<Watched>,
    /// What counterparts did, by looks; `None` for running.
    doing: BTreeMap<Counterpart, BTreeMap<Option<Place>, u64>>,
    connection: Option<Connection>,
}

impl Rounds {
    pub(super) fn look_at_wait(&mut self, process: u32, id: u32, state: char, seconds: f64) {
        let folder = format!("/proc/{process}/task/{id}");
        let Ok(text) = fs::read_to_string(format!("{folder}/syscall")) else {
            self.is_denied = true;
            return;
        };
        let Some(call) = proc::syscall(&text) else {
            return;
        };
        let place = self.place(process, id, state, call);
        let wait = self
            .waits
            .entry(place.clone())
            .or_insert_with(|| describe(&place));
        wait.seconds += seconds;
        let timeout = call
            .number
            .and_then(|number| match calls::limit(number, &call.arguments) {
                // What a thread that went on has there now is something else.
                Some(limit) => limit.ms(process).filter(|_| {
                    fs::read_to_string(format!("{folder}/syscall")).is_ok_and(|now| now == text)
                }),
                None => calls::timeout_ms(number, &call.arguments),
            });
        wait.timeout_ms = wait.timeout_ms.max(timeout);
        if !wait.threads.contains(&id) {
            wait.threads.push(id);
        }
        self.count_socket(process, id, &call);
        self.capture(&place, process, id, &call, seconds);
        let blocked = Blocked {
            place,
            process,
            call,
        };
        self.now.insert(id, Some(blocked));
    }

    /// Notes at which socket a thread is blocked: how many there are tells of new connections.
    fn count_socket(&mut self, process: u32, id: u32, call: &proc::Call) {
        let has_socket = call
            .number
            .is_some_and(|number| calls::has_file(number) && !calls::EPOLL.contains(&number));
        let followed = self.threads.get_mut(&id).filter(|_| has_socket);
        let Some(followed) = followed.filter(|one| one.sockets.len() < SOCKETS_MAX) else {
            return;
        };
        let link = fs::read_link(format!("/proc/{process}/fd/{}", call.arguments[0]));
        let link = link.unwrap_or_default().to_string_lossy().into_owned();
        if link.starts_with("socket:") {
            followed.sockets.insert(link);
        }
    }

    pub(super) fn place(&mut self, process: u32, id: u32, state: char, call: proc::Call) -> Place {
        let function = match state {
            // Those are the names that the kernel has for it (kernel/signal.c).
            't' => "ptrace_stop".into(),
            'T' => "do_signal_stop".into(),
            _ => fs::read_to_string(format!("/proc/{process}/task/{id}/wchan")).unwrap_or_default(),
        };
        let object = if matches!(state, 't' | 'T') {
            Object::Stop
        } else {
            self.object(process, call)
        };
        let is_told = match &object {
            Object::Futex(_) | Object::Stop => true,
            Object::Timer => false,
            // Every epoll file has this name.
            Object::File(file) => !file.starts_with("anon_inode:"),
            Object::Unknown | Object::Child => false,
        };
        Place {
            is_uninterruptible: state == 'D',
            call: call.number.map(calls::name).unwrap_or_default(),
            function: if function == "0" {
                String::new()
            } else {
                function
            },
            object,
            who: if is_told { 0 } else { id },
        }
    }

    /// Keeps the stack of a thread at a place, if none is kept yet of this stack pointer.
    fn capture(&mut self, place: &Place, process: u32, id: u32, call: &proc::Call, seconds: f64) {
        let kept = self.captured;
        let around = self.surroundings.entry(place.clone()).or_default();
        let known = around.stacks.len();
        let pointer = call.stack_pointer;
        if known >= WAYS_MAX && !around.stacks.contains_key(&pointer) {
            return;
        }
        let (waited, stack) = around.stacks.entry(pointer).or_default();
        *waited += seconds;
        let is_enough = stack.is_some() || around.tries >= TRIES || kept >= STACKS_MAX;
        if is_enough || !cfg!(target_arch = "x86_64") {
            return;
        }
        let Some(of) = self.processes.get(&process) else {
            return;
        };
        let Some(memory) = memory::open(process) else {
            around.tries += 1;
            return;
        };
        // Of another program than before the next round has the mappings.
        if let Some(read) = Stack::read(process, id, of, &memory, call, &mut self.scripts) {
            around.tries += 1;
            *stack = Some(read);
            self.captured += 1;
        }
    }

    /// Names the functions of the stacks that were kept.
    pub(super) fn name_stacks(&mut self) {
        for (place, around) in &mut self.surroundings {
            let longest = std::mem::take(&mut around.stacks)
                .into_values()
                .filter(|(_, stack)| stack.is_some())
                .max_by(|one, other| one.0.total_cmp(&other.0));
            let stack = longest.and_then(|(_, stack)| stack);
            let (Some(stack), Some(wait)) = (stack, self.waits.get_mut(place)) else {
                continue;
            };
            let of = self.processes.get(&stack.process);
            wait.stack = stack.name(of, &mut self.modules);
            self.jvms.name(&mut wait.stack, &wait.threads);
        }
        self.name_stacks_outside();
    }

    fn object(&mut self, process: u32, call: proc::Call) -> Object {
        match call.number {
            Some(calls::FUTEX) => Object::Futex(self.futex(process, call.arguments[0])),
            Some(number)
                if calls::CHILDREN.contains(&number) || calls::CREATIONS.contains(&number) =>
            {
                Object::Child
            }
            Some(number) if calls::watches_nothing(number, &call.arguments) => Object::Timer,
            Some(number) if calls::has_file(number) => {
                let described = self.file(process, call.arguments[0]).text;
                if described.is_empty() {
                    Object::Unknown
                } else {
                    Object::File(described)
                }
            }
            Some(number) => match calls::path_argument(number) {
                Some(which) => named_path(process, call.arguments[which]),
                None => Object::Unknown,
            },
            None => Object::Unknown,
        }
    }

    /// Describes an open file in words, of an epoll what makes it return; empty without one.
    pub(crate) fn describe_file(&mut self, process: u32, number: u64) -> String {
        let described = self.file(process, number).text;
        if described != EPOLL_FILE {
            return described;
        }
        if let Some(known) = self.ready.get(&(process, number)) {
            return known.clone();
        }
        let first = ready(process, number).into_iter().next();
        let text = first.map_or(described, |(number, what)| {
            format!("ready: {} ({what})", self.file(process, number).text)
        });
        self.ready.insert((process, number), text.clone());
        text
    }

    /// Describes an open file: its path, the peer of a socket, or who else has a pipe.
    fn file(&mut self, process: u32, number: u64) -> Described {
        if let Some(known) = self.files.get(&(process, number)) {
            return known.clone();
        }
        let link = fs::read_link(format!("/proc/{process}/fd/{number}")).unwrap_or_default();
        let link = link.to_string_lossy().into_owned();
        // Of the open file, not of what this host has at its path.
        let mut is_pipe = link.starts_with("pipe:");
        if link.starts_with('/')
            && let Ok(status) = fs::metadata(format!("/proc/{process}/fd/{number}"))
        {
            self.devices.insert(link.clone(), status.dev());
            is_pipe = status.file_type().is_fifo();
        }
        let alive: BTreeSet<u32> = self.alive().into_iter().collect();
        let own = Own {
            root: self.root,
            alive: &alive,
        };
        let is_path = link.starts_with('/') && !is_pipe;
        let mut described = if is_pipe {
            self.ends.describe_pipe(process, number, &link, own)
        } else {
            self.ends.describe(process, link.clone(), own)
        };
        if is_path {
            described.text.push_str(how_open(process, number));
        }
        if let Some(other) = other_side(&link)
            && alive.iter().any(|one| ends::has_open_below(*one, other))
        {
            described.text = format!("own {}", described.text);
        }
        self.files.insert((process, number), described.clone());
        described
    }

    fn futex(&self, process: u32, address: u64) -> Futex {
        let mut futex = Futex {
            word: (process, address),
            ..Futex::default()
        };
        let Some(of) = self.processes.get(&process) else {
            return futex;
        };
        if let Some(mapping) = of
            .maps
            .iter()
            .find(|mapping| (mapping.start..mapping.end).contains(&address))
        {
            let offset = address - mapping.start
                + if mapping.path.starts_with('/') {
                    mapping.offset
                } else {
                    0
                };
            let name = if mapping.path.is_empty() {
                "anonymous memory"
            } else {
                file_name(&mapping.path)
            };
            futex.mapping = format!("{name}+{offset:#x}");
        }
        let word = |at: u64| -> Option<u32> {
            let mut bytes = [0; 4];
            memory::open(process)?.read_exact_at(&mut bytes, at).ok()?;
            Some(u32::from_le_bytes(bytes))
        };
        let is_thread =
            |id: u32| id != 0 && Path::new(&format!("/proc/{process}/task/{id}")).exists();
        // pthread_join waits for the word that has the thread's id (glibc: struct pthread.tid).
        futex.is_join = word(address).is_some_and(is_thread);
        futex
    }

    /// Returns the thread that a mutex's word names as its owner (glibc, x86-64:
    /// `pthread_mutex_t.__owner`, 8 bytes behind the word).
    fn owner(&self, process: u32, address: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        memory::open(process)?
            .read_exact_at(&mut bytes, address.checked_add(8)?)
            .ok()?;
        let id = u32::from_le_bytes(bytes);
        self.threads
            .get(&id)
            .is_some_and(|thread| thread.process == process)
            .then_some(id)
    }

    /// Looks at whom the blocked threads of this round wait for, and what those do.
    pub(super) fn look_behind(&mut self) {
        let mut seen = BTreeSet::new();
        let blocked: Vec<(u32, Blocked)> = self
            .now
            .iter()
            .filter_map(|(id, blocked)| Some((*id, blocked.clone()?)))
            .filter(|(_, blocked)| seen.insert(blocked.place.clone()))
            .collect();
        // With more places than that, others have their turn in the next round.
        let places = blocked.len();
        let first = self.turn % places.max(1);
        let turn = blocked
            .iter()
            .cycle()
            .skip(first)
            .take(places.min(PLACES_MAX));
        for (id, blocked) in turn {
            self.look_behind_one(*id, blocked);
        }
        self.turn = first + PLACES_MAX.min(places);
    }

    fn look_behind_one(&mut self, id: u32, blocked: &Blocked) {
        let Blocked {
            place,
            process,
            call,
        } = blocked;
        let process = *process;
        let is_file_lock =
            matches!(call.number, Some(number) if calls::FILE_LOCKS.contains(&number));
        let mut watched = Vec::new();
        let mut found = match (&place.object, call.number) {
            (Object::Futex(futex), _) if !futex.is_join => self
                .jvms
                .holder(id)
                .or_else(|| self.owner(process, futex.word.1))
                .map(|thread| Counterpart {
                    role: Role::Holder,
                    process,
                    thread,
                })
                .into_iter()
                .collect(),
            (Object::Stop, _) => tracer(process, id),
            (_, Some(number)) if calls::FILE_LOCKS.contains(&number) => {
                holders(self.ends.lock_holders(process, call.arguments[0]))
            }
            (_, Some(number)) if calls::SLEEPS.contains(&number) => {
                let locked = self.ends.locked_file(process);
                watched.extend(locked.iter().map(|(file, _)| Watched {
                    kind: WatchedKind::Other,
                    file: file.clone(),
                }));
                holders(locked.map(|(_, holder)| holder))
            }
            (_, Some(number)) => {
                let files = if calls::has_file(number) && !calls::EPOLL.contains(&number) {
                    vec![call.arguments[0]]
                } else {
                    watched_files(process, number, call.arguments)
                };
                let is_poll = !calls::has_file(number) || calls::EPOLL.contains(&number);
                self.peers(place, process, &files, is_poll.then_some(&mut watched))
            }
            _ => Vec::new(),
        };
        found.truncate(BEHIND_MAX);
        let doing: Vec<(Counterpart, Option<Place>)> = found
            .into_iter()
            .filter(|one| (one.process, one.thread) != (process, id))
            .filter_map(|one| Some((one, self.place_of(one)?)))
            // One that waits there itself does not hold the lock yet, but for a process that has
            // locked the file by another descriptor.
            .filter(|(one, doing)| {
                doing.as_ref() != Some(place) || is_file_lock && one.process == process
            })
            .collect();
        let around = self.surroundings.entry(place.clone()).or_default();
        if !watched.is_empty() {
            around.watched = watched;
        }
        for (counterpart, place) in doing {
            let is_known = around.doing.contains_key(&counterpart);
            if is_known || around.doing.len() < BEHIND_MAX {
                let places = around.doing.entry(counterpart).or_default();
                *places.entry(place).or_default() += 1;
            }
        }
    }

    /// Returns the processes at the other ends of files, and describes these files.
    fn peers(
        &mut self,
        place: &Place,
        process: u32,
        files: &[u64],
        mut watched: Option<&mut Vec<Watched>>,
    ) -> Vec<Counterpart> {
        let mut found = BTreeSet::new();
        for number in files.iter().take(WATCHED_MAX) {
            let described = self.file(process, *number);
            if let Some(both) = described.connection {
                self.look_at_connection(place, process, both.0, both.1);
            }
            found.extend(described.peers.iter().map(|peer| Counterpart {
                role: Role::Peer,
                process: *peer,
                thread: 0,
            }));
            if let (Some(watched), Some(kind)) = (&mut watched, described.kind) {
                watched.push(Watched {
                    kind,
                    file: described.text,
                });
            }
        }
        found.into_iter().collect()
    }

    fn look_at_connection(&mut self, place: &Place, process: u32, socket: u64, peer: u64) {
        let (tcp, is_unread) = self.ends.tcp(process, socket, peer);
        let Some([own, other]) = tcp else {
            return;
        };
        let around = self.surroundings.entry(place.clone()).or_default();
        let connection = around.connection.get_or_insert_default();
        connection.looks += 1;
        connection.held[0] += u64::from(own.is_held());
        connection.held[1] += u64::from(other.is_held());
        connection.unread += u64::from(is_unread);
        connection.tcp = own;
    }

    /// Returns where a counterpart is now: within, `None` if it runs; `None` if it is gone.
    fn place_of(&mut self, one: Counterpart) -> Option<Option<Place>> {
        if self.processes.contains_key(&one.process) {
            let of_process = |id: &u32| {
                self.threads.get(id).is_some_and(|thread| {
                    thread.process == one.process && thread.name != jvm::LISTENER
                })
            };
            let mut of: Vec<&Option<Blocked>> = self
                .now
                .iter()
                .filter(|(id, _)| one.thread == **id || one.thread == 0 && of_process(id))
                .map(|(_, blocked)| blocked)
                .collect();
            of.sort_by_key(|blocked| rank(blocked.as_ref().map(|blocked| &blocked.place)));
            return Some(of.first()?.as_ref().map(|blocked| blocked.place.clone()));
        }
        self.place_outside(one.process)
    }

    /// Returns the waits, with all that is known of them. Those of several threads at equal stacks
    /// become one.
    pub(super) fn described_waits(&self) -> Vec<Wait> {
        let mut merged: BTreeMap<(Place, &[String], bool), Wait> = BTreeMap::new();
        for (place, wait) in &self.waits {
            let mut wait = wait.clone();
            if let Some(around) = self.surroundings.get(place) {
                wait.watched.clone_from(&around.watched);
                wait.connection = around.connection;
                wait.behind = self.behind(around);
            }
            let key = Place {
                who: 0,
                ..place.clone()
            };
            let stack = self.waits.get(place).map_or(&[][..], |wait| &wait.stack);
            let of = wait.threads.first().and_then(|id| self.threads.get(id));
            // What the program itself waits for, and what its children do, are two things.
            let is_root = of.is_some_and(|thread| thread.process == self.root);
            match merged.get_mut(&(key.clone(), stack, is_root)) {
                Some(known) => {
                    known.seconds += wait.seconds;
                    known.timeout_ms = known.timeout_ms.max(wait.timeout_ms);
                    known.threads.extend(wait.threads);
                    if known.behind.is_empty() {
                        known.behind = wait.behind;
                        known.watched = wait.watched;
                        known.connection = wait.connection;
                    }
                }
                None => {
                    merged.insert((key, stack, is_root), wait);
                }
            }
        }
        merged.into_values().collect()
    }

    fn behind(&self, around: &Surroundings) -> Vec<Behind> {
        let mut behind: Vec<Behind> = Vec::new();
        for (one, places) in &around.doing {
            let mut doing: Vec<Doing> = places
                .iter()
                .map(|(place, looks)| Doing {
                    wait: place.as_ref().map(|place| {
                        let known = self.waits.get(place).cloned();
                        Box::new(known.unwrap_or_else(|| Wait {
                            stack: self.outside.stack(one.process, Some(place)),
                            ..describe(place)
                        }))
                    }),
                    looks: *looks,
                    stack: match place {
                        Some(_) => Vec::new(),
                        None if self.processes.contains_key(&one.process) => {
                            self.jvms.running(one.thread)
                        }
                        None => self.outside.stack(one.process, None),
                    },
                })
                .collect();
            doing.sort_by_key(|doing| std::cmp::Reverse(doing.looks));
            let of_thread = self
                .threads
                .get(&one.thread)
                .map(|thread| thread.name.clone());
            behind.push(Behind {
                role: one.role,
                process: one.process,
                thread: if one.thread == 0 {
                    one.process
                } else {
                    one.thread
                },
                name: of_thread.unwrap_or_else(|| self.name_of(one.process)),
                is_own: self.processes.contains_key(&one.process),
                doing,
            });
        }
        let looks = |behind: &Behind| behind.doing.iter().map(|doing| doing.looks).sum::<u64>();
        behind.sort_by_key(|behind| std::cmp::Reverse(looks(behind)));
        behind
    }

    fn name_of(&self, process: u32) -> String {
        let known = self.threads.get(&process).map(|thread| thread.name.clone());
        known.unwrap_or_else(|| self.outside.name(process))
    }
}

/// The order in which threads of a process say what it does: one that runs, then one that waits for
/// something outside, then one that waits for others of the process.
pub(super) fn rank(place: Option<&Place>) -> u8 {
    match place.map(|place| &place.object) {
        None => 0,
        Some(Object::Stop) => 1,
        Some(Object::Futex(_) | Object::Child) => 3,
        Some(_) => 2,
    }
}

fn holders(processes: impl IntoIterator<Item = u32>) -> Vec<Counterpart> {
    let holder = |process| Counterpart {
        role: Role::Holder,
        process,
        thread: 0,
    };
    processes.into_iter().map(holder).collect()
}

/// Returns who traces a thread.
fn tracer(process: u32, thread: u32) -> Vec<Counterpart> {
    let status = read(&format!("/proc/{process}/task/{thread}/status")).unwrap_or_default();
    let tracer = proc::value(&status, "TracerPid").filter(|tracer| *tracer > 0);
    let tracer = tracer.and_then(|tracer| u32::try_from(tracer).ok());
    tracer
        .map(|process| Counterpart {
            role: Role::Tracer,
            process,
            thread: 0,
        })
        .into_iter()
        .collect()
}

/// Flags of open files that make each write wait (include/uapi/asm-generic/fcntl.h).
const FLAGS: [(u64, &str); 3] = [
    (0o4_010_000, ", open with O_SYNC"),
    (0o10_000, ", open with O_DSYNC"),
    (0o40_000, ", open with O_DIRECT"),
];

/// Returns the flag of an open file for which each write goes to storage at once, as the end of its
/// description; empty without one.
fn how_open(process: u32, number: u64) -> &'static str {
    let text = read(&format!("/proc/{process}/fdinfo/{number}")).unwrap_or_default();
    let flags = proc::octal(&text, "flags").unwrap_or_default();
    let mut known = FLAGS.iter();
    known
        .find(|(bits, _)| flags & bits == *bits)
        .map_or("", |(_, text)| text)
}

/// Returns how the other side of a pseudo-terminal is called (drivers/tty/pty.c).
fn other_side(link: &str) -> Option<&'static str> {
    match link {
        "/dev/ptmx" | "/dev/pts/ptmx" => Some("/dev/pts/"),
        _ if link.starts_with("/dev/pts/") => Some("/dev/ptmx"),
        _ => None,
    }
}

/// Returns the numbers of the files that a call watches.
fn watched_files(process: u32, number: u64, arguments: [u64; 4]) -> Vec<u64> {
    let [first, second, ..] = arguments;
    if calls::EPOLL.contains(&number) {
        let text = read(&format!("/proc/{process}/fdinfo/{first}")).unwrap_or_default();
        return proc::watched_files(&text);
    }
    let Some(memory) = memory::open(process) else {
        return Vec::new();
    };
    if calls::POLL.contains(&number) {
        let count = second.min(POLLFDS) as usize;
        let mut bytes = vec![0; count * POLLFD];
        let size = memory.read_at(&mut bytes, first).unwrap_or_default();
        let files = bytes[..size].chunks_exact(POLLFD);
        let number = |bytes: &[u8]| i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        return files
            .filter_map(|bytes| u64::try_from(number(bytes)).ok())
            .collect();
    }
    if calls::SELECT.contains(&number) {
        // The set of files to read from, of which the first argument has the highest number.
        let mut bytes = vec![0; (first.min(1024) as usize).div_ceil(8)];
        let size = memory.read_at(&mut bytes, second).unwrap_or_default();
        return (0..8 * size as u64)
            .filter(|number| bytes[*number as usize / 8] >> (number % 8) & 1 == 1)
            .collect();
    }
    Vec::new()
}

/// Returns the path at an address of a process's memory.
fn named_path(process: u32, address: u64) -> Object {
    let mut bytes = [0; PATH_MAX];
    let size = memory::open(process).and_then(|memory| memory.read_at(&mut bytes, address).ok());
    let path = bytes[..size.unwrap_or_default()]
        .split(|byte| *byte == 0)
        .next();
    let path = path.and_then(|path| std::str::from_utf8(path).ok());
    // A path without its end is none.
    let path = path.filter(|path| !path.is_empty() && path.len() < PATH_MAX);
    let is_plain = |path: &&str| !path.chars().any(char::is_control);
    path.filter(is_plain)
        .map_or(Object::Unknown, |path| Object::File(path.to_owned()))
}

fn describe(place: &Place) -> Wait {
    Wait {
        is_uninterruptible: place.is_uninterruptible,
        call: place.call.clone(),
        function: place.function.clone(),
        object: place.object.clone(),
        ..Wait::default()
    }
}
