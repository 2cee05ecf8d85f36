//! What functions of libraries and runtimes mean for who calls them.
//!
//! A function is known by its name on the stack, so only those that have one there are here: what a
//! stripped library exports, and what interpreters keep the names of.

/// Functions whose presence on a stack says what the time is for, with the cause and the advice.
pub(crate) struct Meaning {
    /// A part of the function's name; of several ones, between bars, together.
    pub(crate) function: &'static str,
    /// The cause, as in `it does X`.
    pub(crate) cause: &'static str,
    pub(crate) advice: &'static str,
}

const fn meaning(function: &'static str, cause: &'static str, advice: &'static str) -> Meaning {
    Meaning {
        function,
        cause,
        advice,
    }
}

/// What well-known functions of libraries and runtimes mean for who calls them.
pub(crate) const MEANINGS: &[Meaning] = &[
    // V8: src/regexp/regexp.cc, builtins/regexp.tq.
    meaning(
        "Builtins_RegExp",
        "it is in regular expressions, of which one may backtrack without end",
        "Simplify the pattern (no nested repetition), or limit the length of what it is tried on.",
    ),
    meaning(
        "RegExpImpl::IrregexpExec",
        "it is in regular expressions, of which one may backtrack without end",
        "Simplify the pattern (no nested repetition), or limit the length of what it is tried on.",
    ),
    // CPython: Modules/_sre/sre_lib.h. Perl: regexec.c.
    meaning(
        "sre_ucs1_match",
        "it is in regular expressions, of which one may backtrack without end",
        "Simplify the pattern (no nested repetition), or limit the length of what it is tried on.",
    ),
    meaning(
        "S_regmatch|Perl_regexec_flags",
        "it is in regular expressions, of which one may backtrack without end",
        "Simplify the pattern (no nested repetition), or limit the length of what it is tried on.",
    ),
    // V8: src/heap/heap.cc, src/builtins/{array-shift,array-indexof}.tq, src/objects/string.cc,
    // src/execution/isolate.cc, src/objects/value-serializer.cc.
    meaning(
        "v8::internal::Heap::MoveRange",
        "it moves all elements of an array (shift, unshift, splice)",
        "Keep an index instead of shifting, or use a queue.",
    ),
    meaning(
        "Builtins_ArrayIndexOf",
        "it searches arrays from their begin (indexOf)",
        "Use a Set or a Map.",
    ),
    meaning(
        "Builtins_ArrayIncludes",
        "it searches arrays from their begin (includes)",
        "Use a Set or a Map.",
    ),
    meaning(
        "v8::internal::String::SlowFlatten",
        "it copies strings that were put together of parts (flattening)",
        "Collect the parts in an array and join them once.",
    ),
    meaning(
        "v8::internal::Isolate::CaptureSimpleStackTrace",
        "it fills in the stack traces of errors",
        "Make fewer errors, or lower Error.stackTraceLimit.",
    ),
    meaning(
        "v8::internal::ValueSerializer",
        "it copies objects by serialising them (structuredClone, postMessage)",
        "Pass less, or transfer buffers.",
    ),
    // Perl: regcomp.c, pp_hot.c, pp_sort.c, sv.c, utf8.c.
    meaning(
        "Perl_re_op_compile",
        "it compiles regular expressions again and again",
        "Compile each once (qr//, /o), or keep the pattern as it is.",
    ),
    meaning(
        "sv_pos_u2b",
        "it counts letters of UTF-8 strings from their begin (substr, pos, length)",
        "Work on bytes, or go through the string once.",
    ),
    meaning(
        "Perl_utf8_length",
        "it counts letters of UTF-8 strings from their begin (length)",
        "Work on bytes, or keep the length.",
    ),
    meaning(
        "Perl_pp_subst",
        "it substitutes by regular expressions (Perl_pp_subst, s///)",
        "Substitute in one pass, with one pattern for all.",
    ),
    meaning(
        "Perl_pp_sort",
        "it sorts (Perl_pp_sort)",
        "Sort once, by keys that are made before.",
    ),
    // PostgreSQL: src/backend/utils/adt/ri_triggers.c, access/heap/heapam.c, executor/nodeSeqscan.c,
    // optimizer/plan/planner.c, jit/llvm.
    meaning(
        "RI_FKey_|ri_PerformCheck",
        "it looks for rows that refer to one by a foreign key (RI_FKey_…), of which the referring column may lack an index",
        "Create an index on the column that refers.",
    ),
    meaning(
        "plpgsql_exec_trigger",
        "it executes a trigger of a table (plpgsql_exec_trigger), which a statement may do for each row",
        "Do it for each statement, or outside of the transaction.",
    ),
    meaning(
        "heap_getnextslot|SeqNext|heapgettup|heapgetpage",
        "it reads tables row by row (a sequential scan), of which one may lack an index",
        "Look at EXPLAIN (ANALYZE, BUFFERS) of the statements.",
    ),
    meaning(
        "standard_planner",
        "it plans SQL statements (the planner: each index, join and partition of their tables)",
        "Prepare statements once; have fewer partitions and joins.",
    ),
    meaning(
        "llvm_compile_module",
        "it compiles SQL statements (JIT)",
        "Set jit = off, or raise jit_above_cost.",
    ),
    // SQLite: src/tokenize.c.
    // SQLite: src/prepare.c.
    meaning(
        "sqlite3InitOne|sqlite3InitCallback",
        "it reads the schema of a database again and again, as each new connection does",
        "Keep the connection open, and use it again.",
    ),
    meaning(
        "sqlite3RunParser",
        "it compiles SQL statements again and again",
        "Prepare each once, with parameters.",
    ),
    // The unwinder of libgcc (libgcc/unwind.inc); libstdc++: src/c++11/locale_init.cc.
    meaning(
        "_Unwind_RaiseException|__cxa_throw|__cxa_allocate_exception|__cxa_end_catch|std::__throw_",
        "it throws and catches exceptions",
        "Throw for what is rare; return what is frequent.",
    ),
    // Rust: library/core/src/hash/sip.rs. Go: src/runtime/string.go.
    meaning(
        "core::hash::sip|DefaultHasher|hash_one",
        "it hashes for its maps (SipHash, the default of HashMap)",
        "Look up less often, or with another hasher.",
    ),
    meaning(
        "runtime.concatstrings",
        "it puts strings together, which copies them",
        "Use strings.Builder.",
    ),
    // CPython: Objects/{unicodeobject,listobject}.c, Modules/_pickle.c. zlib: deflate.c.
    meaning(
        "PyUnicode_Append",
        "it appends to strings, which may copy them (PyUnicode_Append, +=)",
        "Collect the parts in a list and join them once.",
    ),
    meaning(
        "PyUnicode_Concat",
        "it puts strings together, which copies them (PyUnicode_Concat, +)",
        "Collect the parts in a list and join them once.",
    ),
    meaning(
        "list_index",
        "it searches lists from their begin (list.index)",
        "Use a dict.",
    ),
    meaning(
        "list_remove",
        "it searches lists from their begin, and moves all behind (list.remove)",
        "Use a dict or a set.",
    ),
    meaning(
        "deflate (libz",
        "it compresses (deflate)",
        "Compress less, at a lower level, or in other threads.",
    ),
    meaning(
        "inflate (libz",
        "it decompresses (inflate)",
        "Decompress once, or in other threads.",
    ),
    // CPython: Objects/listobject.c.
    meaning(
        "ins1 (libpython",
        "it inserts into lists, which moves all behind (list.insert)",
        "Append, or use collections.deque.",
    ),
    meaning(
        "list_contains",
        "it searches lists from their begin (in)",
        "Use a set or a dict.",
    ),
    // OpenJDK: src/hotspot/share/classfile/javaClasses.cpp.
    meaning(
        "java_lang_Throwable::fill_in_stack_trace",
        "it fills in the stack traces of exceptions",
        "Throw fewer exceptions, or some without a stack trace.",
    ),
    // Go: src/crypto/tls, src/regexp. OpenSSL: ssl/statem/statem.c.
    meaning(
        "crypto/tls.(*Conn).HandshakeContext",
        "it makes TLS handshakes, one for each new connection",
        "Keep connections (keep-alive, MaxIdleConnsPerHost), or resume sessions.",
    ),
    meaning(
        "crypto/tls.(*Conn).handshakeContext",
        "it makes TLS handshakes, one for each new connection",
        "Keep connections (keep-alive, MaxIdleConnsPerHost), or resume sessions.",
    ),
    meaning(
        "state_machine (libssl",
        "it makes TLS handshakes, one for each new connection",
        "Keep connections, or resume sessions.",
    ),
    meaning(
        "regexp.compile",
        "it compiles regular expressions again and again",
        "Compile each once.",
    ),
    // libstdc++: include/bits/regex_executor.h.
    meaning(
        "std::__detail::_Executor",
        "it is in regular expressions (std::regex)",
        "Use another library for regular expressions, or a plain search.",
    ),
    // SQLite: src/vdbe.c.
    meaning(
        "sqlite3VdbeExec",
        "it executes SQL statements (sqlite3VdbeExec), of which one may read a whole table row by row for lack of an index",
        "Look at EXPLAIN QUERY PLAN of the statements: SCAN is each row of a table.",
    ),
    // glibc: string/strcoll_l.c.
    meaning(
        "strcoll",
        "it compares by the collation of its locale (strcoll)",
        "Where the order of bytes will do: LC_ALL=C.",
    ),
    meaning(
        "strxfrm",
        "it transforms by the collation of its locale (strxfrm)",
        "Where the order of bytes will do: LC_ALL=C.",
    ),
    // Go: src/runtime/proc.go.
    meaning(
        "runtime.findRunnable",
        "Go's scheduler looks for goroutines that can run (runtime.findRunnable): they hand work to one another in small pieces (channels, locks)",
        "Hand over more at once, or let a goroutine do the next step itself.",
    ),
    // libstdc++: bits/stl_algo.h. Rust: library/core/src/slice/sort. Go: src/{slices,sort}.
    // glibc: stdlib/{msort,strtod_l}.c, libio/iovsscanf.c, string/strcat.c, posix/regexec.c,
    // iconv/iconv.c, nss/getXXbyYY_r.c. libxcrypt: lib/crypt.c.
    meaning(
        "qsort (libc|qsort_r (libc|std::__introsort_loop|std::__adjust_heap|std::__insertion_sort|\
         std::__merge_sort|core::slice::sort|slices.pdqsort|slices.insertionSort|sort.pdqsort|\
         sort.insertionSort|sort.heapSort",
        "it sorts",
        "Sort once, or keep what is sorted; compare by keys that are made before.",
    ),
    meaning(
        "sscanf (libc",
        "it parses text by sscanf, which measures the whole string each time (strlen)",
        "Parse with strtol and strtod, which stop where the number ends.",
    ),
    meaning(
        "strcat (libc",
        "it appends to strings by strcat, which looks for their end from the begin each time",
        "Keep where the end is.",
    ),
    meaning(
        "regexec (libc",
        "it is in regular expressions (regexec)",
        "Simplify the pattern, or search for a plain text first.",
    ),
    meaning(
        "strtod (libc|strtof (libc",
        "it parses numbers from text (strtod)",
        "Keep the numbers, or parse with a faster function (from_chars).",
    ),
    meaning(
        "iconv (libc",
        "it converts text between character sets (iconv)",
        "Convert once, and keep the result.",
    ),
    meaning(
        "getpwnam|getpwuid|getgrnam|getgrgid|getgrouplist",
        "it looks for users and groups (getpwnam and the like), which reads the whole list each time",
        "Look once, and keep the answer.",
    ),
    meaning(
        "crypt_rn|crypt_r (libcrypt|crypt (libcrypt|PKCS5_PBKDF2_HMAC|EVP_PBE_scrypt",
        "it hashes passwords or derives keys from them (crypt, PBKDF2, scrypt), which is slow on purpose",
        "Do it once for each login, and with as many rounds as are needed.",
    ),
    meaning(
        "_dl_relocate_object|_dl_lookup_symbol_x",
        "the loader resolves symbols of libraries (relocation)",
        "Start less often, link fewer libraries, or prelink them.",
    ),
    // libstdc++: src/c++11/{sstream-inst,istream-inst}.cc, src/c++98/locale_init.cc,
    // libsupc++/dyncast.cc. libgcc: libgcc2.c, soft-fp.
    meaning(
        "__dynamic_cast",
        "it converts pointers by dynamic_cast, which walks the classes of the object (RTTI)",
        "Use a virtual function or a tag.",
    ),
    meaning(
        "std::__cxx11::basic_stringstream<|std::__cxx11::basic_ostringstream<|std::__cxx11::basic_istringstream<",
        "it makes streams of strings (std::stringstream), each with a locale of its own",
        "Keep one stream, or use to_chars and from_chars.",
    ),
    meaning(
        "std::_Rb_tree_increment|std::_Rb_tree_decrement",
        "it walks ordered maps or sets node by node (std::map, std::set)",
        "Look for the key, or use a vector.",
    ),
    meaning(
        "__udivti3|__umodti3|__divti3|__modti3",
        "it divides numbers of 128 bits (__udivti3)",
        "Use 64 bits where they suffice, or a precomputed reciprocal.",
    ),
    meaning(
        "__multf3|__addtf3|__subtf3|__divtf3",
        "it computes with floating-point numbers of 128 bits, which is done in software",
        "Use double.",
    ),
    // Go: src/runtime/{stack,panic,traceback,slice}.go, src/math/big.
    meaning(
        "runtime.newstack|runtime.copystack",
        "it grows stacks of goroutines, which copies them (deep calls in new goroutines)",
        "Keep goroutines (a pool of workers), or call less deeply.",
    ),
    meaning(
        "runtime.Callers|runtime.Stack|runtime/debug.Stack",
        "it takes stack traces (runtime.Callers, debug.Stack)",
        "Take them for what is rare.",
    ),
    meaning(
        "runtime.gopanic|runtime.recovery",
        "it panics and recovers",
        "Panic for what is rare; return errors.",
    ),
    meaning(
        "runtime.growslice",
        "it grows slices, which copies them (append, runtime.growslice)",
        "Give slices their capacity (make).",
    ),
    meaning(
        "math/big.",
        "it computes with large numbers (math/big)",
        "Use machine words where they suffice; convert to decimal once.",
    ),
    // V8: src/objects/{keys,js-objects}.cc, src/builtins/{proxy-get-property,array-concat}.tq,
    // src/codegen/compiler.cc, src/runtime/runtime-object.cc, src/bigint.
    meaning(
        "v8::bigint::|v8::internal::BigInt::",
        "it computes with large integers (BigInt)",
        "Use numbers where they suffice.",
    ),
    meaning(
        "Builtins_ProxyGetProperty|Builtins_ProxySetProperty|v8::internal::JSProxy::",
        "it goes through Proxy objects (traps for each property)",
        "Take the target out of the Proxy for what is frequent.",
    ),
    meaning(
        "v8::internal::KeyAccumulator|v8::internal::FastKeyAccumulator",
        "it lists the keys of objects (Object.keys, for in)",
        "Use a Map, or keep the list.",
    ),
    meaning(
        "v8::internal::JSReceiver::DeleteProperty|Runtime_DeleteProperty",
        "it deletes properties of objects (delete), which makes them dictionaries",
        "Use a Map, or set undefined.",
    ),
    meaning(
        "v8::internal::Compiler::GetFunctionFromEval|v8::internal::Compiler::GetSharedFunctionInfoForScript",
        "it compiles source again and again (eval, new Function, vm)",
        "Compile once, and keep the function.",
    ),
    meaning(
        "Builtins_CopyDataProperties|Builtins_CloneObjectIC|Builtins_SetDataProperties|Builtins_ObjectAssign",
        "it copies objects by their properties (spread, Object.assign)",
        "Change the object, or keep what changes apart.",
    ),
    meaning(
        "ArrayConcat|Builtins_ArrayPrototypeConcat",
        "it puts arrays together, which copies them (concat, spread)",
        "Append to one array (push).",
    ),
    meaning(
        "icu_7|v8::internal::JSDateTimeFormat|v8::internal::JSNumberFormat|v8::internal::Intl",
        "it formats by the rules of a language (Intl, toLocaleString, localeCompare), for which it may make a formatter each time",
        "Make one formatter or Collator, and keep it.",
    ),
    // CPython: Objects/{longobject,dictobject,listobject,bytesobject}.c, Python/{pythonrun,import}.c,
    // Modules/{_json,pyexpat,_decimal}.
    meaning(
        "long_to_decimal_string|long_from_string|x_divrem|k_mul|l_divmod|long_pow",
        "it computes with large integers, or converts them to decimal text, which is quadratic in their length",
        "Use smaller numbers, or hexadecimal text.",
    ),
    meaning(
        "builtin_compile|builtin_eval|_PyParser_ASTFromString|_PyAST_Compile",
        "it compiles Python source again and again (eval, exec, compile)",
        "Compile once, and keep the code.",
    ),
    meaning(
        "list_slice|list_subscript",
        "it copies parts of lists (slices)",
        "Keep an index, or use itertools.islice or collections.deque.",
    ),
    meaning(
        "list_concat",
        "it puts lists together, which copies them (list +)",
        "Append or extend.",
    ),
    meaning(
        "PyBytes_Concat|bytes_concat",
        "it puts bytes together, which copies them (bytes +=)",
        "Collect the parts in a bytearray, or join them once.",
    ),
    meaning(
        "dict_copy|PyDict_Copy|dict_merge",
        "it copies dictionaries",
        "Change one in place, or keep what changes apart.",
    ),
    meaning(
        "list_sort|builtin_sorted",
        "it sorts lists again and again",
        "Sort once; keep what is sorted (bisect, heapq).",
    ),
    meaning(
        "mpd_q",
        "it computes with decimals (decimal.Decimal)",
        "Lower the precision, or use integers.",
    ),
    // Perl: pp_ctl.c, pp.c, doop.c.
    meaning(
        "Perl_pp_entereval",
        "it compiles Perl source again and again (eval of a string)",
        "Use eval with a block, or keep the compiled function.",
    ),
    meaning(
        "Perl_pp_keys|Perl_do_kv",
        "it lists the keys of a hash again and again (keys, values)",
        "Walk it with each, or keep the list.",
    ),
    // GNU make: src/{implicit,variable,function}.c.
    meaning(
        "pattern_search|try_implicit_rule",
        "make looks for implicit rules that could make its files (pattern_search)",
        "Switch them off: make -r, or an empty .SUFFIXES and rules such as %: %.o.",
    ),
    meaning(
        "func_shell",
        "make runs $(shell …) again and again",
        "Expand it once, with := instead of =.",
    ),
    meaning(
        "do_variable_definition|variable_expand_string",
        "make expands variables and sets them, which copies their whole values each time: dear with a growing list",
        "Use a variable for each name, or append with += to one that is not searched.",
    ),
    // zstd, xz, bzip2, brotli.
    meaning(
        "ZSTD_compress|lzma_code|BZ2_bzCompress|BrotliEncoderCompress",
        "it compresses",
        "Compress less, at a lower level, or in other threads.",
    ),
    // V8: src/json.
    meaning(
        "v8::internal::JsonParser",
        "it parses JSON",
        "Parse less, or in another thread.",
    ),
    meaning(
        "v8::internal::JsonStringifier",
        "it writes JSON (JSON.stringify)",
        "Write less, or in another thread.",
    ),
    // Go: src/runtime/malloc.go. glibc: malloc/malloc.c.
    meaning(
        "runtime.mallocgc",
        "it allocates memory (runtime.mallocgc), which its garbage collector has to look after",
        "Allocate less: reuse objects (sync.Pool), give slices their capacity.",
    ),
    meaning(
        "malloc (libc.so",
        "it allocates memory (malloc)",
        "Allocate less: reuse blocks, or larger ones.",
    ),
];
