use utf8; my $s = "grün €"; print length($s), "\n"; binmode STDOUT, ":utf8"; print "$s\n"; no utf8; print length("grün"), "\n";
