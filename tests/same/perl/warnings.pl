use warnings;
my $x; print "a" . $x . "\n"; print 1 + "2x", "\n";
warn "warned\n"; warn "where";
