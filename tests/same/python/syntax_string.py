x = "never closed
