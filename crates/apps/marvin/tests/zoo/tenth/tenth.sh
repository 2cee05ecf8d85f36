#!/bin/sh
# Tenth half of the zoo: programs in shell. Arguments: CASE SECONDS FOLDER [PGBIN].
set -u
case_name=$1
seconds=$2
mkdir -p "$3"
folder=$(cd "$3" && pwd)
bin=${4:-/usr/bin}
dir=$folder/$case_name

fresh() {
    rm -rf "$dir"
    mkdir -p "$dir"
    cd "$dir" || exit 1
}

deadline() {
    stop=
    trap 'stop=1' ALRM
    (sleep "$seconds"; kill -ALRM $$) &
}

end_here() {
    for process in /proc/[0-9]*; do
        if [ "$(readlink "$process/cwd" 2>/dev/null)" = "$dir" ] &&
            [ "$(cat "$process/comm" 2>/dev/null)" = "$1" ]; then
            kill "${process#/proc/}" 2>/dev/null
        fi
    done
}

roster_merge() {
    sort -u >"state.$1"
    cat "state.$1" >>journal
}

roster_sync_driver() {
    exec 9>team.lock
    flock 9
    if [ "$1" -le 3 ]; then
        roster_merge "$1" <members
    else
        roster_merge "$1" <feed
    fi
    echo "$1" >>done
}

team_sync() {
    fresh
    mkfifo feed
    exec 7<>feed
    printf 'ann\nbob\ncarl\n' >members
    : >done
    (sleep "$seconds"; : >over) 7>&- &
    timer=$!
    run=1
    pids=
    while [ "$run" -le 8 ]; do
        (exec 7>&-; roster_sync_driver "$run") &
        pids="$pids $!"
        run=$((run + 1))
        sleep 0.03
    done
    wait "$timer"
    count=$(grep -c . done)
    exec 7>&-
    kill $pids 2>/dev/null
    wait
    echo "team-sync: $count runs"
}

cluster_up() {
    fresh
    echo 'etcd apiserver scheduler' >services
    deadline
    turns=0
    while [ -z "$stop" ]; do
        read -r x
        turns=$((turns + 1))
    done </dev/null
    echo "cluster-up: $turns turns"
}

git_repo() {
    git init -q .
    git config user.email zoo@example.org
    git config user.name zoo
    git config gc.auto 0
}

hunk_stage() {
    fresh
    git_repo
    i=0
    while [ "$i" -lt 24 ]; do
        head -c 2000000 /dev/zero | tr '\0' 'x' >"asset$i.txt"
        i=$((i + 1))
    done
    git add .
    git commit -q -m assets
    touch -d '2020-01-01' asset*.txt
    deadline
    refreshes=0
    while [ -z "$stop" ]; do
        GIT_OPTIONAL_LOCKS=0 git status --porcelain >status.txt
        refreshes=$((refreshes + 1))
    done
    echo "hunk-stage: $refreshes refreshes"
}

write_sources() {
    mkdir "$1"
    awk -v dir="$1" -v salt="$2" 'BEGIN {
        srand(salt)
        for (f = 0; f < 350; f++) {
            name = dir "/unit" f ".c"
            for (l = 0; l < 60; l++)
                printf "int value_%d_%d = %d;\n", l, f % 7, int(rand() * 100000) > name
            close(name)
        }
    }'
}

repo_miner() {
    fresh
    git_repo
    write_sources old 1
    git add .
    git commit -q -m old
    git rm -q -r old
    write_sources new 2
    git add .
    git commit -q -m new
    deadline
    walks=0
    while [ -z "$stop" ]; do
        git log --raw --numstat -M -l0 --pretty=fuller >log.txt
        walks=$((walks + 1))
    done
    echo "repo-miner: $walks walks"
}

write_access_log() {
    line=0
    while [ ! -e over ]; do
        line=$((line + 1))
        echo "GET /page$line HTTP/1.1 200" >>access.log
        sleep 0.05
    done
}

follow_log() {
    tail -n0 -f access.log | grep -v '/img/' | while read -r request; do
        echo "$request" >>seen.log
    done
}

