p rand != `ruby -e 'print rand'`.to_f, 'x'.hash != `ruby -e 'print "x".hash'`.to_i
