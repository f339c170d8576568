# What a program has of hotcell: its arguments, what it shows, and values that it shares.
package hotcell;
use strict;
use warnings;

# The program's arguments, as they were when it began.
our @args = @ARGV;
# Values by name, of this program alone.
our %vars;

# Prints values as they are shown.
sub display {
    require Data::Dumper;
    local $Data::Dumper::Terse = 1;
    print ref $_ ? Data::Dumper::Dumper($_) : "$_\n" for @_;
}

1;
