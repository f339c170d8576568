print "$0 $^X @{[scalar @INC]} $^W ${^TAINT} $^O\n";
print __FILE__, " ", __LINE__, " ", __PACKAGE__, "\n";
print join(",", map { $_ // "undef" } (caller(0))[0..3]), "\n";
print join("\n", sort keys %INC), "\n";
