$SIG{USR1} = sub { print "caught\n" }; kill USR1 => $$; print "on\n"; $| = 1; print "before"; kill TERM => $$; print "never";
