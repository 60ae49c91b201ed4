def safe(queens, row, column):
    for r in range(row):
        if queens[r] == column or abs(queens[r] - column) == row - r:
            return False
    return True


def solve(queens, row, n):
    if row == n:
        return 1
    count = 0
    for column in range(n):
        if safe(queens, row, column):
            queens[row] = column
            count += solve(queens, row + 1, n)
    return count


for n in range(4, 12):
    print(n, solve([0] * n, 0, n))
