<?php
var_dump(__FILE__, __DIR__, __LINE__, PHP_SAPI, getcwd(), get_included_files(), ini_get('display_errors'), ob_get_level());
print_r(array_keys($GLOBALS)); sort($x = get_loaded_extensions()); print_r(array_diff_key($_SERVER, array_flip(['REQUEST_TIME', 'REQUEST_TIME_FLOAT'])));
