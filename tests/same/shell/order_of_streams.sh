exec 2>&1
echo 1; echo 2 >&2; printf 3; printf 4 >&2; echo
