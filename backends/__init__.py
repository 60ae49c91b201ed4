"""Backends: a loop program (or a Jaxpr) comes in, an executable for one kind of device goes out.

Installed as `jitcore.backends`. jitcore finds backends by the entry-point group `jitcore.backends` and never
imports one by name, so a package of somebody else can add one.
"""
