<?php
// stdin: "one\ntwo"
while (($l = fgets(STDIN)) !== false) var_dump($l); var_dump(feof(STDIN));
