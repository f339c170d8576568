puts 1
puts __LINE__
