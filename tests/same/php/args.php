<?php
// args: ["a b", "", "-n"]
var_dump($argc, $argv, $_SERVER['argv'], $_SERVER['SCRIPT_NAME'], $_SERVER['PHP_SELF']);
