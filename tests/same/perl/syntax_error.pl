use strict;
print "never\n";
my $x = ;
