$| = 1; my $pid = fork; if (!$pid) { print "child\n"; exit 3 } waitpid $pid, 0; print $? >> 8, "\n";
print `echo \$LD_PRELOAD; ls /proc/self/fd | wc -l`;
