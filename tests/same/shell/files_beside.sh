# files: {"lib.sh": "hello() { echo hello from $BASH_SOURCE; }\n", "data/x.txt": "1\n2\n"}
. ./lib.sh
hello
wc -l < data/x.txt
ls -A
