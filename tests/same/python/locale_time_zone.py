import time
print(time.tzname, time.timezone, time.strftime("%Z %A", time.gmtime(0)))
