"""Simulates machines on a network: a network namespace for each process, joined by a bridge. Needs root on Linux."""

from __future__ import annotations

import os
import subprocess


class Network:
    """A bridge, and for each process a network namespace that is connected to the bridge."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.name = f"at{os.getpid() % 10000}"
        self.host = "10.231.77.1"
        self._run(f"ip link add {self.name} type bridge")
        self._run(f"ip addr add {self.host}/24 dev {self.name}")
        self._run(f"ip link set {self.name} up")
        for k in range(self.size):
            space, here, there = self.space(k), f"{self.name}v{k}", f"{self.name}p{k}"
            self._run(f"ip netns add {space}")
            self._run(f"ip link add {here} type veth peer name {there}")
            self._run(f"ip link set {here} master {self.name} up")
            self._run(f"ip link set {there} netns {space}")
            for command in (f"addr add 10.231.77.{10 + k}/24 dev {there}", f"link set {there} up", "link set lo up"):
                self._run(f"ip -n {space} {command}")

    def space(self, k: int) -> str:
        return f"{self.name}n{k}"

    def cut(self, k: int) -> None:
        self._run(f"ip link set {self.name}v{k} down")

    def close(self) -> None:
        for k in range(self.size):
            subprocess.run(f"ip link del {self.name}v{k}".split(), check=False)
            subprocess.run(f"ip netns del {self.space(k)}".split(), check=False)
        subprocess.run(f"ip link del {self.name}".split(), check=False)

    def _run(self, command: str) -> None:
        subprocess.run(command.split(), check=True)
