<?php
var_dump(fgets(STDIN), file_get_contents('php://input'), stream_isatty(STDOUT));
