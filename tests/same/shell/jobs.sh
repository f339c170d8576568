sleep 0.01 & wait $!; echo $?
(echo out; echo err >&2; exit 4); echo $?
echo $(( $(echo 2) + 3 )) | { read -r n; echo "n=$n"; }
