at_exit { puts 'at exit' }
abort 'aborted'
