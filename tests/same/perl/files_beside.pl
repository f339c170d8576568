# files: {"lib/Foo.pm": "package Foo; sub hi { 'hi from ' . __FILE__ } 1;", "in.txt": "x\ny\n"}
use lib "lib"; use Foo; print Foo::hi(), "\n";
open my $f, "<", "in.txt" or die; print scalar(() = <$f>), "\n";
