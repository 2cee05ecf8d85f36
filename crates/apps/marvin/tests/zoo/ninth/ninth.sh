#!/bin/sh
# Programs after public reports, ninth half: shell, make, git, PostgreSQL.
# Usage: sh ninth.sh CASE SECONDS FOLDER [BINARIES OF POSTGRESQL]

name=$1
seconds=$2
folder=$3
binaries=$4
work=$folder/$name
self=$0

new_folder() {
    rm -rf "$work"
    mkdir -p "$work"
    end=$(($(date +%s%N) + seconds * 1000000000))
}

running() {
    [ "$(date +%s%N)" -lt "$end" ]
}

start_background() {
    sleep "$seconds" > /dev/null &
    background=$!
}

exec_foreground() {
    { ls "$work" > "$work/out"; } 2> "$work/err" &
    wait
    results=$((results + 1))
}

sandbox_exec() {
    new_folder
    results=0
    start_background
    while running; do
        exec_foreground
    done
    kill $background 2> /dev/null
    echo "sandbox-exec: $results results"
}

mark_directory() {
    sed -i "s|^\($1\)\$|%dir \1|" "$work/files"
}

spec_files() {
    new_folder
    awk 'BEGIN { for (i = 0; i < 120000; i++) print "/opt/kit/share/part" i "/file" i }' \
        > "$work/files"
    marked=0
    while running; do
        mark_directory "/opt/kit/share/part$marked/file$marked"
        marked=$((marked + 1))
    done
    echo "spec-files: $marked entries"
}

