#!/bin/sh
# Programs after public reports: sixth.sh NAME SECONDS FOLDER [TOOLS] [fixed].
# TOOLS is the folder of PostgreSQL's programs, for the cases that need them.
name=$1
seconds=$2
folder=$3
tools=
how=
shift 3
for word in "$@"; do
	case $word in
	fixed) how=fixed ;;
	*) tools=$word ;;
	esac
done
start=$(date +%s%N)
end=$((start / 1000000 + seconds * 1000))

going() {
	[ $(($(date +%s%N) / 1000000)) -lt "$end" ]
}

# bot-reply: takes the fields of a message for the variables of a bot
get_message() {
	value=$(egrep "$2" <"$1" | cut -f 2 | cut -d '"' -f 2)
}

assign_all() {
	while IFS='	' read -r key text; do
		case $key in
		'["result",0,"message","'*)
			text=${text#\"}
			value=${text%\"}
			;;
		esac
	done <"$1"
}

process_message() {
	if [ "$how" = fixed ]; then
		assign_all "$1"
		return
	fi
	for field in text message_id date; do
		get_message "$1" "\\[\"result\",0,\"message\",\"$field\"\\]"
	done
	for field in id first_name last_name username; do
		get_message "$1" "\\[\"result\",0,\"message\",\"from\",\"$field\"\\]"
		get_message "$1" "\\[\"result\",0,\"message\",\"chat\",\"$field\"\\]"
	done
}

bot_reply() {
	file=$folder/message.log
	for key in '"text"' '"message_id"' '"date"' '"from","id"' '"from","first_name"' \
		'"from","last_name"' '"from","username"' '"chat","id"' '"chat","first_name"' \
		'"chat","last_name"' '"chat","username"'; do
		printf '["result",0,"message",%s]\t"value of a field"\n' "$key"
	done >"$file"
	count=0
	while going; do
		process_message "$file"
		count=$((count + 1))
	done
	echo "$name: $count messages in $seconds s"
}

# dnsbl-check: asks each list whether it knows an address
check_list() {
	curl -s --max-time 5 "http://127.0.0.1:$port/$1/4.3.2.1"
}

dnsbl_check() {
	port=$(cat "$folder/dnsbl.port")
	lists=$(seq -f 'zone%g.example.org' 1 20)
	count=0
	while going; do
		if [ "$how" = fixed ]; then
			for list in $lists; do echo "http://127.0.0.1:$port/$list/4.3.2.1"; done |
				xargs -P 20 -n 1 curl -s --max-time 5 >/dev/null
			count=$((count + 20))
			continue
		fi
		for list in $lists; do
			check_list "$list" >/dev/null
			count=$((count + 1))
			going || break
		done
	done
	echo "$name: $count lists in $seconds s"
}

# ref-tree: a repository with many branches, for ref-complete
ref_tree() {
	git init -q "$folder/repo"
	cd "$folder/repo" || exit 1
	git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first
	id=$(git rev-parse HEAD)
	for team in 1 2 3 4 5 6 7 8; do
		mkdir -p ".git/refs/remotes/origin/team-$team"
		number=0
		while [ $number -lt 400 ]; do
			echo "$id" >".git/refs/remotes/origin/team-$team/topic-$number"
			number=$((number + 1))
		done
	done
	[ "$how" = fixed ] && git pack-refs --all
	echo ready
	sleep "$seconds"
}

# ref-complete: the names of branches, as the completion of a shell wants them
git_refs() {
	git -C "$folder/repo" for-each-ref --format='%(refname:strip=2)' refs/tags refs/heads refs/remotes
}

ref_complete() {
	count=0
	while going; do
		git_refs >/dev/null
		count=$((count + 1))
	done
	echo "$name: $count lists in $seconds s"
}

# ext-build: builds the objects of a library with make, though little has changed
ext_build() {
	cd "$folder" || exit 1
	number=1
	objects=
	while [ $number -le 10 ]; do
		echo "int main(void) { return $number - $number; }" >"object$number.c"
		objects="$objects object$number"
		number=$((number + 1))
	done
	before='pre'
	[ "$how" = fixed ] && before='| pre'
	{
		printf 'executables =%s\n' "$objects"
		printf 'all: post\npost: $(executables)\npre:\n\t@mkdir -p build\n'
		printf '.PHONY: all pre post\n'
		printf '$(executables): %%: %%.o %s\n\tcc -o $@ $<\n' "$before"
		printf '%%.o: %%.c\n\tcc -c -o $@ $<\n'
	} >Makefile
	make -s
	count=0
	while going; do
		make -s
		count=$((count + 1))
	done
	echo "$name: $count builds in $seconds s"
}

# The cases with PostgreSQL: NAME-load makes the data, waits for the server and asks it;
# NAME-serve is the server.
as_user() {
	program=$1
	shift
	unshare --user --map-user=1000 --map-group=1000 "$tools/$program" "$@"
}

ask() {
	"$tools/psql" -X -q -h "$folder" -U app -d postgres -v ON_ERROR_STOP=1 "$@"
}

make_data() {
	rm -rf "$folder/pg"
	as_user initdb -D "$folder/pg" -A trust -U app -E UTF8 --locale=C --no-sync >/dev/null || exit 1
	as_user postgres -D "$folder/pg" -k "$folder" -c listen_addresses= -c fsync=off \
		-c shared_buffers=64MB 2>/dev/null &
	server=$!
	until ask -c 'select 1' >/dev/null 2>&1; do sleep 0.1; done
	ask -f "$folder/data.sql" >/dev/null || exit 1
	kill -INT "$(head -n 1 "$folder/pg/postmaster.pid")"
	wait $server
	echo ready
}

ask_on() {
	while going; do
		"$@" >/dev/null 2>&1 || sleep 0.1
	done
}

serve() {
	exec timeout --preserve-status -s INT "$seconds" unshare --user --map-user=1000 --map-group=1000 \
		"$tools/postgres" -D "$folder/pg" -k "$folder" -c listen_addresses= \
		-c shared_buffers=64MB -c max_parallel_workers_per_gather=0 -c jit=off "$@"
}

# stop-pages: the departures of an operator, page by page
stop_load() {
	cat >"$folder/data.sql" <<-'END'
		create table schedule_stop_pairs as
			select i as id, 1661 as operator_id, 'r-' || i % 300 as route, i % 86400 as origin_time
			from generate_series(1, 500000) i;
		alter table schedule_stop_pairs add primary key (id);
		vacuum analyze schedule_stop_pairs;
	END
	make_data
	page=0
	while [ $page -lt 200 ]; do
		first=$((300000 + page * 1000))
		if [ "$how" = fixed ]; then
			page_start="and id > $first" page_skip=
		else
			page_start='' page_skip="offset $first"
		fi
		echo "select * from schedule_stop_pairs where operator_id = 1661 $page_start
			order by id limit 100 $page_skip;"
		page=$((page + 1))
	done >"$folder/pages.sql"
	ask_on ask -o /dev/null -f "$folder/pages.sql"
}

# tree-import: imports the places of trees into a map
tree_load() {
	each='row'
	[ "$how" = fixed ] && each='statement'
	cat >"$folder/data.sql" <<-END
		create table treemap_instance (id int primary key, name text, geo_rev int);
		insert into treemap_instance select i, 'map ' || i, 1 from generate_series(1, 50) i;
		create unlogged table treemap_mapfeature (id serial primary key, instance_id int,
			the_geom point, address_city text, updated_at timestamptz);
		create function revupdate() returns trigger as \$\$
		begin
			update treemap_instance set geo_rev = geo_rev + 1 where id = 21;
			return new;
		end \$\$ language plpgsql;
		create trigger revinserttrigger after insert on treemap_mapfeature
			for each $each execute procedure revupdate();
		vacuum analyze treemap_instance;
	END
	make_data
	for batch in 1 2 3 4 5 6 7 8 9 10 11 12; do
		cat <<-'END'
			truncate treemap_mapfeature;
			insert into treemap_mapfeature (instance_id, the_geom, address_city, updated_at)
				select 21, point(i, i % 90), 'Gotham City', now() from generate_series(1, 4000) i;
			vacuum treemap_instance;
		END
	done >"$folder/import.sql"
	ask_on ask -o /dev/null -f "$folder/import.sql"
}

# audit-worker: several workers take events of a table
audit_load() {
	cat >"$folder/data.sql" <<-'END'
		create table audits (id int primary key, action text, logged_at timestamptz,
			claimed timestamptz, processed timestamptz, worker int);
		insert into audits select i, 'submission.create', now() + i * interval '1 second'
			from generate_series(1, 40000) i;
		create index on audits (logged_at) where processed is null;
		vacuum analyze audits;
	END
	make_data
	skip=
	[ "$how" = fixed ] && skip='skip locked'
	cat >"$folder/work.sql" <<-END
		begin;
		update audits set claimed = clock_timestamp(), worker = :client_id where id =
			(select id from audits where processed is null order by logged_at limit 1
				for update $skip);
		select pg_sleep(0.03);
		update audits set processed = clock_timestamp()
			where processed is null and worker = :client_id;
		commit;
	END
	ask_on "$tools/pgbench" -h "$folder" -U app -d postgres -n -c 6 -j 2 -T 60 -f "$folder/work.sql"
}

case $name in
bot-reply) bot_reply ;;
dnsbl-check) dnsbl_check ;;
ref-tree) ref_tree ;;
ref-complete) ref_complete ;;
ext-build) ext_build ;;
stop-load) stop_load ;;
tree-load) tree_load ;;
audit-load) audit_load ;;
stop-serve | tree-serve | audit-serve) serve -c fsync=off ;;
*) echo "no case $name" >&2; exit 2 ;;
esac
