<?php
var_dump(__COMPILER_HALT_OFFSET__, stream_get_contents(fopen(__FILE__, 'r'), -1, __COMPILER_HALT_OFFSET__));
__halt_compiler();data
