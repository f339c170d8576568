# files: {"lib/foo.rb": "module Foo; def self.hi = __FILE__; end", "in.txt": "x\ny\n"}
require_relative 'lib/foo'
puts Foo.hi, File.readlines('in.txt').size
$:.unshift 'lib'; p require('foo')
