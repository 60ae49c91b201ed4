"""The solar system as objects, with velocity Verlet steps."""
import numpy as np

G = 6.674e-11


class Body:
    def __init__(self, name, mass, position, velocity):
        self.name, self.mass = name, mass
        self.position = np.array(position, dtype=float)
        self.velocity = np.array(velocity, dtype=float)
        self.acceleration = np.zeros(2)


class System:
    def __init__(self, bodies):
        self.bodies = bodies

    def compute_accelerations(self):
        for body in self.bodies:
            body.acceleration = np.zeros(2)
            for other in self.bodies:
                if other is not body:
                    difference = other.position - body.position
                    distance = np.sqrt((difference**2).sum())
                    body.acceleration = body.acceleration + G * other.mass * difference / distance**3

    def step(self, dt):
        for body in self.bodies:
            body.velocity = body.velocity + 0.5 * dt * body.acceleration
            body.position = body.position + dt * body.velocity
        self.compute_accelerations()
        for body in self.bodies:
            body.velocity = body.velocity + 0.5 * dt * body.acceleration

    def energy(self):
        total = 0.0
        for i, body in enumerate(self.bodies):
            total += 0.5 * body.mass * (body.velocity**2).sum()
            for other in self.bodies[i + 1:]:
                total -= G * body.mass * other.mass / np.sqrt(((other.position - body.position)**2).sum())
        return total


system = System([
    Body("Sun", 1.989e30, [0, 0], [0, 0]),
    Body("Venus", 4.867e24, [1.082e11, 0], [0, 3.502e4]),
    Body("Earth", 5.972e24, [1.496e11, 0], [0, 2.978e4]),
    Body("Mars", 6.39e23, [2.279e11, 0], [0, 2.407e4]),
    Body("Jupiter", 1.898e27, [7.785e11, 0], [0, 1.307e4]),
])
system.compute_accelerations()
start = system.energy()
for day in range(50000):
    system.step(43200)
print(f"relative change of energy {abs(system.energy() / start - 1):.1e}")
for body in system.bodies:
    print(body.name, (body.position / 1e9).round(2))
