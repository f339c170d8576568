import typing
class P(typing.NamedTuple):
    x: int
    y: "Other" = 1
class Other: pass
print(typing.get_type_hints(P), P(1), P.__module__)
