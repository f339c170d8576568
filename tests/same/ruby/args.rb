# args: ["a b", "", "-n"]
p $0, ARGV, __FILE__, __dir__, $PROGRAM_NAME
