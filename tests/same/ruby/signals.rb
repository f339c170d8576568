trap('USR1') { puts 'caught' }
Process.kill('USR1', $$); sleep 0.05
$stdout.flush
Process.kill('TERM', $$); sleep 1
