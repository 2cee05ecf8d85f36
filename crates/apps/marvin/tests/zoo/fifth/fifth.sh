#!/bin/sh
# Cases of set Z for shell, make, git and PostgreSQL: argv = name seconds folder [fixed].
name=$1 seconds=$2 D=$3 form=$4
self=$0
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
PGBIN=/usr/lib/postgresql/15/bin

now() { read -r up rest </proc/uptime; cs=${up%.*}${up#*.}; }
now; last=$((cs + seconds * 100))
running() { now; [ "$cs" -lt "$last" ]; }
report() { echo "$name: $1 $2 in $seconds s${form:+ ($form)}"; }

# ---- lock-font: which fonts may the lock screen use

lock_font() {
    i=0
    while [ $i -lt 60 ]; do echo "Font-$i:style=Regular:lang=en:file=/usr/share/fonts/font$i.ttf"; i=$((i + 1)); done >"$D/fonts.list"
    printf '#!/bin/sh\nsort -t: -k3 "%s" | grep -m1 "$1"\n' "$D/fonts.list" >"$D/fc-match"
    done=0
    while running; do
        if [ "$form" = fixed ]; then
            awk -F: -v cmd="sh $D/fc-match lang=en" 'BEGIN { cmd | getline best; close(cmd); split(best, part, ":") }
                { if ($1 == part[1]) found = $1 } END { print found }' "$D/fonts.list" >"$D/font"
        else
            awk -F: -v cmd="sh $D/fc-match lang=en" '{ cmd | getline best; close(cmd); split(best, part, ":");
                if ($1 == part[1]) found = $1 } END { print found }' "$D/fonts.list" >"$D/font"
        fi
        done=$((done + 60))
    done
    report $done fonts
}

# ---- suite-build: nothing to do in all programs of a suite

suite_build() {
    dirs=""
    n=1
    while [ $n -le 30 ]; do
        mkdir -p "$D/suite/tool$n"
        printf 'compile: tool.o\nlink: tool.exe\ninstall: tool.inst\n\ntool.o: tool.c\n\tcp $< $@\ntool.exe: tool.o\n\tcp $< $@\ntool.inst: tool.exe\n\tcp $< $@\n.PHONY: compile link install\n' >"$D/suite/tool$n/Makefile"
        echo "int x$n;" >"$D/suite/tool$n/tool.c"
        cp "$D/suite/tool$n/tool.c" "$D/suite/tool$n/tool.o"
        cp "$D/suite/tool$n/tool.c" "$D/suite/tool$n/tool.exe"
        cp "$D/suite/tool$n/tool.c" "$D/suite/tool$n/tool.inst"
        dirs="$dirs tool$n"
        n=$((n + 1))
    done
    {
        echo "DIRS =$dirs"
        printf 'all:\n'
        for stage in compile link install; do
            printf '\t@for d in $(DIRS); do $(MAKE) --no-print-directory -s -C $$d %s || exit 1; done\n' $stage
        done
    } >"$D/suite/Makefile"
    {
        echo "DIRS =$dirs"
        printf 'all: $(DIRS:%%=%%/tool.inst)\n%%.o: %%.c\n\tcp $< $@\n%%.exe: %%.o\n\tcp $< $@\n%%.inst: %%.exe\n\tcp $< $@\n.SECONDARY:\n'
    } >"$D/suite/flat.mk"
    done=0
    makefile=Makefile
    [ "$form" = fixed ] && makefile=flat.mk
    while running; do
        make -s -C "$D/suite" -f $makefile all >"$D/build.log" || cat "$D/build.log"
        done=$((done + 1))
    done
    report $done builds
}

# ---- castle-link: links for the files of a home folder kept in git

make_castle() {
    mkdir -p "$D/castle/home"
    cd "$D/castle" || exit 1
    git init -q .
    n=1
    while [ $n -le 4 ]; do
        mkdir -p home/plugin$n
        (cd home/plugin$n && git init -q . && touch a$n b$n c$n && git add . && git commit -q -m p$n)
        n=$((n + 1))
    done
    n=1
    while [ $n -le 40 ]; do echo $n >home/.rc$n; n=$((n + 1)); done
    git add home/.rc* && git commit -q -m castle
}

track_file() {
    for module in home/plugin1 home/plugin2 home/plugin3 home/plugin4; do
        (cd $module && git ls-files) | while read -r inner; do echo "$module/$inner"; done
    done
    echo "$1"
}

list_tracked() {
    if [ "$form" = fixed ]; then
        git ls-files home
        for module in home/plugin1 home/plugin2 home/plugin3 home/plugin4; do (cd $module && git ls-files); done
    else
        git ls-files home | while read -r file; do
            track_file "$file"
            running || break
        done
    fi | sort -u
}

castle_link() {
    make_castle
    done=0
    while running; do
        list_tracked >"$D/tracked"
        done=$((done + 1))
    done
    report $done lists
}

# ---- session-save: notes when the last save was

session_fifo() {
    mkfifo "$D/last-save"
    echo ready
    exec sleep "$seconds"
}

ts_marker_write() {
    { printf '%s\n' "$2" >"$1"; } 2>/dev/null || true
}

session_save() {
    if [ "$form" != timed ] && [ "$form" != fixed ]; then
        exec perl -e 'alarm shift; exec @ARGV' "$seconds" sh "$self" session-save "$seconds" "$D" timed
    fi
    done=0
    trap 'rmdir "$D/save.lock"; report $done saves; exit 0' ALRM
    while running; do
        mkdir "$D/save.lock" || exit 1
        marker=$D/last-save
        [ "$form" = fixed ] && [ ! -f "$marker" ] && marker=$D/last-save.new
        ts_marker_write "$marker" "$done"
        rmdir "$D/save.lock"
        done=$((done + 1))
    done
    report $done saves
}

# ---- file-history: pages of the history of one file

history_repo() {
    git init -q "$D/history"
    awk 'BEGIN {
        for (c = 1; c <= 30000; c++) {
            printf "commit refs/heads/main\ncommitter a <a@b> %d +0000\ndata 4\nc%03d\n", 1600000000 + c * 60, c % 1000
            if (c > 1) printf "from :%d\n", c - 1
            f = c % 300
            s = sprintf("text %d of %d\n", c, f)
            body = sprintf("M 100644 inline dir%d/sub%d/file%d\ndata %d\n%s\n", f % 20, f % 7, f, length(s), s)
            printf "%s", body
        }
    }' | sed '/^from /d' | git -C "$D/history" fast-import --quiet
    git -C "$D/history" symbolic-ref HEAD refs/heads/main
    git -C "$D/history" commit-graph write --reachable --changed-paths --no-progress
    echo ready
    exec sleep "$seconds"
}

