try:
    {}["k"]
except KeyError as error:
    raise RuntimeError("second") from error
