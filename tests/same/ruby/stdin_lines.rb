# stdin: "one\ntwo\n"
p gets, $stdin.read, $<.eof? rescue p $!
