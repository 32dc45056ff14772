"""Detached actors, one CPU each. They count, and know the Pod that they run in.

usage: actors.py start|increment|kill NAME...

`start` waits until the actors run, and prints a line `NAME POD` for each; `increment` prints lines `NAME COUNT POD`.
"""

import socket
import sys

import ray


@ray.remote(num_cpus=1, max_restarts=0)
class Counter:
    def __init__(self):
        self.count = 0

    def increment(self):
        self.count += 1
        return self.count

    def pod(self):
        return socket.gethostname()


command, *names = sys.argv[1:]
ray.init(namespace="e2e", logging_level="ERROR", log_to_driver=False)
if command == "start":
    # All are asked for before the first is waited for.
    started = {name: Counter.options(name=name, lifetime="detached").remote() for name in names}
    for name, pod in zip(names, ray.get([actor.pod.remote() for actor in started.values()], timeout=150)):
        print(name, pod)
else:
    for name in names:
        actor = ray.get_actor(name)
        if command == "kill":
            ray.kill(actor)
        else:
            print(name, *ray.get([actor.increment.remote(), actor.pod.remote()], timeout=60))
