BEGIN { print "begin\n"; exit 4 } print "never\n";
