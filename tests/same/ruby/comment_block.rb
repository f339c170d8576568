=begin
block
=end
p __LINE__