log_follow() {
    fresh
    : >access.log
    : >seen.log
    follow_log &
    follower=$!
    write_access_log &
    writer=$!
    sleep "$seconds"
    count=$(grep -c . seen.log)
    : >over
    wait "$writer"
    end_here tail
    wait "$follower" 2>/dev/null
    echo "log-follow: $count lines"
}

cache_build() {
    fresh
    cat >take.sh <<'EOF'
auth=${MAKEFLAGS##*--jobserver-auth=}
auth=${auth%% *}
read_end=${auth%,*}
write_end=${auth#*,}
token=$(head -c 1 "/proc/self/fd/$read_end")
echo object >"$1"
sleep 0.01
printf '%s' "$token" >"/proc/self/fd/$write_end"
EOF
    cat >Makefile <<'EOF'
objects := $(foreach n,1 2 3 4 5 6 7 8 9,$(foreach m,1 2 3 4 5 6 7 8 9,unit$(n)$(m).o))
all: $(objects)
$(objects):
	+@sh ./take.sh $@
EOF
    make -s -j2 all >make.log 2>&1 &
    maker=$!
    sleep "$seconds"
    count=$(ls | grep -c '\.o$')
    kill -TERM "$maker" 2>/dev/null
    end_here head
    wait "$maker" 2>/dev/null
    echo "cache-build: $count objects"
}

pg() {
    program=$1
    shift
    unshare --user --map-user=1000 --map-group=1000 "$bin/$program" "$@"
}

sql() {
    pg psql -X -q -h "$dir" -U postgres -d postgres "$@"
}

start_server() {
    cd "$dir" || exit 1
    pg postgres -D "$dir/db" -k "$dir" -h '' -c fsync=off -c jit=off >server.log 2>&1 &
    server=$!
    tries=0
    while ! pg pg_isready -q -h "$dir" && [ "$tries" -lt 50 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
}

stop_server() {
    kill -INT "$(head -n 1 "$dir/db/postmaster.pid")" 2>/dev/null
    wait "$server"
}

prepare_data() {
    dir=$folder/${case_name%-data}
    fresh
    pg initdb -D "$dir/db" -U postgres -A trust --no-sync >initdb.log 2>&1
    start_server
    sql -f - >load.log 2>&1
    stop_server
    echo ready
    sleep "$seconds"
    echo "$case_name: 1 database"
}

rank_agg_data() {
    prepare_data <<'EOF'
CREATE AGGREGATE sg_jsonb_concat_agg(jsonb)
    (SFUNC = jsonb_concat, STYPE = jsonb, INITCOND = '{}');
CREATE TABLE path_ranks AS
    SELECT jsonb_build_object('src/file' || i || '.go', i) AS payload
    FROM generate_series(1, 6000) i;
EOF
}

rank_agg() {
    begin=$(date +%s)
    start_server
    ranks=0
    while [ $(($(date +%s) - begin)) -lt "$seconds" ]; do
        sql -c 'SELECT sg_jsonb_concat_agg(payload) FROM path_ranks' >ranks.txt
        ranks=$((ranks + 1))
    done
    stop_server
    echo "rank-agg: $ranks ranks"
}

index_migrate_data() {
    prepare_data <<'EOF'
CREATE TABLE schema_history(version int, success bool);
INSERT INTO schema_history VALUES (1, true);
CREATE TABLE cities AS SELECT i AS id, md5(i::text) AS name FROM generate_series(1, 5000) i;
EOF
}

index_migrate() {
    start_server
    {
        echo 'BEGIN; SELECT max(version) FROM schema_history;'
        sleep "$seconds"
    } | sql >history.txt &
    history=$!
    sleep 0.2
    sql -c 'DROP INDEX IF EXISTS idx_cities_name' -c 'CREATE INDEX CONCURRENTLY
        idx_cities_name ON cities(name)' >migrate.log 2>&1
    wait "$history"
    stop_server
    echo "index-migrate: 1 index"
}

case $case_name in
    team-sync) team_sync ;;
    cluster-up) cluster_up ;;
    hunk-stage) hunk_stage ;;
    repo-miner) repo_miner ;;
    log-follow) log_follow ;;
    cache-build) cache_build ;;
    rank-agg-data) rank_agg_data ;;
    rank-agg) rank_agg ;;
    index-migrate-data) index_migrate_data ;;
    index-migrate) index_migrate ;;
    *) exit 2 ;;
esac
