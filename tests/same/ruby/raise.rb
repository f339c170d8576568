def f(n) = n.zero? ? raise(ArgumentError, 'deep') : f(n - 1)
begin
  f(2)
rescue => e
  puts e.backtrace, e.full_message(highlight: false)
  raise TypeError, 'second'
end
