# args: ["a b", "", "*"]
printf '<%s>\n' "$0" "$#" "$@"
