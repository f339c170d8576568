# All memory that there is, with page tables, until it is ended.
import mmap
kept = []
while True:
    piece = mmap.mmap(-1, 1 << 21)
    for at in range(0, len(piece), 4096):
        piece[at] = 1
    kept.append(piece)
