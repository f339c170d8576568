$stdout.print 'a'; $stderr.print 'b'; system('echo c'); $stdout.sync = true; print 'd'; warn 'e'
