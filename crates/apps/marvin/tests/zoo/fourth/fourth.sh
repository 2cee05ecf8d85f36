#!/bin/sh
# Programs written from public reports: sh fourth.sh NAME SECONDS DIR [fixed]
name=$1
seconds=$2
dir=$3
fixed=${4:-}
whole=${seconds%.*}
end=$(($(date +%s) + whole))

running() { [ "$(date +%s)" -lt "$end" ]; }

report() { echo "$name: $1 $2 in $seconds s"; }

# ------------------------------------------------------------------ W23
site_pages() {
    mkdir -p "$dir/site" && cd "$dir/site" || exit 1
    cat > opam <<'END'
#!/bin/sh
# stands for the package manager's list of versions
awk 'BEGIN { for (i = 0; i < 5000; i++) printf "%d.%02d.%d\n", 1 + i % 5, (i * 7) % 20, i % 4 }' | sort -t. -k1,1n -k2,2n -k3,3n
END
    chmod +x opam
    cat > Makefile <<'END'
PAGES := index about learn docs tutorials news community platform releases history
export LATEST_OCAML_VERSION
all: $(PAGES:%=%.html)
%.html: FORCE
	@$(MAKE) --no-print-directory -s -f Makefile.common page PAGE=$*
FORCE:
END
    if [ "$fixed" = fixed ]; then
        printf 'page:\n\t@echo "$(PAGE) for $(LATEST_OCAML_VERSION)" > $(PAGE).html\n' > Makefile.common
        LATEST_OCAML_VERSION=$(./opam list | tail -n 1)
        export LATEST_OCAML_VERSION
    else
        cat > Makefile.common <<'END'
LATEST_OCAML_VERSION=$(shell ./opam list -V ocaml-base-compiler --no-switch -s --columns version | tail -n 1)
page:
	@echo "$(PAGE) for $(LATEST_OCAML_VERSION)" > $(PAGE).html
END
    fi
    built=0
    while running; do
        make -s all || exit 1
        built=$((built + 10))
    done
    report "$built" pages
}

# ------------------------------------------------------------------ W24
repo_clone() {
    rm -rf "$dir/repo"
    git init -q "$dir/repo"
    awk 'BEGIN {
        for (i = 1; i <= 2400; i++) {
            t = 1500000000 + i * 3600
            print "commit refs/heads/main"
            print "committer A Person <a@example.org> " t " +0000"
            print "data 7\nchange\n"
            if (i <= 80) { d = "src/part" (i % 9) "/file" i ".ts" } else { d = "src/hot/file" (i % 5) ".ts" }
            print "M 100644 inline " d
            body = "line " i
            print "data " length(body) "\n" body
        }
    }' | git -C "$dir/repo" fast-import --quiet
    git -C "$dir/repo" symbolic-ref HEAD refs/heads/main
    git -C "$dir/repo" reset -q --hard
    echo ready
    exec sleep 60
}

last_committed_at() {
    git log -1 --format=%aI -- "$1"
}

file_info() {
    cd "$dir/repo" || exit 1
    files=0
    while running; do
        if [ "$fixed" = fixed ]; then
            git log --format=%aI --name-only | awk '/^20.*T/ { t = $0; next } NF && !($0 in d) { d[$0] = t } END { for (f in d) print d[f], f }' > "$dir/info"
            files=$((files + 85))
            continue
        fi
        git ls-files > "$dir/list"
        while read -r file; do
            last_committed_at "$file" >> "$dir/info"
            files=$((files + 1))
            running || break
        done < "$dir/list"
    done
    report "$files" files
}

# ------------------------------------------------------------------ W25
plane_alert() {
    cd "$dir" || exit 1
    awk 'BEGIN {
        x = 77
        for (i = 0; i < 2000; i++) { x = (x * 1103515245 + 12345) % 2147483648; printf "^%06X,\n", x % 16777216 }
        for (i = 0; i < 4; i++) printf "^([^,]*,){8}7%d00(,|$)\n", 5 + i % 3
    }' > pa_keys
    awk 'BEGIN {
        x = 5
        for (i = 0; i < 300; i++) { x = (x * 69069 + 1) % 4294967296; printf "%06X,52.1,4.2,35000,f,g,h,i,%04d,KLM%d\n", x % 16777216, x % 7777, i }
    }' > records
    runs=0
    while running; do
        if [ "$fixed" = fixed ]; then
            awk -F, 'NR == FNR { if ($0 ~ /^\^[0-9A-F]+,$/) k[substr($0, 2, 6)] = 1; next } ($1 in k) || $9 ~ /^7[567]00$/' pa_keys records > alerts
        else
            grep -E -f pa_keys records > alerts
        fi
        runs=$((runs + 1))
    done
    report "$runs" runs
}

# ------------------------------------------------------------------ W26
setup_wineprefix() {
    cksum "$dir/package" > "$dir/prefix.$1"
}

installer() {
    head -c 2000000 /dev/zero > "$dir/package"
    steps=0
    while running; do
        setup_wineprefix "$((steps % 10))" &
        if [ "$fixed" = fixed ]; then
            wait
        else
            sleep 1
        fi
        steps=$((steps + 1))
    done
    wait
    report "$steps" steps
}

