import os
for n in range(3, 20):
    try:
        os.write(n, b"garbage"); print("wrote to", n)
    except OSError as error: pass
print("done")
