p self.to_s, __method__, __LINE__, caller, RUBY_ENGINE, $:.size, $VERBOSE, $DEBUG, $-w
puts $".map { |f| File.basename(f) }
p ObjectSpace.each_object(Class).count, Thread.list.size, Encoding.default_external, Encoding.default_internal, __ENCODING__
