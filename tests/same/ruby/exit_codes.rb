at_exit { puts "status #{$!.status}"; exit 7 }
exit 3
