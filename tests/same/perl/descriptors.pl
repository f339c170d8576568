opendir my $d, "/proc/self/fd" or die; my @fds = sort { $a <=> $b } grep { /\d/ && $_ != fileno $d } readdir $d; print "@fds\n";
