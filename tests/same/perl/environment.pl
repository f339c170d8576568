print "$_=$ENV{$_}\n" for sort keys %ENV;
open my $f, "<", "/proc/self/environ" or die; local $/; my $all = <$f>; $all =~ tr/\0/|/; print "$all\n";
open $f, "<", "/proc/self/cmdline" or die; $all = <$f>; $all =~ tr/\0/|/; print "$all\n";
