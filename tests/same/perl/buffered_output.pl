print "out"; print STDERR "err"; system("echo child"); print "end\n";