prove_task() {
    auth=${MAKEFLAGS##*--jobserver-auth=}
    auth=${auth%% *}
    timeout "$PROVE_SECONDS" dd if="/proc/self/fd/${auth%,*}" of=task bs=1 count=1 2> /dev/null &&
        dd if=task of="/proc/self/fd/${auth#*,}" bs=1 count=1 2> /dev/null
    echo proved >> log
}

proof_farm() {
    new_folder
    cat > "$work/Makefile" <<EOF
all: unit1 unit2 unit3
unit%:
	+@cd $work && sh $self prove-task $seconds $folder
EOF
    case $self in /*) ;; *) sed -i "s|sh $self|sh $PWD/$self|" "$work/Makefile" ;; esac
    PROVE_SECONDS=$seconds make -s -j3 -f "$work/Makefile" 2> "$work/err"
    echo "proof-farm: $(grep -c proved "$work/log") proofs"
}

driver_build() {
    new_folder
    mkdir "$work/devices"
    for device in el1 el2 el3; do
        echo "int $device;" > "$work/devices/$device.c"
    done
    touch -d tomorrow "$work/devices/el3.c"
    cat > "$work/Makefile" <<'EOF'
srcs := $(wildcard devices/*.c)
all: $(srcs:.c=.o)
%.d: %.c
	@echo "$*.o: $<" > $@
	@echo $< >> log
%.o: %.c
	@cp $< $@
include $(srcs:.c=.d)
EOF
    timeout "$seconds" make -s -C "$work" > /dev/null 2>&1
    echo "driver-build: $(grep -c . "$work/log") lists"
}

fetch_tags() {
    rm -rf "$work/clone/.git/refs/tags" "$work/clone/.git/packed-refs"
    mkdir "$work/clone/.git/refs/tags"
    left=$(((end - $(date +%s%N)) / 1000000 + 1))
    left=$((left / 1000)).$(printf %03d $((left % 1000)))
    timeout "$left" git -C "$work/clone" fetch -q --tags origin
}

tag_fetch() {
    new_folder
    git init -q -b main "$work/origin"
    git -C "$work/origin" -c user.name=a -c user.email=a@b commit -q --allow-empty -m first
    head=$(git -C "$work/origin" rev-parse HEAD)
    git clone -q "$work/origin" "$work/clone"
    git -C "$work/clone" config core.fsync none
    awk -v h="$head" 'BEGIN {
        print "# pack-refs with: peeled fully-peeled sorted "
        for (i = 0; i < 3000; i++) printf "%s refs/tags/v%04d\n", h, i
    }' > "$work/origin/.git/packed-refs"
    hook=$work/clone/.git/hooks/reference-transaction
    printf '#!/bin/sh\ncat >> %s/clone/seen\n' "$work" > "$hook"
    chmod +x "$hook"
    end=$(($(date +%s%N) + seconds * 1000000000))
    while running; do
        fetch_tags
    done
    echo "tag-fetch: $(git -C "$work/clone" tag | wc -l) tags"
}

permalink() {
    new_folder
    git init -q -b main "$work/repo"
    awk 'BEGIN {
        for (i = 1; i <= 3000; i++) {
            print "commit refs/heads/main"
            print "committer a <a@b> " 1600000000 + i * 60 " +0000"
            print "data 5\nstep\n"
        }
    }' | git -C "$work/repo" fast-import --quiet
    git -C "$work/repo" rev-list --max-count=2900 main | awk '
        BEGIN { print "# pack-refs with: peeled fully-peeled sorted " }
        { printf "%s refs/heads/topic%05d\n", $1, NR }' > "$work/repo/.git/packed-refs"
    old=$(git -C "$work/repo" rev-parse main~2950)
    end=$(($(date +%s%N) + seconds * 1000000000))
    searched=0
    while running; do
        timeout "$seconds" git -C "$work/repo" for-each-ref \
            --format='%(refname) %(objectname)' --contains "$old" > "$work/branches"
        searched=$((searched + 1))
    done
    echo "permalink: $searched searches"
}

as_user() {
    program=$1
    shift
    exec unshare --user --map-user=1000 --map-group=1000 "$binaries/$program" "$@"
}

start_server() {
    data=$work/data
    (as_user postgres -D "$data" -k "$work" -c listen_addresses= -c max_connections=20 \
        > "$work/server.log" 2>&1) &
    server=$!
    until "$binaries/pg_isready" -q -h "$work"; do
        sleep 0.1
    done
}

stop_server() {
    kill -INT "$server"
    wait "$server"
}

prepare() {
    work=$folder/${name%-setup}
    rm -rf "$work"
    mkdir -p "$work"
    (as_user initdb -D "$work/data" -U app -A trust > "$work/initdb.log" 2>&1)
    start_server
    "$binaries/psql" -q -h "$work" -U app postgres > "$work/setup.log" 2>&1
    stop_server
    echo ready
    sleep "$seconds"
}

run_bench() {
    start_server
    "$binaries/pgbench" -n -h "$work" -U app -c "$1" -T "$seconds" -f "$work/script.sql" \
        postgres > "$work/bench.log" 2>&1
    stop_server
    echo "$name: $(sed -n 's/^number of transactions.*: //p' "$work/bench.log") $2"
}

job_queue_setup() {
    prepare <<'EOF'
CREATE TABLE jobs(id bigserial PRIMARY KEY, queue text, status text, payload text);
EOF
}

job_queue() {
    cat > "$work/script.sql" <<'EOF'
INSERT INTO jobs(queue, status, payload) VALUES ('mail', 'new', '{"to":"ann"}');
EOF
    run_bench 1 jobs
}

sensor_archive_setup() {
    prepare <<'EOF'
CREATE TABLE data_table(source int, at bigint, value float);
DO $do$
BEGIN
    FOR i IN 0..1499 LOOP
        EXECUTE format('CREATE TABLE data_p%s(CHECK (at >= %s AND at < %s))'
            ' INHERITS (data_table)', i, i * 1000, (i + 1) * 1000);
        IF i % 500 = 0 THEN
            COMMIT;
        END IF;
    END LOOP;
END
$do$;
INSERT INTO data_p700 SELECT g % 5, 700000 + g, g FROM generate_series(0, 900) g;
EOF
}

sensor_archive() {
    cat > "$work/script.sql" <<'EOF'
SELECT source, max(value) FROM data_table WHERE at >= 700100 AND at < 700200 GROUP BY source;
EOF
    run_bench 1 reports
}

case $name in
    sandbox-exec) sandbox_exec ;;
    spec-files) spec_files ;;
    prove-task) prove_task ;;
    proof-farm) proof_farm ;;
    driver-build) driver_build ;;
    tag-fetch) tag_fetch ;;
    permalink) permalink ;;
    job-queue-setup) job_queue_setup ;;
    job-queue) job_queue ;;
    sensor-archive-setup) sensor_archive_setup ;;
    sensor-archive) sensor_archive ;;
esac
