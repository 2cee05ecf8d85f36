//! Names words of memory that moved between processors, and their lines: by symbols, and by the
//! fields of what the kernel allocated. What a word is comes from the tracer
//! (`crates/guest/tracer/src/smp/memory.rs`).

use crate::Symbols;

/// Bytes of a line.
const LINE: u64 = 64;
/// Most symbols in the name of a line.
const SYMBOLS: usize = 3;
/// What pages' records are called.
const PAGE: &str = "page";
/// And a node's, which has those of its zones.
const NODE: &str = "pglist_data";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object<'a> {
    Structure(&'a str),
    PerCpu(&'a str),
}

/// Returns the field that is so many bytes into something, such as `mmap_lock.count`.
pub type FieldAt<'a> = &'a dyn Fn(Object<'_>, u64) -> Option<String>;

/// A word's name and its line's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: String,
    pub(crate) word: String,
}

/// Slab caches whose objects have a structure of another name, by the kernel's `kmem_cache_create`.
const STRUCTURES: [(&str, &str); 26] = [
    ("anon_vma", "anon_vma"),
    ("cred", "cred"),
    ("cred_jar", "cred"),
    ("eventpoll_epi", "epitem"),
    ("eventpoll_pwq", "eppoll_entry"),
    ("files_cache", "files_struct"),
    ("filp", "file"),
    ("fs_cache", "fs_struct"),
    ("inode_cache", "inode"),
    ("names_cache", "filename"),
    ("posix_timers_cache", "k_itimer"),
    ("proc_inode_cache", "proc_inode"),
    ("shmem_inode_cache", "shmem_inode_info"),
    ("sigqueue", "sigqueue"),
    ("sighand_cache", "sighand_struct"),
    ("signal_cache", "signal_struct"),
    ("skbuff_fclone_cache", "sk_buff_fclones"),
    ("skbuff_head_cache", "sk_buff"),
    ("sock_inode_cache", "socket_alloc"),
    ("TCP", "tcp_sock"),
    ("UDP", "udp_sock"),
    ("UNIX", "unix_sock"),
    ("UNIX-STREAM", "unix_sock"),
    ("vma_lock", "vma_lock"),
    ("request_sock_TCP", "tcp_request_sock"),
    ("tw_sock_TCP", "tcp_timewait_sock"),
];

/// Returns the names of a word in physical memory, by its number. `None` if the tracer's text is
/// something else.
pub(crate) fn name(
    place: &str,
    number: u64,
    symbols: &Symbols,
    field: FieldAt<'_>,
) -> Option<Place> {
    let within = number % (LINE / 8) * 8;
    let (kind, rest) = place.split_once(':').unwrap_or((place, ""));
    Some(match kind {
        "symbol" => of_symbol(symbols, parse_hex(rest)?, ""),
        "cpu" => {
            let address = parse_hex(rest)?;
            let place = of_symbol(symbols, address, "per-CPU ");
            let variable = symbols.data_in(address, 1);
            let field = variable.and_then(|(names, offset)| {
                let name = *names.first()?;
                Some(format!(
                    "per-CPU {name}.{}",
                    field(Object::PerCpu(name), offset)?
                ))
            });
            Place {
                word: field.unwrap_or(place.word),
                line: place.line,
            }
        }
        "node" => {
            let offset = parse_hex(rest)?;
            of_field(NODE, NODE, offset, offset % LINE, field)
        }
        "allocated" => {
            let offset = parse_hex(rest)?;
            let name = |offset: u64| format!("per-CPU allocations+{offset:#x}");
            Place {
                line: name(offset / LINE * LINE),
                word: name(offset),
            }
        }
        "user" => plain(format!("user {:#x}", parse_hex(rest)? / LINE * LINE)),
        "page" => of_field(PAGE, "struct page", parse_hex(rest)?, within, field),
        "cache" => {
            let (offset, cache) = rest.split_once(':')?;
            let known = STRUCTURES.iter().find(|(known, _)| *known == cache);
            let structure = known.map_or(cache, |(_, structure)| structure);
            of_field(structure, cache, parse_hex(offset)?, within, field)
        }
        "anon" => plain("anonymous memory".to_owned()),
        "file" => plain("page cache".to_owned()),
        "mapped" => plain("stacks and vmalloc".to_owned()),
        "other" => plain("other pages".to_owned()),
        _ => return None,
    })
}

/// Tells whether the name of a word says more than the kind of memory, or how far into an object of
/// an unknown structure it is.
pub(crate) fn is_named(place: &str, name: &Place) -> bool {
    match place.split_once(':') {
        Some(("symbol" | "cpu" | "user", _)) => true,
        Some(("cache" | "node" | "page", _)) => !name.word.contains("+0x"),
        _ => false,
    }
}

fn parse_hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

fn plain(name: String) -> Place {
    Place {
        word: name.clone(),
        line: name,
    }
}

fn of_symbol(symbols: &Symbols, address: u64, before: &str) -> Place {
    let named = |address: u64, bytes: u64| {
        let (names, distance) = symbols.data_in(address, bytes)?;
        let first = *names.first()?;
        let first = if distance == 0 {
            first.to_owned()
        } else {
            format!("{first}+{distance:#x}")
        };
        let others = names
            .into_iter()
            .skip(1)
            .take(SYMBOLS - 1)
            .map(str::to_owned);
        Some(format!(
            "{before}{}",
            std::iter::once(first)
                .chain(others)
                .collect::<Vec<_>>()
                .join(", ")
        ))
    };
    let unknown = |address: u64| format!("{before}{address:#x}");
    let start = address / LINE * LINE;
    Place {
        line: named(start, LINE).unwrap_or_else(|| unknown(start)),
        word: named(address, 1).unwrap_or_else(|| unknown(address)),
    }
}

/// Names a word in an object of a structure, so many bytes into it and into its line.
fn of_field(structure: &str, cache: &str, offset: u64, within: u64, field: FieldAt<'_>) -> Place {
    let line = match (offset / 8 * 8).checked_sub(within) {
        Some(start) => format!("{cache}+{start:#x}"),
        // The object begins within the line, behind another one.
        None => format!("{cache}-{:#x}", within - offset),
    };
    let word =
        field(Object::Structure(structure), offset).map(|field| format!("{structure}.{field}"));
    Place {
        line,
        word: word.unwrap_or_else(|| format!("{cache}+{offset:#x}")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Object, name};
    use crate::Symbols;

    fn names(place: &str, number: u64) -> String {
        let symbols = Symbols::parse(
            "A20000 runqueues\nA80 softnet_data\nTffffffff80fdff80 up_read\nD1000000 init_task\nD40 jiffies\nD48 end\n",
        )
        .unwrap();
        let known = [
            (Object::Structure("mm_struct"), 0x78, "mmap_lock.count"),
            (Object::Structure("file"), 0x30, "f_count"),
            (Object::Structure("page"), 0x34, "_refcount"),
            (Object::PerCpu("runqueues"), 0x10, "nr_running"),
        ];
        let field = |of: Object<'_>, offset| {
            known.into_iter().find_map(|(known, at, field)| {
                ((known, at) == (of, offset)).then(|| field.to_owned())
            })
        };
        name(place, number, &symbols, &field).map_or("none".to_owned(), |place| {
            format!("{} | {}", place.line, place.word)
        })
    }

    #[test]
    fn static_and_per_cpu_memory_has_symbols() {
        insta::assert_snapshot!(names("symbol:ffffffff82000048", 9), @"jiffies | jiffies+0x8");
        insta::assert_snapshot!(names("cpu:20010", 18), @"per-CPU runqueues | per-CPU runqueues.nr_running");
        insta::assert_snapshot!(names("cpu:20088", 17), @"per-CPU softnet_data | per-CPU softnet_data+0x8");
    }

    #[test]
    fn allocations_of_processors_have_their_distance() {
        insta::assert_snapshot!(names("allocated:1048", 9), @"per-CPU allocations+0x1040 | per-CPU allocations+0x1048");
    }

    #[test]
    fn objects_have_fields_where_types_are_known() {
        insta::assert_snapshot!(names("cache:78:mm_struct", 15), @"mm_struct+0x40 | mm_struct.mmap_lock.count");
        insta::assert_snapshot!(names("cache:30:filp", 15), @"filp-0x8 | file.f_count");
        insta::assert_snapshot!(names("cache:38:kmalloc-64", 7), @"kmalloc-64+0x0 | kmalloc-64+0x38");
        insta::assert_snapshot!(names("page:34", 6), @"struct page+0x0 | page._refcount");
    }

    #[test]
    fn other_memory_has_its_kind() {
        insta::assert_snapshot!(names("user:7f001048", 9), @"user 0x7f001040 | user 0x7f001040");
        insta::assert_snapshot!(names("anon", 9), @"anonymous memory | anonymous memory");
        insta::assert_snapshot!(names("stone:1", 9), @"none");
    }
}