commits_by_file() {
    git -C "$D/history" rev-list --count main -- "$1" >"$D/count"
    if [ "$form" = fixed ]; then
        git -C "$D/history" rev-list --max-count=50 main -- "$1" >"$D/page"
    else
        git -C "$D/history" log main --follow --pretty=format:%H -- "$1" >"$D/page"
    fi
}

file_history() {
    done=0
    while running; do
        commits_by_file "dir17/sub2/file37"
        done=$((done + 1))
    done
    report $done pages
}

# ---- PostgreSQL

as_user() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
sql() { as_user env PGOPTIONS="$PGOPTIONS" psql -X -q -t -A -h "$D/pg" -U app postgres "$@"; }

make_cluster() {
    chmod a+x "$D"
    mkdir "$D/pg" && chown 65534:65534 "$D/pg"
    cd "$D/pg" || exit 1
    as_user $PGBIN/initdb -D "$D/pg/data" -U app -A trust --no-sync -E UTF8 --locale=C >"$D/initdb.log" 2>&1 || cat "$D/initdb.log"
    cat >>"$D/pg/data/postgresql.conf" <<END
listen_addresses = ''
unix_socket_directories = '$D/pg'
shared_buffers = 32MB
max_wal_size = 64MB
min_wal_size = 32MB
jit = off
max_parallel_workers_per_gather = 0
autovacuum = off
END
}

start_cluster() {
    cd "$D/pg" || exit 1
    setpriv --reuid=65534 --regid=65534 --clear-groups $PGBIN/postgres -D "$D/pg/data" >"$D/pg.log" 2>&1 &
    server=$!
    until sql -c 'select 1' >/dev/null 2>&1; do sleep 0.05; done
}

stop_cluster() { kill -INT "$server"; wait "$server"; }

