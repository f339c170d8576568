import sys
print(sys.get_int_max_str_digits() if hasattr(sys, "get_int_max_str_digits") else "none")
int("1" * 5000)
