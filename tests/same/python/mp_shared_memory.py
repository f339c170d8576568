from multiprocessing import shared_memory
s = shared_memory.SharedMemory(create=True, size=64)
s.buf[:5] = b"hello"
t = shared_memory.SharedMemory(name=s.name)
print(bytes(t.buf[:5]))
t.close(); s.close(); s.unlink()
