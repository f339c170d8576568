# A session in Ruby: it takes calls from a FIFO, evaluates each at the top level, and says when it is done. A call is
# `NUMBER BYTES INPUT\n` and its code, and is answered with `done NUMBER CODE BYTES\n` and the value of its last expression.
# Number 0 is ours, and is not answered.
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
  # Values that the calls of a session share, whatever their language: all that JSON has.
  library = $hotcell + <<~'RUBY'
    require 'json'
    module Hotcell
      class Vars
        include Enumerable
        def initialize(folder) = @folder = folder
        def [](name) = key?(name) ? JSON.parse(File.read(at(name)), quirks_mode: true) : nil
        def []=(name, value)
          text = JSON.generate(value)
          raise ArgumentError, 'a value has 1 MiB at most; write it to a file' if text.bytesize > 1 << 20
          Dir.mkdir(@folder) unless Dir.exist?(@folder)
          File.write("#{at(name)}~", text)
          File.rename("#{at(name)}~", at(name))
        end
        def delete(name) = key?(name) && File.delete(at(name))
        def key?(name) = File.file?(at(name))
        def keys = Dir.exist?(@folder) ? Dir.children(@folder).reject { |name| name.end_with?('~') }.sort : []
        def to_h = keys.to_h { |name| [name, self[name]] }
        def each(...) = to_h.each(...)
        def inspect = to_h.inspect
        private def at(name)
          name = name.to_s
          raise ArgumentError, "not a name for a value: #{name}" unless name.match?(/\A[A-Za-z_][\w.-]{0,63}\z/)
          File.join(@folder, name)
        end
      end
      @vars = Vars.new(FOLDER)
    end
    $LOADED_FEATURES << 'hotcell.rb'
  RUBY
  $hotcell = nil
  # JSON if it is that, but for people at a prompt.
  script = "#{folder}/value.rb"
  Thread.current[:is_session] = true
  as_json = File.exist?(script) ? TOPLEVEL_BINDING.eval(File.read(script), script) : nil
  Thread.current[:is_session] = nil
  loop do
    line = calls.gets or exit!(0)
    number, size, input = line.split.map(&:to_i)
    code = calls.read(size).force_encoding('UTF-8')
    if number.zero?
      binding.eval(code)
      next
    end
    status, value = 0, ''
    begin
      begin
        if input == 1 || had_input
          $stdin.reopen(input == 1 ? "#{folder}/stdin" : '/dev/null')
          File.delete("#{folder}/stdin") if input == 1
          had_input = input == 1
        end
        if library && code.match?(/hotcell/i)
          TOPLEVEL_BINDING.eval(library.sub('FOLDER', "#{folder}/vars".inspect), 'hotcell.rb', 1)
          library = nil
        end
        Signal.trap('INT', on_interrupt || 'DEFAULT')
        result = TOPLEVEL_BINDING.eval(code, File.join(here, "call-#{number}.rb"), 1)
        value = result.nil? ? '' : as_json&.call(result) || result.inspect.to_s
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
