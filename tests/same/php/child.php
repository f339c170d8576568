<?php
echo shell_exec('env | sort'); passthru('exit 3', $code); var_dump($code); $p = proc_open(['ls', '/proc/self/fd'], [1 => ['pipe', 'w']], $pipes); echo stream_get_contents($pipes[1]); echo proc_close($p);
