# args: ["a b", "", "-n"]
print "$0 $#ARGV\n", map { "<$_>\n" } @ARGV;
