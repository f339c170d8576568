open my $f, "<", $0 or die; print scalar <$f>; print -s $0, " ", (-f $0 ? "file" : "none"), "\n";
print fileno($f), "\n";
