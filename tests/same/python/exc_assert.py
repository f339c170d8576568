assert 1 == 2, "arithmetic holds"
