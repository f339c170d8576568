x = {}
x["missing"]
