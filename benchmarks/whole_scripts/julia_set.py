"""The Julia set of c, point by point."""
width, height, limit = 800, 640, 200
c = complex(-0.8, 0.156)
counts = {}
total = 0
for py in range(height):
    for px in range(width):
        z = complex(-1.6 + 3.2 * px / width, -1.2 + 2.4 * py / height)
        n = 0
        while abs(z) <= 2 and n < limit:
            z = z * z + c
            n += 1
        total += n
print("iterations", total)
