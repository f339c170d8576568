<?php
echo 'a'; fwrite(STDERR, 'b'); fwrite(STDOUT, 'c'); print 'd'; fprintf(STDERR, "e\n");
