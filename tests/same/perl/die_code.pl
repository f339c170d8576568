END { print "end sees $?\n"; $? = 9 }
$! = 5; die "with errno\n";
