"""Planets as objects."""
import math


class Body:
    def __init__(self, name, mass, x, y, vx, vy):
        self.name, self.mass = name, mass
        self.x, self.y, self.vx, self.vy = x, y, vx, vy

    def kick(self, others, dt):
        for other in others:
            if other is self:
                continue
            dx, dy = other.x - self.x, other.y - self.y
            r = math.hypot(dx, dy)
            self.vx += dt * other.mass * dx / r**3
            self.vy += dt * other.mass * dy / r**3

    def drift(self, dt):
        self.x += self.vx * dt
        self.y += self.vy * dt


bodies = [Body("sun", 1.0, 0, 0, 0, 0), Body("earth", 3e-6, 1, 0, 0, 1.0), Body("mars", 3e-7, 1.5, 0, 0, 0.8)]
for step in range(300000):
    for body in bodies:
        body.kick(bodies, 1e-3)
    for body in bodies:
        body.drift(1e-3)
for body in bodies:
    print(body.name, round(body.x, 6), round(body.y, 6))
