import dataclasses
@dataclasses.dataclass
class A:
    a: int
    b: str = "x"
    def __post_init__(self): self.b *= 2
print(A(1), dataclasses.is_dataclass(A), A.__module__, A.__doc__)
A()
