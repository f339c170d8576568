def f
  nil.foo
end
p RubyVM::InstructionSequence.of(method(:f)).path, binding.source_location
f
