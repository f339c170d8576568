import os
print(os.system("exit 3"), os.waitstatus_to_exitcode(os.system("exit 3")))
