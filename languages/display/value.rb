# The value of the last expression of a Ruby program, which is run from here: JSON if it is that, else as `inspect` has it. Loaded before it.
proc do
  program, own = $0, __FILE__
  # Needs no library: what is loaded here, the program could see.
  quoted = lambda do |text|
    return unless text.encoding == Encoding::UTF_8 || text.ascii_only?
    return unless text.valid_encoding?
    escapes = { "\n" => '\n', "\r" => '\r', "\t" => '\t', '"' => '\"', '\\' => '\\\\' }
    '"' + text.gsub(/["\\\x00-\x1f]/) { |char| escapes[char] || format('\u%04x', char.ord) } + '"'
  end
  left = 0
  json = lambda do |thing|
    return if (left -= 1) < 0
    case thing
    when nil then 'null'
    when true, false, Integer then thing.to_s
    when Float then thing.finite? ? thing.to_s : nil
    when String then thing.instance_of?(String) ? quoted.call(thing) : nil
    when Array
      parts = thing.map(&json)
      parts.all? ? "[#{parts.join(', ')}]" : nil
    when Hash
      parts = thing.map do |key, value|
        key = [String, Symbol].include?(key.class) ? quoted.call(key.to_s) : nil
        value = key && json.call(value)
        value && "#{key}: #{value}"
      end
      parts.all? ? "{#{parts.join(', ')}}" : nil
    end
  end
  form = lambda do |value|
    left = 2000
    json.call(value)
  end
  # A session asks for that alone.
  next form if Thread.current[:is_session]
  keep = lambda do |value|
    next if value.nil?
    text, kind = form.call(value), 'json'
    text, kind = value.inspect, 'txt' if text.nil? || text.length > 16_384
    File.write(File.join(File.dirname(own), "display/value.#{kind}"), text[0, 16_384])
  rescue Exception
    nil
  end
  source = File.read(program)
  # What only the interpreter itself can read, and what is no program: that is said as ever.
  next if source.match?(/^__END__$/) || source.start_with?('#!')
  compiled = begin
    RubyVM::InstructionSequence.compile_file(program)
  rescue SyntaxError, SystemCallError
    next
  end
  failed = nil
  # The first to be registered is the last to run, and an error is told after all others.
  at_exit do
    next unless failed
    $stdout.flush
    lines = failed.full_message(highlight: false).lines
    $stderr.write(lines.reject { |line| line.match?(/^\s*(from |\d+: from )?(#{Regexp.escape(own)}|<internal:).*in /) }.join)
    exit!(1)
  end
  begin
    keep.call(compiled.eval)
  rescue SystemExit, SignalException
    raise
  rescue Exception => error
    failed = error
    exit(1)
  end
  exit
end.call
