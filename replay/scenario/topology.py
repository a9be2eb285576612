"""The nodes of a scenario: a path, and a tree of links that join further nodes to it.

Does not depend on what a link is like. Read docs/scenario.md, "Trees".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hindflight.replay.scenario.validation_errors import suggestion

Ends = tuple[str, str] | None
"""Nodes that a link joins, in the order of its forward direction; None for the next two of the path."""


@dataclass(frozen=True, slots=True)
class Tree:
    """The nodes in the order in which links join them, and of each but the first: its parent and the number of its
    link."""

    nodes: tuple[str, ...]
    joints: Mapping[str, tuple[str, int]]

    def way(self, sender: str, receiver: str) -> tuple[str, ...]:
        """Return the nodes from `sender` to `receiver`, both included: KeyError for what is no node."""
        up, down = self._to_root(sender), self._to_root(receiver)
        meeting = next(node for node in up if node in down)
        return (*up[: up.index(meeting) + 1], *reversed(down[: down.index(meeting)]))

    def links(self, way: Sequence[str]) -> set[int]:
        """Return the numbers of the links of a way."""
        joints = self.joints
        return {
            (joints[after] if joints.get(after, ("", 0))[0] == before else joints[before])[1]
            for before, after in pairwise(way)
        }

    def _to_root(self, node: str) -> list[str]:
        if node not in self.nodes:
            raise KeyError(node)
        nodes = [node]
        while nodes[-1] in self.joints:
            nodes.append(self.joints[nodes[-1]][0])
        return nodes


def grow(path: Sequence[str], ends: Sequence[Ends]) -> tuple[Tree, list[str]]:
    """Return the tree of `path` and of links with these `ends`, and what is wrong with them, each with its key path.

    Links that are wrong are left out of the tree.
    """
    joints = {node: (before, number) for number, (before, node) in enumerate(pairwise(path))}
    nodes, wrong = list(path), []
    of_path = sum(each is None for each in ends)
    if of_path != len(path) - 1:
        wrong.append(f"links: {of_path} given, {len(path) - 1} needed between {len(path)} nodes")
    for number, each in enumerate(ends):
        if each is None:
            if any(ends[:number]):
                wrong.append(f"links[{number}]: the links of the path come before those with from and to")
            continue
        begin, end = each
        if begin in nodes and end in nodes:
            between = ", ".join(Tree(tuple(nodes), joints).way(begin, end)[1:-1])
            how = f" by way of {between}" if between else ""
            wrong.append(f"links[{number}]: {begin!r} and {end!r} are joined already{how}; links form a tree")
        elif begin in nodes or end in nodes:
            parent, node = (begin, end) if begin in nodes else (end, begin)
            joints[node] = parent, number
            nodes.append(node)
        else:
            guess = suggestion(begin, nodes)
            wrong.append(f"links[{number}]: neither {begin!r} nor {end!r} is a node of the links before it{guess}")
    return Tree(tuple(nodes), joints), wrong
