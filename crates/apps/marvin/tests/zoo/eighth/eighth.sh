# Eighth set of shell, make, git and PostgreSQL programs: one function per case.
# Use: sh eighth.sh CASE SECONDS FOLDER [FOLDER-OF-POSTGRESQL-PROGRAMS]
case_name=$1
seconds=$2
folder=$3
pg=$4

now() { date +%s; }

fresh() {
  rm -rf "$folder/$1"
  mkdir -p "$folder/$1"
}

done_line() { echo "$1: $2 $3"; }

# --- stage-files (git) --------------------------------------------------------

stage_files() {
  fresh stage-files
  cd "$folder/stage-files" || exit 1
  git init -q .
  blob=$(echo content | git hash-object -w --stdin)
  awk -v b="$blob" 'BEGIN { for (i = 0; i < 60000; i++)
    printf "100644 %s\tnode_modules/package-%d/lib/file-%d.js\n", b, i % 700, i }' |
    git update-index --index-info
  mkdir changed
  end=$(($(now) + seconds))
  n=0
  while [ "$(now)" -lt "$end" ]; do
    for k in 0 1 2 3 4 5 6 7; do
      echo "$n" > "changed/file-$n-$k.js"
      git add -- "changed/file-$n-$k.js"
    done
    n=$((n + 1))
  done
  done_line stage-files $((n * 8)) files
}

# --- repo-analyze (git) -------------------------------------------------------

write_module() {
  awk -v dir="$1" -v note="$2" 'BEGIN { for (i = 0; i < 950; i++) {
    file = dir "/" note "-" i ".c"; srand(i)
    for (l = 0; l < 60; l++) print "int value_" int(rand() * 1000000) ";" > file
    print note, i > file; close(file) } }'
}

repo_analyze() {
  fresh repo-analyze
  cd "$folder/repo-analyze" || exit 1
  git init -q .
  git config user.email a@b
  git config user.name a
  git config gc.auto 0
  mkdir old
  write_module old module
  git add . && git commit -q -m first
  mkdir new
  write_module new unit
  rm -r old
  git add -A . && git commit -q -m second
  end=$(($(now) + seconds))
  n=0
  while [ "$(now)" -lt "$end" ]; do
    git diff-tree --always --root -r -M --raw HEAD > analysis.txt
    n=$((n + 1))
  done
  done_line repo-analyze "$n" commits
}

# --- page-render (shell) ------------------------------------------------------

session_worker() { exec sleep "$1"; }

render_page() {
  session_worker "$1" &
  echo "<p>page $2</p>"
}

page_render() {
  fresh page-render
  end=$(($(now) + seconds))
  n=0
  while [ "$(now)" -lt "$end" ]; do
    body=$(render_page $((end - $(now))) "$n")
    echo "$body" >> "$folder/page-render/site.html"
    n=$((n + 1))
  done
  done_line page-render "$n" pages
}

# --- proxy-config (shell) -----------------------------------------------------

start_haproxy() { sleep "$1" & }

update_config() {
  (
    flock -w "$1" 9 || exit 1
    echo "server $2" >> "$folder/proxy-config/haproxy.cfg"
    [ "$2" -gt 0 ] || start_haproxy $((seconds + 1))
  ) 9> "$folder/proxy-config/lock"
}

proxy_config() {
  fresh proxy-config
  end=$(($(now) + seconds))
  n=0
  while [ "$(now)" -lt "$end" ]; do
    update_config $((end - $(now))) "$n" || break
    n=$((n + 1))
  done
  done_line proxy-config "$n" servers
}

# --- graphics-make (make) -----------------------------------------------------

graphics_make() {
  fresh graphics-make
  cd "$folder/graphics-make" || exit 1
  awk 'BEGIN {
    print "_INCGFX :="
    for (i = 0; i < 9000; i++) {
      f = "graphics/pokemon/species_" int(i / 4) "/front_" i ".4bpp"
      print "ifeq (,$(findstring " f ",$(_INCGFX)))"
      print "_INCGFX += " f
      print f ": source.png"
      print "endif"
    }
    print "rom.gba:"
    print "\t@touch $@"
  }' > rules.mk
  touch source.png
  printf 'all: rom.gba\ninclude rules.mk\n' > Makefile
  end=$(($(now) + seconds))
  n=0
  while [ "$(now)" -lt "$end" ]; do
    make -s all
    n=$((n + 1))
  done
  done_line graphics-make "$n" builds
}

# --- PostgreSQL ---------------------------------------------------------------

sql() { "$pg/psql" -q -h "$data" -U postgres -d postgres -At "$@"; }

start_server() {
  data=$folder/$1
  unshare --user --map-user=1000 --map-group=1000 "$pg/postgres" -D "$data" -k "$data" \
    -c listen_addresses= -c autovacuum=off "$2" "$3" > "$data/log" 2>&1 &
  server=$!
  tries=0
  until "$pg/pg_isready" -q -h "$data" -U postgres -d postgres || [ $tries -ge 50 ]; do
    sleep 0.1
    tries=$((tries + 1))
  done
}

