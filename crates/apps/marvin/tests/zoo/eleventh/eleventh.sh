#!/bin/sh
# Test programs for sh, make and git, each chosen by the first argument: CASE SECONDS FOLDER.
case_name=$1
seconds=$2
folder=$3/$1
end=$(($(date +%s%3N) + seconds * 1000))

running() {
    [ "$(date +%s%3N)" -lt "$end" ]
}

own_folder() {
    rm -rf "$folder"
    mkdir -p "$folder"
    cd "$folder" || exit 1
}

leave() {
    stopped=$((stopped + 1))
}

tools_entry() {
    own_folder
    stopped=0
    me=$$
    (sleep 0.3; kill -TERM "$me") &
    trap leave TERM
    sleep "$seconds"
    echo "$case_name: $stopped signals"
}

next_char() {
    rest=${text#?}
    char=${text%"$rest"}
    text=$rest
}

line_codes() {
    own_folder
    line=$(head -c 3000 /dev/zero | tr '\0' x)
    chars=0
    text=
    while :; do
        [ -n "$text" ] || text=$line
        next_char
        chars=$((chars + 1))
        [ $((chars % 10)) -ne 0 ] || running || break
    done
    echo "$case_name: $chars characters"
}

dep_build() {
    own_folder
    for name in alpha beta gamma; do
        echo "int $name(void) { return 1; }" >"$name.c"
        touch -d '+1 day' "$name.c"
    done
    cat >Makefile <<'MAKE'
SOURCES = alpha.c beta.c gamma.c
all: $(SOURCES:.c=.o)
%.o: %.c
	cp $< $@
%.d: %.c
	@echo "$*.o: $*.c" >$@; echo $@ >>made
include $(SOURCES:.c=.d)
MAKE
    timeout "$seconds" make >/dev/null 2>&1
    echo "$case_name: $(wc -l <made) dependency files"
}

diff_watch() {
    own_folder
    git init -q .
    git config core.compression 0
    git config gc.auto 0
    i=0
    while [ $i -lt 12 ]; do
        head -c 1000000 /dev/urandom >"asset$i.bin"
        i=$((i + 1))
    done
    touch -d '2026-01-02 03:04:05' ./*.bin
    git add .
    touch -d '2026-01-02 03:04:05' .git/index
    checks=0
    while running; do
        git diff-files --quiet
        checks=$((checks + 1))
    done
    echo "$case_name: $checks checks"
}

start_wait() {
    own_folder
    : >log
    {
        echo "1 hello"
        sleep 0.3
        echo "20 ready"
        sleep "$seconds"
        echo "30 bye"
    } >log &
    found=$(tail -n +1 -f log | mawk -W interactive '$1 >= 10' |
        grep --max-count=1 ready)
    echo "$case_name: $(echo "$found" | wc -l) lines"
}

case $case_name in
    tools-entry) tools_entry ;;
    line-codes) line_codes ;;
    dep-build) dep_build ;;
    diff-watch) diff_watch ;;
    start-wait) start_wait ;;
esac
