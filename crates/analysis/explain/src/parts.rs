//! What functions of libraries and runtimes do, as a part of what a program does: said beside its cause.
//!
//! They are no causes by themselves, as those of `meanings` are: a program that formats text may be one
//! that is to format text.

/// A part of the function's name, or several ones between bars, and what it does, as in `it does X`.
pub(crate) type Part = (&'static str, &'static str);

pub(crate) const PARTS: &[Part] = &[
    // glibc: string, stdio-common, libio, time, posix, stdlib, misc, wcsmbs, math.
    (
        "memmove (libc",
        "it moves memory within a buffer (memmove), as to insert or to remove in front of the rest",
    ),
    ("memset (libc", "it clears or fills memory (memset)"),
    (
        "strlen (libc",
        "it measures strings from their begin (strlen)",
    ),
    (
        "strncpy (libc",
        "it copies by strncpy, which fills the rest of the buffer with zeros",
    ),
    (
        "strstr (libc|memmem (libc|strcasestr (libc",
        "it searches texts (strstr)",
    ),
    (
        "strcasecmp (libc|strncasecmp (libc",
        "it compares texts whatever their case (strcasecmp)",
    ),
    (
        "fgetc (libc|getc (libc|getchar (libc|fputc (libc|putc (libc|putchar (libc|_IO_getc|_IO_putc",
        "it reads or writes single characters (fgetc, putc), each under the lock of its stream",
    ),
    (
        "printf (libc|printf_chk (libc",
        "it formats text (printf and its kin)",
    ),
    (
        "strftime (libc|localtime (libc|localtime_r (libc|mktime (libc|tzset (libc|gmtime_r (libc",
        "it converts times (localtime, mktime, strftime)",
    ),
    ("regcomp (libc", "it compiles regular expressions (regcomp)"),
    (
        "fnmatch (libc|glob (libc",
        "it matches names by patterns (fnmatch, glob)",
    ),
    (
        "getenv (libc|setenv (libc|putenv (libc",
        "it searches the environment from its begin (getenv, setenv)",
    ),
    (
        "lfind (libc|lsearch (libc",
        "it searches an array from its begin (lfind)",
    ),
    ("backtrace (libc", "it takes stack traces (backtrace)"),
    (
        "setlocale (libc|newlocale (libc",
        "it sets locales (setlocale)",
    ),
    (
        "mbrtowc (libc|mbstowcs (libc|wcstombs (libc|mbsrtowcs (libc|wcrtomb (libc",
        "it converts letters of several bytes (mbrtowc)",
    ),
    (
        " (libm.so|libm.so.6+0x",
        "it computes functions of the mathematical library (pow, exp, log, sin, fmod)",
    ),
    // libstdc++: bits/{vector.tcc,basic_string.tcc,hashtable.h,stl_tree.h,shared_ptr_base.h,random.tcc},
    // src/c++98/{localename,tree}.cc, bits/{num_get,ostream_insert}.
    (
        "_M_realloc_insert|_M_realloc_append",
        "it grows vectors, which copies them (no reserve)",
    ),
    (
        "_M_insert_aux|_M_insert_rval|_M_range_insert|::_M_erase(__gnu_cxx",
        "it inserts into or removes from a vector, which moves all behind",
    ),
    (
        "_M_find_before_node",
        "it searches chains of a hash table (std::unordered_map), which are long with a bad hash or few buckets",
    ),
    (
        "_M_rehash",
        "it grows hash tables, which moves all of them (rehash; no reserve)",
    ),
    (
        "std::_Rb_tree_insert_and_rebalance|std::_Rb_tree_rebalance_for_erase",
        "it inserts into and removes from ordered maps or sets (std::map), node by node",
    ),
    (
        "std::__distance|std::distance|std::__advance|std::advance",
        "it walks a list node by node (std::distance, std::advance)",
    ),
    (
        "std::random_device|std::mersenne_twister_engine|std::seed_seq",
        "it seeds or fills generators of random numbers (std::mt19937, std::random_device)",
    ),
    (
        "std::_Sp_counted_base|std::__shared_count",
        "it counts references (std::shared_ptr), by atomic instructions",
    ),
    (
        "std::locale::|std::use_facet|std::has_facet",
        "it copies locales and asks for their facets, as streams do",
    ),
    (
        "std::num_get|std::istream::",
        "it parses by streams (operator>>)",
    ),
    (
        "std::num_put|std::ostream::|std::__ostream_insert",
        "it formats by streams (operator<<)",
    ),
    (
        "std::__detail::_Scanner|std::__detail::_Compiler",
        "it compiles regular expressions (std::regex)",
    ),
    (
        "std::filesystem::",
        "it takes paths apart and puts them together (std::filesystem)",
    ),
    // Rust: library/{core,alloc,std}; hashbrown.
    (
        "core::fmt::write|alloc::fmt::format",
        "it formats text (format!, to_string)",
    ),
    (
        "RawVec|finish_grow",
        "it grows vectors, which copies them (no with_capacity)",
    ),
    (
        "reserve_rehash",
        "it grows hash maps, which moves all of them (rehash)",
    ),
    (
        "core::num::dec2flt|core::num::flt2dec",
        "it parses or prints floating-point numbers",
    ),
    (
        "from_utf8|run_utf8_validation",
        "it checks that bytes are UTF-8 (from_utf8)",
    ),
    (
        "collections::btree",
        "it goes through a B-tree (BTreeMap, BTreeSet)",
    ),
    (
        "std::io::stdio|LineWriter",
        "it prints line by line (println!), with a lock and a flush each",
    ),
    (
        "core::str::pattern|TwoWaySearcher",
        "it searches texts (str::find, contains, replace)",
    ),
    ("core::clone::Clone>::clone", "it copies values (clone)"),
    (
        "core::ptr::drop_in_place",
        "it drops values, which frees what they own",
    ),
    (
        "rust_panic|__rust_start_panic",
        "it panics and catches that",
    ),
    (
        "to_lowercase|to_uppercase|strings.ToLower|strings.ToUpper|String.toLowerCase|String.toUpperCase",
        "it changes the case of texts, which copies them",
    ),
    // Go: src/{runtime,reflect,fmt,encoding,regexp,time,crypto,compress,strings,log}.
    ("reflect.", "it goes through values by reflection (reflect)"),
    (
        "encoding/json.",
        "it reads or writes JSON (encoding/json, by reflection)",
    ),
    (
        "encoding/binary.",
        "it reads or writes binary data by reflection (encoding/binary)",
    ),
    (
        "fmt.(*pp)|fmt.Sprint|fmt.Fprint|fmt.Sscan|fmt.Fscan",
        "it formats or scans text (fmt)",
    ),
    (
        "regexp.(*Regexp)|regexp.(*machine)",
        "it is in regular expressions (regexp)",
    ),
    ("runtime.selectgo", "it selects among channels (select)"),
    (
        "runtime.chansend|runtime.chanrecv",
        "it passes values through channels one by one",
    ),
    (
        "runtime.mapassign|runtime.mapaccess|internal/runtime/maps.",
        "it looks up, fills or grows maps",
    ),
    ("runtime.memmove", "it copies memory (runtime.memmove)"),
    (
        "runtime.memclr",
        "it clears memory (runtime.memclr), as of new slices",
    ),
    (
        "runtime.slicebytetostring|runtime.stringtoslicebyte|runtime.stringtoslicerune|\
         runtime.slicerunetostring",
        "it converts between strings and bytes or runes, which copies them",
    ),
    (
        "runtime.duffcopy|runtime.typedmemmove|runtime.duffzero",
        "it copies large values (structs, arrays)",
    ),
    (
        "runtime.convT",
        "it puts values into interfaces, which allocates",
    ),
    (
        "runtime.getitab|runtime.typeAssert|runtime.assertE2I",
        "it converts between interfaces (type assertions)",
    ),
    (
        "runtime.GC|runtime/debug.FreeOSMemory",
        "it asks for garbage collections itself (runtime.GC)",
    ),
    ("time.Now|runtime.nanotime|time.now", "it reads the clock"),
    (
        "time.Parse|time.parse|time.Time.Format|time.Time.AppendFormat",
        "it parses or formats times",
    ),
    ("time.LoadLocation", "it loads time zones"),
    (
        "time.NewTimer|time.newTimer|time.After|runtime.(*timers)|runtime.(*timer)",
        "it makes and stops timers",
    ),
    (
        "compress/flate.|compress/gzip.|java.util.zip.",
        "it compresses or decompresses",
    ),
    (
        "crypto/sha|crypto/md5|crypto/rsa|crypto/internal|crypto/ecdsa|crypto/ed25519|libcrypto.so",
        "it computes hashes, keys or ciphers (crypto)",
    ),
    ("log.(*Logger)|log/slog.", "it writes its log"),
    (
        "strings.Split|strings.Fields|strings.Index|bytes.Index|bytes.Split|internal/bytealg.Index",
        "it searches or splits texts",
    ),
    ("text/template.|html/template.", "it executes templates"),
    // OpenJDK: java.base; src/hotspot/share/{opto,c1,runtime}.
    (
        "java.util.regex.",
        "it is in regular expressions (java.util.regex)",
    ),
    (
        "java.util.Formatter|java.lang.String.format",
        "it formats text (String.format)",
    ),
    (
        "java.util.LinkedList.",
        "it walks linked lists node by node (LinkedList)",
    ),
    (
        "java.util.ArrayList.indexOf|java.util.ArrayList.contains",
        "it searches lists from their begin (ArrayList.contains, indexOf)",
    ),
    (
        "java.util.ArrayList.remove|java.util.ArrayList.fastRemove",
        "it removes from lists, which moves all behind (ArrayList.remove)",
    ),
    (
        "java.util.HashMap$TreeNode",
        "it searches a bucket of a HashMap whose keys have one hash (collisions)",
    ),
    (
        "CopyOnWriteArray",
        "it copies a CopyOnWriteArrayList at each change",
    ),
    (
        "java.lang.Throwable.fillInStackTrace|java.lang.Throwable.<init>",
        "it makes exceptions with their stack traces",
    ),
    (
        "java.math.Big",
        "it computes with large numbers (BigInteger, BigDecimal)",
    ),
    (
        "java.text.SimpleDateFormat|java.time.format.|java.text.DateFormat",
        "it parses or formats dates",
    ),
    (
        "java.io.ObjectOutputStream|java.io.ObjectInputStream",
        "it serialises objects (ObjectOutputStream, ObjectInputStream)",
    ),
    (
        "AbstractStringBuilder.insert|AbstractStringBuilder.delete",
        "it inserts into or deletes from texts, which moves all behind (StringBuilder)",
    ),
    (
        "java.lang.String.intern|StringTable::",
        "it looks strings up in the table of the JVM (String.intern)",
    ),
    (
        "java.security.SecureRandom",
        "it asks for secure random numbers (SecureRandom)",
    ),
    (
        "java.lang.reflect.|jdk.internal.reflect.",
        "it calls by reflection (java.lang.reflect)",
    ),
    (
        "java.lang.Class.forName|java.lang.ClassLoader.loadClass|SystemDictionary::",
        "it looks for classes (Class.forName, loadClass)",
    ),
    (
        "StackStreamFactory|java.lang.StackWalker|java.lang.Thread.getStackTrace",
        "it takes stack traces (StackWalker, getStackTrace)",
    ),
    (
        "ThreadLocal$ThreadLocalMap",
        "it looks through the thread-local values of a thread (ThreadLocalMap), of which many may be stale",
    ),
    (
        "C2Compiler::compile_method|Compilation::Compilation|Compile::Compile",
        "the JVM compiles (JIT)",
    ),
    (
        "Deoptimization::",
        "the JVM throws compiled code away (deoptimisation)",
    ),
    // CPython: Objects, Modules, Python.
    (
        "PyErr_SetObject|PyTraceBack_Here|PyErr_NormalizeException",
        "it raises and catches exceptions",
    ),
    (
        "list_pop (libpython|list_ass_slice|PyList_SetSlice",
        "it removes from lists or inserts into them in front of the rest, which moves that (pop(0), del x[:n])",
    ),
    (
        "deque_index|deque_item|deque_remove|deque_insert",
        "it goes to items within a deque, block by block",
    ),
    (
        "unicode_find (libpython|unicode_count (libpython|PyUnicode_Contains",
        "it searches texts (find, count, in)",
    ),
    (
        "unicode_replace (libpython|unicode_split (libpython|unicode_translate (libpython",
        "it changes or splits texts, which copies them (replace, split)",
    ),
    (
        "_Py_dg_dtoa|_Py_dg_strtod",
        "it converts floating-point numbers to text or from it",
    ),
    (
        "type_new (libpython|PyType_Ready",
        "it makes classes (type, namedtuple)",
    ),
    (
        "_abc__abc_instancecheck|_abc__abc_subclasscheck",
        "it checks classes by abstract base classes (isinstance)",
    ),
    (
        "profile_trampoline|trace_trampoline|call_trampoline|call_trace",
        "a tracer or profiler is called at each line or call (sys.settrace, sys.setprofile)",
    ),
    (
        "PyImport_ImportModuleLevelObject",
        "it imports modules (import)",
    ),
    (
        "PyUnicode_Format|do_string_format|PyObject_Format",
        "it formats texts (%, format, f-strings)",
    ),
    (
        "slot_tp_getattr_hook",
        "it looks for attributes by __getattr__, a function of the script",
    ),
    (
        "slot_tp_richcompare|slot_tp_hash",
        "it compares or hashes by functions of the script (__eq__, __lt__, __hash__)",
    ),
    // Perl: pp_ctl.c, av.c, mg.c, gv.c, util.c, sv.c.
    (
        "Perl_die_unwind|Perl_croak",
        "it throws and catches exceptions (die, eval)",
    ),
    (
        "Perl_av_unshift|Perl_pp_splice|Perl_pp_unshift",
        "it inserts into or removes from arrays, which moves all behind (splice, unshift)",
    ),
    (
        "Perl_magic_methcall|Perl_magic_getpack|Perl_magic_setpack",
        "it goes through tied variables (tie), a call of a method for each access",
    ),
    (
        "Perl_amagic_call|Perl_try_amagic",
        "it calls overloaded operators",
    ),
    (
        "Perl_pp_index|Perl_ninstr|Perl_fbm_instr",
        "it searches texts (index)",
    ),
    (
        "Perl_sv_vcatpvfn|Perl_pp_sprintf",
        "it formats texts (sprintf)",
    ),
    (
        "Perl_gv_autoload|Perl_gv_fetchmeth",
        "it looks for methods in the classes of an object",
    ),
    (
        "Perl_sv_setsv_flags",
        "it copies values (assignments, arguments, lists)",
    ),
    ("Perl_pp_split", "it splits texts (split)"),
    // V8: src/{execution,builtins,objects,ic,deoptimizer,compiler,date}; Node: src/{node_url,string_bytes}.
    (
        "v8::internal::Isolate::Throw|v8::internal::Isolate::UnwindAndFindHandler|\
         v8::internal::ErrorUtils::",
        "it makes, throws and catches errors (exceptions)",
    ),
    (
        "v8::internal::Deoptimizer::|Builtins_DeoptimizationEntry",
        "V8 throws compiled code away (deoptimisation)",
    ),
    (
        "v8::internal::compiler::|v8::internal::maglev::",
        "V8 compiles functions that ran often (JIT)",
    ),
    (
        "Builtins_ArrayTimSort|Builtins_ArrayPrototypeSort",
        "it sorts",
    ),
    (
        "Builtins_ArrayPrototypeSplice|Builtins_ArrayPrototypeShift|v8::internal::Builtin_ArrayShift|\
         v8::internal::Builtin_ArrayUnshift",
        "it moves all elements of an array (shift, unshift, splice)",
    ),
    (
        "v8::internal::StringTable::Lookup|v8::internal::Factory::InternalizeString",
        "it looks up texts that become names of properties (interning)",
    ),
    ("node::url::|ada::", "it parses URLs (new URL)"),
    (
        "v8::internal::DateCache|DateParser|v8::internal::JSDate::",
        "it parses or computes dates (Date)",
    ),
    (
        "v8::internal::StringSearch|Builtins_StringPrototypeIndexOf",
        "it searches texts (indexOf, includes, split)",
    ),
    (
        "node::StringBytes|v8::String::WriteUtf8|v8::String::Utf8Length|v8::internal::Utf8Decoder",
        "it converts between texts and bytes (Buffer, toString, UTF-8)",
    ),
    (
        "node::crypto::",
        "it computes hashes, keys or ciphers (crypto)",
    ),
    (
        "v8::internal::JSObject::NormalizeProperties|v8::internal::JSObject::MigrateToMap|\
         v8::internal::Map::TransitionToDataProperty",
        "its objects change their shapes (hidden classes)",
    ),
    (
        "GrowCapacity|Builtins_GrowFast",
        "its arrays grow, which copies them",
    ),
    (
        "Builtins_ArrayFrom|Builtins_IterableToList|Builtins_CreateArrayFromIterable",
        "it makes arrays of what it iterates over (Array.from, spread)",
    ),
    (
        "Builtins_ArrayPrototypeSlice|Builtins_CloneFastJSArray|Builtins_ExtractFastJSArray",
        "it copies arrays or parts of them (slice, spread)",
    ),
    (
        "v8::internal::LoadIC::|v8::internal::KeyedLoadIC::|v8::internal::StoreIC::|\
         v8::internal::KeyedStoreIC::",
        "its accesses to properties miss their caches (objects of many shapes, new names)",
    ),
];