# catalog-db, catalog-api: reading of the catalog on each request
catalog_db() {
    make_cluster
    start_cluster
    sql -c "create table catalogs(id int primary key, physical_schema text);
            insert into catalogs select i, 's_' || i from generate_series(1, 1000) i;" >/dev/null
    if [ "$form" != fixed ]; then
        { echo "begin; select * from catalogs where id = 1;"; sleep "$seconds"; } | sql >/dev/null &
        sleep 0.3
        sql -c "alter table catalogs add column if not exists provisioning_checklist text" >/dev/null &
        sleep 0.3
    fi
    trap 'stop_cluster; exit 0' TERM INT HUP
    echo ready
    sleep "$seconds" &
    wait $!
    stop_cluster
}

catalog_request() {
    PGOPTIONS="-c statement_timeout=${seconds}000"
    i=0
    while running; do
        i=$((i + 1))
        sql -c "select physical_schema from catalogs where id = $((i % 1000 + 1))" >>"$D/answers.$1" 2>&1
    done
}

catalog_api() {
    catalog_request 1 & a=$!
    catalog_request 2 & b=$!
    wait $a $b
    report "$(cat "$D"/answers.* | grep -c '^s_')" answers
}

# asset-db, asset-lookup: finds an asset by its address
asset_db() {
    make_cluster
    start_cluster
    sql -c "create table identifier(id int primary key, parent_path varchar(255), asset_name varchar(255), host_inode varchar(100));
            insert into identifier select i, '/Images/Folder' || i % 200 || '/', 'Asset-' || i || '.PNG', 'host' || i % 3
                from generate_series(1, 60000) i;
            create unique index identifier_idx on identifier(parent_path, asset_name, host_inode);
            analyze identifier;" >/dev/null
    [ "$form" = fixed ] && sql -c "create index identifier_lcase on identifier(lower(parent_path), lower(asset_name), host_inode); analyze identifier" >/dev/null
    stop_cluster
    echo ready
    exec sleep "$seconds"
}

find_by_uri() {
    i=0
    count=50
    [ "$form" = fixed ] && count=1000
    while running; do
        n=0
        while [ $n -lt $count ]; do
            i=$(((i + 7919) % 60000))
            echo "select id from identifier where lower(parent_path) = lower('/images/folder$((i % 200))/') and lower(asset_name) = lower('asset-$i.png') and host_inode = 'host$((i % 3))';"
            n=$((n + 1))
        done >"$D/pg/find.sql"
        sql -f "$D/pg/find.sql" >>"$D/found"
    done
}

asset_lookup() {
    start_cluster
    find_by_uri
    stop_cluster
    report "$(wc -l <"$D/found")" assets
}

# lease-db, lease-renew: hosts note that they are still there
lease_db() {
    make_cluster
    start_cluster
    sql -c "create table control_lease(host_id int primary key, cell int, renewed_at timestamptz, generation int) with (fillfactor = 50);
            insert into control_lease select i, i % 4, now(), 0 from generate_series(1, 2000) i;" >/dev/null
    stop_cluster
    echo ready
    exec sleep "$seconds"
}

renew_cell() {
    i=$1
    while running; do
        n=0
        if [ "$form" = fixed ]; then
            while [ $n -lt 20 ]; do
                echo "update control_lease set renewed_at = now(), generation = generation + 1 where cell = $1 % 4 and host_id / 4 % 20 = $n;"
                n=$((n + 1))
            done
        else
            while [ $n -lt 60 ]; do
                echo "update control_lease set renewed_at = now(), generation = generation + 1 where host_id = $i;"
                i=$((i % 1996 + 4))
                n=$((n + 1))
            done
        fi >"$D/pg/renew.$1"
        sql -f "$D/pg/renew.$1"
    done
}

lease_renew() {
    start_cluster
    renew_cell 1 & a=$!
    renew_cell 2 & b=$!
    wait $a $b
    total=$(sql -c "select sum(generation) from control_lease")
    stop_cluster
    report "$total" renewals
}

case $name in
lock-font) lock_font ;;
suite-build) suite_build ;;
castle-link) castle_link ;;
history-repo) history_repo ;;
session-fifo) session_fifo ;;
session-save) session_save ;;
file-history) file_history ;;
catalog-db) catalog_db ;;
catalog-api) catalog_api ;;
asset-db) asset_db ;;
asset-lookup) asset_lookup ;;
lease-db) lease_db ;;
lease-renew) lease_renew ;;
*) echo "unknown: $name" >&2; exit 2 ;;
esac
