"""Finds change points with Apache Otava: one series a line in, one line of places out; the first line has the seconds."""

import sys
import time

from otava.analysis import compute_change_points

series = [[float(number) for number in line.split()] for line in sys.stdin]
compute_change_points(series[0], window_len=50, max_pvalue=0.001)  # what is imported late is not measured
start = time.process_time()
found = [compute_change_points(points, window_len=50, max_pvalue=0.001)[0] for points in series]
print(time.process_time() - start)
for changes in found:
    print(*[change.index for change in changes])
