<?php
final class A { public function __destruct() { echo "gone\n"; } } $a = new A; namespace_missing: echo get_class($a), "\n"; set_error_handler(fn(...$x) => print("handled $x[1]\n")); echo $nope; echo "end\n";
