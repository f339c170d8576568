exec sh -c 'echo $0 $1; exit 9' name arg
