import random

INF = float("inf")


def make_graph(n, edges):
    graph = [[INF] * n for _ in range(n)]
    for i in range(n):
        graph[i][i] = 0
    for _ in range(edges):
        graph[random.randrange(n)][random.randrange(n)] = random.randint(1, 100)
    return graph


def floyd_warshall(graph):
    n = len(graph)
    distance = [row[:] for row in graph]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if distance[i][k] + distance[k][j] < distance[i][j]:
                    distance[i][j] = distance[i][k] + distance[k][j]
    return distance


random.seed(5)
result = floyd_warshall(make_graph(400, 2500))
reachable = [d for row in result for d in row if d < INF]
print(len(reachable), sum(reachable), max(reachable))
