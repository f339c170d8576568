for fd in /proc/$$/fd/*; do echo "${fd##*/}"; done
readlink /proc/$$/fd/255 /proc/$$/fd/0
