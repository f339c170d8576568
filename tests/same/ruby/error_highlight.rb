x = nil
puts x.foo.bar
