import mmap, struct
m = mmap.mmap(-1, 4096)
m[:4] = struct.pack("<I", 7)
print(struct.unpack("<I", m[:4]), len(m))
