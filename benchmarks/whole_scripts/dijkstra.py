import heapq
import random

random.seed(1)
N = 6000
graph = {i: [(random.randrange(N), random.random()) for _ in range(15)] for i in range(N)}


def shortest(graph, start):
    distance = {start: 0.0}
    heap = [(0.0, start)]
    while heap:
        d, node = heapq.heappop(heap)
        if d > distance[node]:
            continue
        for other, w in graph[node]:
            if d + w < distance.get(other, float("inf")):
                distance[other] = d + w
                heapq.heappush(heap, (d + w, other))
    return distance


for start in range(15):
    d = shortest(graph, start)
    print(start, len(d), round(max(d.values()), 6))
