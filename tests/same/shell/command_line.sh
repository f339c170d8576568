tr '\0' '|' < /proc/$$/cmdline
readlink /proc/$$/exe
cat /proc/$$/comm
pwd; pwd -P; umask; ulimit -n
