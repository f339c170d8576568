<?php
var_dump(abs(time() - $_SERVER['REQUEST_TIME']) <= 1, $_SERVER['REQUEST_TIME_FLOAT'] <= microtime(true), abs(getlastmod() - time()) <= 2);
