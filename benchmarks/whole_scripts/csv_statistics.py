import csv
import io
import math
import random

random.seed(2)
lines = ["id,group,value"] + [f"{k},{random.choice('abc')},{random.gauss(0, 1):.5f}" for k in range(40_000)]


def read(lines):
    groups = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        groups.setdefault(row["group"], []).append(float(row["value"]))
    return groups


def describe(values):
    n = len(values)
    mean = sum(values) / n
    variance = sum((v - mean) ** 2 for v in values) / (n - 1)
    return n, mean, math.sqrt(variance)


for name, values in sorted(read(lines).items()):
    print(name, "%d %.4f %.4f" % describe(values))
