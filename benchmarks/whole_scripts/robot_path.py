"""A* on a grid of characters."""
import heapq
import random

random.seed(12)
SIZE = 90
grid = [["#" if random.random() < 0.25 else "." for _ in range(SIZE)] for _ in range(SIZE)]
grid[0][0] = grid[-1][-1] = "."


def neighbours(cell):
    x, y = cell
    for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        if 0 <= x + dx < SIZE and 0 <= y + dy < SIZE and grid[y + dy][x + dx] != "#":
            yield x + dx, y + dy


def search(start, goal):
    frontier, cost, came = [(0, start)], {start: 0}, {}
    while frontier:
        _, cell = heapq.heappop(frontier)
        if cell == goal:
            path = [cell]
            while path[-1] in came:
                path.append(came[path[-1]])
            return path[::-1]
        for other in neighbours(cell):
            new = cost[cell] + 1
            if new < cost.get(other, 1e9):
                cost[other], came[other] = new, cell
                heapq.heappush(frontier, (new + abs(goal[0] - other[0]) + abs(goal[1] - other[1]), other))
    return []


for _ in range(8):
    path = search((0, 0), (SIZE - 1, SIZE - 1))
print(len(path))
