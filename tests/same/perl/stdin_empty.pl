print defined(scalar <STDIN>) ? "got" : "nothing", "\n"; print eof(STDIN) ? 1 : 0, "\n";
