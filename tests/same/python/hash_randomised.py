import sys
print(sys.flags.hash_randomization, sys.hash_info.algorithm, hash(1), hash(2**61), hash(0.5), hash(()))