stop_server() {
  kill -INT "$server"
  wait "$server"
}

cluster() {
  data=$folder/$1
  rm -rf "$data"
  mkdir -p "$data"
  chmod 700 "$data"
  unshare --user --map-user=1000 --map-group=1000 "$pg/initdb" -D "$data" -U postgres -A trust -N \
    > "$folder/$1.init" 2>&1
  start_server "$1" -c fsync=off
  sql > /dev/null
  stop_server
  rm -f "$folder/$1.init"
  echo ready
  sleep "$seconds"
}

care_cluster() {
  cluster care-report << 'SQL'
CREATE TABLE placement AS SELECT g AS id, g % 40 AS unit, g % 7 AS kind,
  date '2021-01-01' + g % 200 AS start_date, g % 11 AS hours FROM generate_series(1, 3000) g;
CREATE TABLE absence AS SELECT g AS id, 1 + g % 3000 AS placement_id, g % 5 AS category
  FROM generate_series(1, 3000) g;
ANALYZE;
SQL
}

care_report() {
  start_server care-report -c max_parallel_workers_per_gather=0
  cat > "$data/report.sql" << 'SQL'
SELECT count(*) FROM (
  SELECT p.unit, count(*) FILTER (WHERE p.kind = 1), count(*) FILTER (WHERE p.kind = 2),
    sum(CASE WHEN p.kind IN (1, 2, 3) THEN p.hours ELSE 0 END), max(p.start_date + p.kind),
    sum(CASE WHEN p.hours > 4 AND p.kind < 3 THEN p.hours * 2 ELSE p.kind END)
  FROM placement p WHERE p.hours < 100
    OR (SELECT count(*) FROM absence a WHERE a.category > p.kind) > 5
    OR (SELECT count(*) FROM absence a WHERE a.category < p.hours) > 9
    OR (SELECT max(a.id) FROM absence a WHERE a.category + 1 > p.unit) > 9
    OR (SELECT min(a.id) FROM absence a WHERE a.category + 2 < p.unit) > 9
  GROUP BY p.unit) report;
SQL
  awk '{ text = text $0 "\n" } END { for (i = 0; i < 3000; i++) printf "%s", text }' \
    "$data/report.sql" > "$data/reports.sql"
  timeout "$seconds" "$pg/psql" -q -h "$data" -U postgres -d postgres -At \
    -f "$data/reports.sql" > "$data/answers"
  n=$(wc -l < "$data/answers")
  stop_server
  done_line care-report "$n" reports
}

token_cluster() {
  cluster token-store << 'SQL'
CREATE TABLE tokens(id bigserial PRIMARY KEY, owner int, amount int);
CREATE FUNCTION notify_tokens() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('tokens', NEW.id::text);
  RETURN NEW;
END $$;
CREATE TRIGGER tokens_notify AFTER INSERT ON tokens FOR EACH ROW
  EXECUTE FUNCTION notify_tokens();
SQL
}

token_store() {
  start_server token-store -c fsync=on
  echo 'INSERT INTO tokens(owner, amount) VALUES (1, 5);' > "$data/append.sql"
  n=$("$pg/pgbench" -n -h "$data" -U postgres -c 16 -j 1 -T "$seconds" \
    -f "$data/append.sql" postgres 2> /dev/null |
    sed -n 's/^number of transactions actually processed: //p')
  stop_server
  done_line token-store "$n" tokens
}

profile_cluster() {
  cluster profile-list << 'SQL'
ALTER SYSTEM SET work_mem = '128kB';
CREATE TABLE deployments AS SELECT g AS id, md5(g::text) || md5((g + 1)::text) AS entity_id,
  'profile' AS entity_type, array_fill(md5((g * 7)::text), array[40]) AS entity_pointers,
  timestamp '2021-01-01' + (hashint4(g) % 100000) * interval '1 min' AS local_timestamp
  FROM generate_series(1, 80000) g;
ANALYZE;
SQL
}

profile_list() {
  start_server profile-list -c max_parallel_workers_per_gather=0
  end=$(($(now) + seconds))
  n=0
  while [ "$(now)" -lt "$end" ]; do
    sql -c "SELECT count(pointers) FROM (SELECT entity_pointers AS pointers FROM deployments
      WHERE entity_type = 'profile'
      ORDER BY local_timestamp DESC, lower(entity_id) DESC OFFSET 0) list" > /dev/null
    n=$((n + 1))
  done
  stop_server
  done_line profile-list "$n" lists
}

case $case_name in
  stage-files) stage_files ;;
  repo-analyze) repo_analyze ;;
  page-render) page_render ;;
  proxy-config) proxy_config ;;
  graphics-make) graphics_make ;;
  care-cluster) care_cluster ;;
  care-report) care_report ;;
  token-cluster) token_cluster ;;
  token-store) token_store ;;
  profile-cluster) profile_cluster ;;
  profile-list) profile_list ;;
  *) echo "unknown case $case_name" >&2; exit 2 ;;
esac
exit 0
