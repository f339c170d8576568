$0 = "another name";
open my $f, "<", "/proc/self/cmdline" or die; local $/; my $all = <$f>; $all =~ s/\0+$//; print "$all|\n";
open $f, "<", "/proc/self/comm" or die; print <$f>;
