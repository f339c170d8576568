from __future__ import annotations
from dataclasses import dataclass, fields
import typing
@dataclass
class Tree:
    left: Tree | None = None
    kind: typing.ClassVar[str] = "tree"
print([(f.name, f.type) for f in fields(Tree)], typing.get_type_hints(Tree)["left"] if hasattr(type, "__or__") else "")
