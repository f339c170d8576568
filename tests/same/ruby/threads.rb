t = Thread.new { raise 'in thread' }
begin; t.join; rescue => e; p e; end
Thread.new { sleep 5 }
r, w = IO.pipe
pid = fork { w.puts 'child'; exit! 3 }
Process.wait pid; w.close
p r.read, $?.exitstatus
