p gets, $stdin.eof?, $stdin.tty?
