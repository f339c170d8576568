<?php
ini_set('zend.exception_ignore_args', 1); function f($n) { if (!$n) throw new LogicException('deep', 3, new Exception('cause')); f($n - 1); }
try { f(2); } catch (LogicException $e) { echo $e, "\n"; }
f(1);
