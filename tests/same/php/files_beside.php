<?php
// files: {"lib/foo.php": "<?php return __FILE__;", "in.txt": "x\ny\n"}
var_dump(require 'lib/foo.php', count(file('in.txt')), get_included_files()); require 'missing.php';
