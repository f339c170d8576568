use strict; use warnings;
sub f { die { code => 7 } if $_[0] > 1; f($_[0] + 1) }
eval { f(0) }; print $@->{code}, "\n";
die "at the end";
