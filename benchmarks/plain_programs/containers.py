"""Dicts, sets, heaps and queues."""

from __future__ import annotations

import collections
import heapq
import itertools
import random

from benchmarks.plain_program import PlainProgram


def find_paths(graph, start):
    """Dijkstra's shortest paths."""
    distances, heap = {start: 0}, [(0, start)]
    while heap:
        distance, node = heapq.heappop(heap)
        if distance > distances[node]:
            continue
        for other, weight in graph[node]:
            new = distance + weight
            if new < distances.get(other, float("inf")):
                distances[other] = new
                heapq.heappush(heap, (new, other))
    return distances


def search_breadth_first(graph, start):
    seen, queue, order = {start}, collections.deque([start]), []
    while queue:
        node = queue.popleft()
        order.append(node)
        for other, _ in graph[node]:
            if other not in seen:
                seen.add(other)
                queue.append(other)
    return order


def find_root(parents, node):
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


def count_components(n, edges):
    parents = list(range(n))
    for a, b in edges:
        a, b = find_root(parents, a), find_root(parents, b)
        if a != b:
            parents[a] = b
    return sum(find_root(parents, node) == node for node in range(n))


def sort_topologically(edges):
    degrees, following = collections.Counter(), collections.defaultdict(list)
    for a, b in edges:
        degrees[b] += 1
        degrees[a] += 0
        following[a].append(b)
    ready, order = [node for node, degree in degrees.items() if not degree], []
    while ready:
        node = ready.pop()
        order.append(node)
        for other in following[node]:
            degrees[other] -= 1
            if not degrees[other]:
                ready.append(other)
    return order


def find_longest_chain(limit):
    """Collatz chains whose lengths are remembered."""
    lengths = {1: 1}
    for start in range(2, limit):
        n, path = start, []
        while n not in lengths:
            path.append(n)
            n = n // 2 if n % 2 == 0 else 3 * n + 1
        length = lengths[n]
        for m in reversed(path):
            length += 1
            lengths[m] = length
    return max(range(1, limit), key=lengths.__getitem__)


def sort_by_heap(values):
    heap = []
    for value in values:
        heapq.heappush(heap, value)
    return [heapq.heappop(heap) for _ in range(len(heap))]


def find_pairs(values, total):
    seen, pairs = set(), set()
    for value in values:
        if total - value in seen:
            pairs.add((min(value, total - value), max(value, total - value)))
        seen.add(value)
    return sorted(pairs)


def group_words(words):
    groups = {}
    for word in words:
        groups.setdefault("".join(sorted(word)), []).append(word)
    return sorted(group for group in groups.values() if len(group) > 1)


def spread_cells(cells, steps):
    """Life on a set of cells."""
    for _ in range(steps):
        counts = collections.Counter((x + dx, y + dy) for x, y in cells for dx in (-1, 0, 1) for dy in (-1, 0, 1)
                                     if dx or dy)
        cells = {cell for cell, count in counts.items() if count == 3 or count == 2 and cell in cells}
    return cells


def simulate_queue(arrivals, services):
    events, waiting, time, waits = [(time, 0, k) for k, time in enumerate(arrivals)], collections.deque(), 0.0, []
    heapq.heapify(events)
    is_busy = False
    while events:
        time, kind, k = heapq.heappop(events)
        if kind == 0:
            waiting.append((time, k))
        else:
            is_busy = False
        if waiting and not is_busy:
            since, k = waiting.popleft()
            waits.append(time - since)
            heapq.heappush(events, (time + services[k], 1, k))
            is_busy = True
    return sum(waits) / len(waits)


def count_sums(values):
    counts = collections.Counter()
    for a, b, c in itertools.combinations(values, 3):
        counts[a + b + c] += 1
    return counts.most_common(3)


def _make_graph(n, degree):
    generator = random.Random(n)
    return {k: [(generator.randrange(n), generator.randrange(1, 100)) for _ in range(degree)] for k in range(n)}


def _make_edges(n, count, seed=3):
    generator = random.Random(seed)
    return [tuple(sorted(generator.sample(range(n), 2))) for _ in range(count)]


def _make_words(count):
    generator = random.Random(count)
    return ["".join(generator.choices("abc", k=5)) for _ in range(count)]


def _make_times(count):
    generator, time, arrivals = random.Random(count), 0.0, []
    for _ in range(count):
        time += generator.expovariate(1.0)
        arrivals.append(time)
    return arrivals, [generator.expovariate(1.2) for _ in range(count)]


ROWS = (
    PlainProgram("Dijkstra on dicts", find_paths, lambda: (_make_graph(5000, 5), 0)),
    PlainProgram("Dijkstra of 20 nodes", find_paths, lambda: (_make_graph(20, 3), 0)),
    PlainProgram("breadth first", search_breadth_first, lambda: (_make_graph(20_000, 4), 0)),
    PlainProgram("union and find", count_components, lambda: (20_000, _make_edges(20_000, 15_000))),
    PlainProgram("topological order", sort_topologically, lambda: (_make_edges(5000, 20_000),)),
    PlainProgram("Collatz with a dict", find_longest_chain, lambda: (30_000,)),
    PlainProgram("heap sort", sort_by_heap, lambda: ([k * 7919 % 100_003 for k in range(30_000)],)),
    PlainProgram("pairs by a set", find_pairs, lambda: ([k * 7919 % 100_003 for k in range(50_000)], 100_000)),
    PlainProgram("anagrams", group_words, lambda: (_make_words(20_000),)),
    PlainProgram("life on a set", spread_cells, lambda: ({(1, 0), (2, 1), (0, 2), (1, 2), (2, 2), (9, 9), (9, 10), (9, 11)}, 60)),
    PlainProgram("a queue by events", simulate_queue, lambda: _make_times(10_000)),
    PlainProgram("sums of three", count_sums, lambda: (list(range(60)),)),
)
