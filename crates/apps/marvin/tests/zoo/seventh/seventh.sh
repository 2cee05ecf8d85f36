#!/bin/sh
# Programs written anew from public reports: NAME SECONDS SCRATCH [fixed | FOLDER-OF-POSTGRES].
name=$1
seconds=$2
scratch=$3
form=$4

clear_folder() {
    home=$scratch/$1
    rm -rf "$home"
    mkdir -p "$home"
}

begin() {
    read -r up _ < /proc/uptime
    over=$(( ${up%.*}${up#*.} + ${seconds%.*} * 100 ))
    rounds=0
}

is_over() {
    read -r up _ < /proc/uptime
    [ "${up%.*}${up#*.}" -ge "$over" ]
}

# --- AD23: an installer that walks through its manifest -----------------------------------------
install_component() {
    while read -r directive; do
        rounds=$((rounds + 1))
        if [ "$form" = fixed ]; then
            command=${directive%%:*}
            file=${directive#*:}
            case $file in etc/*|bin/*|lib/*|share/*) known=yes ;; *) known=no ;; esac
            dest=/usr/local/${file#/}
            continue
        fi
        command=$(echo "$directive" | cut -f1 -d:)
        file=$(echo "$directive" | cut -f2 -d:)
        if echo "$file" | grep -q '^\(etc\|bin\|lib\|share\)/'; then known=yes; else known=no; fi
        dest=$(echo "$file" | sed 's,^/*,/usr/local/,')
        is_over && break
    done < "$1"
    last="$command $known $dest"
}

pkg_install() {
    clear_folder pkg-install
    i=0
    while [ $i -lt 2000 ]; do
        echo "file:share/doc/part$i.html"
        i=$((i + 1))
    done > "$home/manifest.in"
    begin
    until is_over; do install_component "$home/manifest.in"; done
    echo "entries: $rounds in $seconds s ($last)"
}

# --- AD24: a makefile that is asked for small things --------------------------------------------
write_project() {
    clear_folder site-make
    a=0
    while [ $a -lt 60 ]; do
        mkdir -p "$home/app/part$a/sub"
        b=0
        while [ $b -lt 150 ]; do
            : > "$home/app/part$a/sub/page$b.html"
            b=$((b + 1))
        done
        : > "$home/app/part$a/run.sh"
        a=$((a + 1))
    done
    {
        if [ "$form" = fixed ]; then
            printf 'SHELL_FILES = $(shell find . -name "*.sh")\n'
        else
            printf 'SHELL_FILES := $(shell find . -name "*.sh")\n'
        fi
        printf 'version:\n\t@:\nlint-shellcheck:\n\t@echo $(SHELL_FILES)\n'
        printf '.PHONY: version lint-shellcheck\n'
    } > "$home/Makefile"
}

site_make() {
    write_project
    begin
    until is_over; do
        make -s -C "$home" version
        rounds=$((rounds + 1))
    done
    echo "makes: $rounds in $seconds s"
}

# --- AD25: a line that is taken apart, character by character -----------------------------------
unpack_line() {
    __buf=$1
    __len=0
    while [ -n "$__buf" ]; do
        if [ "$form" = fixed ]; then
            __rest=${__buf#????????????????????????????????}
            [ "$__rest" = "$__buf" ] && __rest=
            __part=${__buf%"$__rest"}
            while [ -n "$__part" ]; do
                __next=${__part#?}
                __char=${__part%"$__next"}
                __part=$__next
                __len=$((__len + 1))
            done
            __buf=$__rest
            continue
        fi
        __next=${__buf#?}
        __char=${__buf%"$__next"}
        __buf=$__next
        __len=$((__len + 1))
    done
}

line_cat() {
    line=
    i=0
    while [ $i -lt 600 ]; do
        line="${line}part$i,"
        i=$((i + 1))
    done
    begin
    until is_over; do
        unpack_line "$line"
        rounds=$((rounds + __len))
    done
    echo "characters: $rounds in $seconds s (last $__char)"
}

# --- AD26: counts of the commits of a repository ------------------------------------------------
repo_mirror() {
    clear_folder commit-count
    git init -q "$home/repo.git" --bare
    i=0
    while [ $i -lt 20000 ]; do
        i=$((i + 1))
        printf 'commit refs/heads/main\ncommitter A <a@b> %d +0000\n' $((1400000000 + i * 60))
        printf 'data 120\n%-120s\n' "change number $i of the pages and parts of this project"
    done | git -C "$home/repo.git" fast-import --quiet
    [ "$form" = fixed ] && git -C "$home/repo.git" commit-graph write --reachable
    echo "mirror is ready"
    exec sleep "$seconds"
}

commit_count() {
    begin
    until is_over; do
        count=$(git -C "$scratch/commit-count/repo.git" rev-list --count main)
        rounds=$((rounds + 1))
    done
    echo "counts of $count: $rounds in $seconds s"
}

# --- AD27, AD28: databases; form is the folder of PostgreSQL's tools ----------------------
as_owner() { unshare --user --map-user=1000 --map-group=1000 "$@"; }

# $1: the case; standard input: the statements that make its tables; $work: its query.
database_client() {
    tools=$form
    clear_folder "$1"
    data=$home/data
    as_owner "$tools/initdb" -N -A trust -U app -E UTF8 --locale=C -D "$data" > "$home/initdb" 2>&1
    {
        echo "listen_addresses = ''"
        echo "unix_socket_directories = '$home'"
        echo "max_wal_size = 64MB"
        echo "fsync = off"
        echo "autovacuum = off"
        echo "max_parallel_workers_per_gather = 0"
        echo "jit = off"
        echo "$settings"
    } >> "$data/postgresql.conf"
    as_owner "$tools/postgres" -D "$data" > "$home/log" 2>&1 &
    wait_for_server
    "$tools/psql" -q -h "$home" -U app postgres > "$home/setup" 2>&1
    stop_server
    wait
    echo "$work" > "$home/work.sql"
    echo "client of $1 is ready"
    read -r up _ < /proc/uptime
    last=$(( ${up%.*} + ${seconds%.*} ))
    while read -r up _ < /proc/uptime && [ "${up%.*}" -lt $last ]; do
        if "$tools/psql" -q -h "$home" -U app -c 'SELECT 1' postgres > /dev/null 2>&1; then
            "$tools/pgbench" -n -M prepared -h "$home" -U app -c 1 -T 5 -f "$home/work.sql" \
                postgres > "$home/result" 2>&1
            stop_server
        fi
        sleep 0.05
    done
}

wait_for_server() {
    until "$tools/psql" -q -h "$home" -U app -c 'SELECT 1' postgres > /dev/null 2>&1; do
        sleep 0.1
    done
}

stop_server() {
    if read -r postmaster < "$data/postmaster.pid" && read -r comm < "/proc/$postmaster/comm" &&
        [ "$comm" = postgres ] && kill -INT "$postmaster"; then
        tries=0
        while [ $tries -lt 100 ] && read -r current < "$data/postmaster.pid" &&
            [ "$current" = "$postmaster" ]; do
            sleep 0.05
            tries=$((tries + 1))
        done
    fi
} 2> /dev/null

login_client() {
    settings="work_mem = '4MB'"
    column='lower(email)'
    [ "$5" = fixed ] && column=email
    work="\\set n random(1, 120000)
SELECT id, email, role FROM users WHERE $column = 'user' || :n || '@example.com' LIMIT 1;"
    database_client user-login << END
CREATE TABLE users (id serial PRIMARY KEY, email text, role text, meta text);
INSERT INTO users (email, role, meta) SELECT 'user' || g || '@example.com', 'authenticated',
    md5(g::text) || md5((g + 1)::text) FROM generate_series(1, 120000) g;
CREATE INDEX users_email_idx ON users (email);
VACUUM ANALYZE users;
CHECKPOINT;
END
}

workflow_client() {
    settings="shared_buffers = '64MB'"
    work="SELECT name, phase, workflow->'metadata'->>'labels', workflow->'metadata'->>'annotations',
 workflow->'status'->>'progress', workflow->'spec'->>'suspend', workflow->'status'->>'message'
 FROM argo_archived_workflows ORDER BY startedat DESC LIMIT 100;"
    [ "$5" = fixed ] && work="SELECT name, phase, labels, progress
 FROM argo_archived_workflows ORDER BY startedat DESC LIMIT 100;"
    database_client workflow-archive << END
CREATE TABLE argo_archived_workflows (uid serial PRIMARY KEY, name text, phase text,
    startedat timestamptz, labels text, progress text, workflow jsonb);
INSERT INTO argo_archived_workflows (name, phase, startedat, labels, progress, workflow)
SELECT 'flow-' || g, 'Succeeded', now() - g * interval '1 minute', 'a', '3/3', jsonb_build_object(
    'metadata', jsonb_build_object('labels', jsonb_build_object('app', 'x' || g),
        'annotations', jsonb_build_object('note', g)),
    'spec', jsonb_build_object('suspend', false),
    'status', jsonb_build_object('progress', '3/3', 'message', 'done', 'nodes', (
        SELECT jsonb_object_agg('node-' || n, jsonb_build_object('phase', 'Succeeded',
            'displayName', 'step number ' || n || ' of the flow', 'templateName', 'main',
            'hostNodeName', md5((n + g)::text))) FROM generate_series(1, 300) n)))
    FROM generate_series(1, 300) g;
CREATE INDEX argo_startedat_idx ON argo_archived_workflows (startedat);
VACUUM ANALYZE argo_archived_workflows;
CHECKPOINT;
END
}

case $name in
    pkg-install) pkg_install ;;
    site-make) site_make ;;
    line-cat) line_cat ;;
    repo-mirror) repo_mirror ;;
    commit-count) commit_count ;;
    login-client) login_client "$@" ;;
    workflow-client) workflow_client "$@" ;;
esac
