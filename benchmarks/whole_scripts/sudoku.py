"""Backtracking."""
PUZZLE = "530070000600195000098000060800060003400803001700020006060000280000419005000080079"


def candidates(cells, i):
    r, c = divmod(i, 9)
    used = {cells[9 * r + k] for k in range(9)} | {cells[9 * k + c] for k in range(9)}
    for dr in range(3):
        for dc in range(3):
            used.add(cells[9 * (r // 3 * 3 + dr) + c // 3 * 3 + dc])
    return [d for d in "123456789" if d not in used]


def solve(cells):
    open_cells = [i for i, d in enumerate(cells) if d == "0"]
    if not open_cells:
        return cells
    best = min(open_cells, key=lambda i: len(candidates(cells, i)))
    for d in candidates(cells, best):
        found = solve(cells[:best] + [d] + cells[best + 1 :])
        if found:
            return found
    return None


for _ in range(100):
    solution = solve(list(PUZZLE))
print("".join(solution))
