# stdin: "one\ntwo\n"
print "$.:$_" while <STDIN>;
