import numpy as np

np.random.seed(1)
board = (np.random.rand(128, 128) < 0.3).astype(int)


def evolve(board):
    neighbours = sum(np.roll(np.roll(board, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
    return ((neighbours == 3) | ((board == 1) & (neighbours == 2))).astype(int)


for generation in range(4000):
    board = evolve(board)
    if generation % 1000 == 0:
        print("generation", generation, "alive", board.sum())
