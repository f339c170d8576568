head -n 1 main.sh
stat -c '%s %a %F' main.sh
while read -r line; do echo "line: $line"; done <<'X'
here
X
exit 0
never (parsed
