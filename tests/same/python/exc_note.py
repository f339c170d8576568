error = ValueError("noted")
if hasattr(error, "add_note"):
    error.add_note("line one")
    error.add_note("line two")
raise error