# ------------------------------------------------------------------ W27
build_command() {
    body=$(cat "$1")
    old_ifs=$IFS
    IFS='
'
    set -f
    if [ "$fixed" = fixed ]; then
        body_content=$(for bline in $body; do echo "$bline"; done)
    else
        body_content=
        for bline in $body; do
            body_content="$body_content
$bline"
        done
    fi
    set +f
    IFS=$old_ifs
    printf "%s\n" "prompt:" "$body_content" "end" > "$2"
}

adapter_build() {
    mkdir -p "$dir/content" "$dir/gemini"
    for c in 1 2 3; do
        awk -v c=$c 'BEGIN { for (i = 1; i <= 900; i++) print "- step " i " of command " c ": read the ticket, then plan the change and run its tests" }' > "$dir/content/command$c.md"
    done
    built=0
    while running; do
        for c in 1 2 3; do
            build_command "$dir/content/command$c.md" "$dir/gemini/command$c.toml"
            built=$((built + 1))
        done
    done
    report "$built" commands
}

# ------------------------------------------------------------------ W28
toolchain() {
    mkdir -p "$dir/tools/gnu" && cd "$dir/tools" || exit 1
    if [ "$fixed" = fixed ]; then call='$(MAKE)'; else call=make; fi
    printf 'tools: gnu\ngnu:\n\t@%s --no-print-directory -s -C gnu\n.PHONY: tools gnu\n' "$call" > Makefile
    cat > gnu/Makefile <<'END'
PARTS := binutils gcc newlib gdb qemu spike dtc pk
all: $(PARTS)
$(PARTS):
	@./install $@
.PHONY: all $(PARTS)
END
    cat > gnu/install <<'END'
#!/bin/sh
# fetches a part from the mirror
sleep 0.12
echo "$1" > "installed.$1"
END
    chmod +x gnu/install
    built=0
    while running; do
        make -s -j8 tools || exit 1
        built=$((built + 8))
    done
    report "$built" parts
}

# ------------------------------------------------------------------ PostgreSQL
bindir() { pg_config --bindir; }
as_user() { exec unshare --user --map-user=1000 --map-group=1000 "$@"; }

start_server() {
    as_user "$(bindir)/postgres" -D "$dir/pg" -k "$dir" -c listen_addresses= -c shared_buffers=64MB \
        -c max_parallel_workers_per_gather=0 -c autovacuum=off -c jit=off "$@" > "$dir/pg.log" 2>&1 &
    server=$!
    until "$(bindir)/pg_isready" -q -h "$dir"; do
        kill -0 "$server" 2> /dev/null || exit 1
        sleep 0.05
    done
}

stop_server() {
    kill -INT "$server"
    wait "$server"
}

client() { "$(bindir)/psql" -X -q -h "$dir" -U app -d postgres "$@"; }

db_cluster() {
    rm -rf "$dir/pg"
    (as_user "$(bindir)/initdb" -N -A trust -U app --locale=C -E UTF8 -D "$dir/pg") > "$dir/initdb.log" 2>&1 || exit 1
    start_server -c fsync=off
    client <<'END'
CREATE UNLOGGED TABLE t1 AS SELECT id, 'name ' || id AS name FROM generate_series(1, 100000) AS s(id);
CREATE UNIQUE INDEX t1_id ON t1 (id);
CREATE UNLOGGED TABLE t2 AS SELECT i * 3 AS id FROM generate_series(1, 300000) AS s(i);
ANALYZE t1;
ANALYZE t2;
END
    stop_server
    echo ready
    exec sleep 60
}

# W29
id_check() {
    if [ "$fixed" = fixed ]; then memory=64MB; else memory=4MB; fi
    start_server -c work_mem=$memory
    checks=0
    from=1
    while running; do
        client -A -t -c "SELECT id, name FROM t1 WHERE id BETWEEN $from AND $((from + 99)) AND id NOT IN (SELECT id FROM t2)" > "$dir/missing"
        checks=$((checks + 1))
        from=$((from % 90000 + 100))
    done
    stop_server
    report "$checks" checks
}

# W30
worker_start() {
    client -A -t -c "SELECT pg_advisory_lock(737069)" -c "SELECT pg_advisory_unlock(737069)" > /dev/null 2>&1
}

app_workers() {
    start_server
    if [ "$fixed" = fixed ]; then
        lock="BEGIN; SELECT pg_advisory_xact_lock(737069); ROLLBACK;"
    else
        lock="SELECT pg_advisory_lock(737069); SELECT no_such_column;"
    fi
    # the pooled connection that ran the migrations and lives on
    (echo "$lock"; exec sleep "$seconds") | client -A -t > /dev/null 2>&1 &
    sleep 0.3
    : > "$dir/started"
    for w in 1 2 3; do
        while running; do
            worker_start && echo "$w" >> "$dir/started"
        done &
    done
    while running; do sleep 0.5; done
    stop_server
    report "$(wc -l < "$dir/started")" starts
}

case $name in
    site-pages) site_pages ;;
    repo-clone) repo_clone ;;
    file-info) file_info ;;
    plane-alert) plane_alert ;;
    installer) installer ;;
    adapter-build) adapter_build ;;
    toolchain) toolchain ;;
    db-cluster) db_cluster ;;
    id-check) id_check ;;
    app-workers) app_workers ;;
    *) echo "unknown: $name" >&2; exit 2 ;;
esac
