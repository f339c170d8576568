my %h = map { $_ => 1 } 1 .. 200; my $a = join ",", keys %h; my $b = `perl -e 'my %h = map { \$_ => 1 } 1 .. 200; print join ",", keys %h'`;
print $a ne $b ? "differs\n" : "same\n"; print rand != `perl -e 'print rand'` ? "differs\n" : "same\n";
