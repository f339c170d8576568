x = """never
closed
