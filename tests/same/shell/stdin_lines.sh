# stdin: "one\ntwo"
while read -r line || [ -n "$line" ]; do echo "<$line>"; done
