import contextvars
v = contextvars.ContextVar("v", default=1)
print(v.get(), len(contextvars.copy_context()))
