if read -r line; then echo "got $line"; else echo nothing; fi
cat; echo $?
