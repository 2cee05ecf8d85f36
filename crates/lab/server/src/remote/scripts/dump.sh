# Prints the memory that the capture kernel saved, and removes it.
cd /var/lib/marvin
[ -e vmcore ] || { { tail -n 1 vmcore.log 2>/dev/null || echo "the capture kernel did not run"; } >&2; exit 1; }
cat vmcore && rm vmcore
