from dataclasses import dataclass, field, asdict, replace
@dataclass(order=True, frozen=True)
class P:
    x: int
    y: list = field(default_factory=list, compare=False)
print(P(1), asdict(P(2, [3])), P(1) < P(2), replace(P(1), x=5))
P(1).x = 2
