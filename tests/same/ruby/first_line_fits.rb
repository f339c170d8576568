puts "hello"
puts __LINE__, __FILE__
x = 1 +* 2
