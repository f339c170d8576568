import os, signal
pid = os.fork()
if pid == 0:
    os.kill(os.getpid(), signal.SIGKILL)
_, status = os.waitpid(pid, 0)
print(os.WIFSIGNALED(status), os.WTERMSIG(status), os.waitstatus_to_exitcode(status))
