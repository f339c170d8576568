<?php
echo "before\n"; exec("kill -TERM " . getmypid()); sleep(1); echo "never\n";
