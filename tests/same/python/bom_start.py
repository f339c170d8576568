print("with a BOM", __file__)
