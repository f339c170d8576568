<?php
var_dump(mt_rand() . mt_rand() !== shell_exec("php -r 'echo mt_rand() . mt_rand();'"), uniqid() !== uniqid(), random_int(0, PHP_INT_MAX) !== random_int(0, PHP_INT_MAX));
