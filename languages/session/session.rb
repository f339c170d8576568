# A session in Ruby: it takes calls from a FIFO, evaluates each at the top level, and says when it is done. A call is
# `NUMBER BYTES INPUT\n` and its code, and is answered with `done NUMBER CODE BYTES\n` and the value of its last expression.
proc do
  own, here = Process.pid, Dir.pwd
  folder = File.join(here, '.home/.hotcell')
  calls, answers = File.open("#{folder}/calls", 'rb'), File.open("#{folder}/answers", 'wb')
  calls.sync = answers.sync = true
  File.delete("#{folder}/calls", "#{folder}/answers", File.join(here, 'main.rb'))
  # What was printed before a kill must have left the interpreter.
  $stdout.sync = true
  had_input = false
  # Between calls nobody is to be interrupted. What a call sets stays set for the next.
  on_interrupt = Signal.trap('INT', 'IGNORE')
  failed = lambda do |error|
    return error.status if error.is_a?(SystemExit)
    # Frames of ours are none of the program's.
    frames = error.backtrace || []
    frames = frames.take_while { |frame| !frame.start_with?("#{__FILE__}:", "#{here}/main.rb:") }
    error.set_backtrace(frames)
    $stderr.puts frames.empty? ? "#{error.message} (#{error.class})" : error.full_message(highlight: false)
    error.is_a?(Interrupt) ? 130 : 1
  end
  loop do
    line = calls.gets or exit!(0)
    number, size, input = line.split.map(&:to_i)
    code = calls.read(size).force_encoding('UTF-8')
    status, value = 0, ''
    begin
      begin
        if input == 1 || had_input
          $stdin.reopen(input == 1 ? "#{folder}/stdin" : '/dev/null')
          File.delete("#{folder}/stdin") if input == 1
          had_input = input == 1
        end
        Signal.trap('INT', on_interrupt || 'DEFAULT')
        result = TOPLEVEL_BINDING.eval(code, File.join(here, "call-#{number}.rb"), 1)
        value = result.nil? ? '' : result.inspect.to_s
      ensure
        on_interrupt = Signal.trap('INT', 'IGNORE')
      end
    rescue Exception => error
      status = begin
        failed.call(error)
      rescue Exception
        1
      end
    end
    [$stdout, $stderr].each do |stream|
      stream.flush
    rescue Exception
      nil
    end
    # A copy that the program made ends where the program does.
    exit!(status) if Process.pid != own
    value = value[0, 16_000] + ' ...' if value.length > 16_000
    value = value.b
    answers.write("done #{number} #{status & 255} #{value.bytesize}\n".b + value)
  end
end.call
